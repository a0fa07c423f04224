-- The first half of load_new, when transactions were under way at the snapshot before.
(
    select * from jobs
    where finished_at is null and xid = any($6::xid8[])
        and (xid, id) > ($3::xid8, $4::bigint)
        and ($2::text is null or pg_visible_in_snapshot(xid, $2::pg_snapshot))
    order by xid, id limit $5
) union all (
