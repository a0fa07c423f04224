-- The jobs whose transactions ended after a snapshot was taken: those that were under way then, and
-- those that began later (from $1 on). Page by page they are those that were visible at $2, after the
-- last one of the page before. So none is missed, however late its transaction commits, and none
-- comes twice.
select {columns}, case when octet_length(args) <= 1000 then args end as args, xid::text as made_by,
    now.snapshot, now.orders
from (
    select pg_current_snapshot()::text as snapshot, exists (select from commands) as orders offset 0
) as now, (
    {under_way}
    select * from jobs
    where finished_at is null and xid >= $1::xid8
        and (xid, id) > ($3::xid8, $4::bigint)
        and ($2::text is null or pg_visible_in_snapshot(xid, $2::pg_snapshot))
    order by xid, id limit $5 {end}
) as new
{order}
