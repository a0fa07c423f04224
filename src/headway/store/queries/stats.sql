-- For each type, of the jobs (of one tenant) that ended since then: how many, how many well, run times, mean wait.
with ended as (
    select type, state, waited_s, finished_at - granted_at as run_s,
        cume_dist() over (
            partition by type, granted_at is null order by finished_at - granted_at) as place
    from jobs where finished_at >= ? and tenant = coalesce(?, tenant)
)
select type, count(*), count(*) filter (where state = 'completed'),
    count(*) filter (where state = 'failed'), count(*) filter (where state = 'cancelled'),
    avg(run_s), min(run_s) filter (where place >= 0.95), avg(waited_s)
from ended group by type
