-- What was visible in the last snapshot, of the pages after it what was read already, and whatever
-- an engine has touched, if it could not store its last mark. (The limit keeps the planner from
-- reading the whole trail.)
select {columns}, null from jobs
where finished_at is null and (
    pg_visible_in_snapshot(xid, %(before)s::pg_snapshot)
    or (xid, id) <= (%(after_xid)s::xid8, %(after_id)s::bigint)
        and pg_visible_in_snapshot(xid, %(target)s::pg_snapshot)
    or fence > 0 or pin is not null or state not in ('queued', 'pending')
    or (select true from events where events.job = jobs.id limit 1)
)
order by id
