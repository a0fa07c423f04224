-- The jobs whose transactions ended after a snapshot was taken: those that were under way then, and
-- those that began later (from %(next)s on). Page by page they are those that were visible at
-- %(target)s, after the last one of the page before. So none is missed, however late its
-- transaction commits, and none comes twice.
select {columns}, case when octet_length(args) <= 1000 then args end as args, xid::text as made_by,
    now.snapshot, now.orders
from (
    select pg_current_snapshot()::text as snapshot, exists (select from commands) as orders offset 0
) as now, (
    {under_way}
    select * from jobs
    where finished_at is null and xid >= %(next)s::xid8
        and (xid, id) > (%(after_xid)s::xid8, %(after_id)s::bigint)
        and (%(target)s::text is null or pg_visible_in_snapshot(xid, %(target)s::pg_snapshot))
    order by xid, id limit %(limit)s {end}
) as new
{order}
