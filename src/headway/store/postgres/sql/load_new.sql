-- The jobs whose transactions ended after a snapshot was taken: those that were under way then
-- (%(under_way)s), and those that began later (from %(next)s on). Page by page they are those that
-- were visible at %(target)s, after the last one of the page before. So none is missed, however
-- late its transaction commits, and none comes twice.
with now as materialized (select pg_current_snapshot()::text as snapshot)
select {columns}, case when octet_length(args) <= 1000 then args end, xid::text, now.snapshot
from (
    (
        select * from jobs
        where finished_at is null and xid = any(%(under_way)s::xid8[])
            and (xid, id) > (%(after_xid)s::xid8, %(after_id)s::bigint)
            and (%(target)s::text is null or pg_visible_in_snapshot(xid, %(target)s::pg_snapshot))
        order by xid, id limit %(limit)s
    ) union all (
        select * from jobs
        where finished_at is null and xid >= %(next)s::xid8
            and (xid, id) > (%(after_xid)s::xid8, %(after_id)s::bigint)
            and (%(target)s::text is null or pg_visible_in_snapshot(xid, %(target)s::pg_snapshot))
        order by xid, id limit %(limit)s
    )
) as new, now
order by xid, id limit %(limit)s
