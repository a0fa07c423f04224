-- The first half of load_new, when transactions were under way at the snapshot before.
(
    select * from jobs
    where finished_at is null and xid = any(%(under_way)s::xid8[])
        and (xid, id) > (%(after_xid)s::xid8, %(after_id)s::bigint)
        and (%(target)s::text is null or pg_visible_in_snapshot(xid, %(target)s::pg_snapshot))
    order by xid, id limit %(limit)s
) union all (
