-- For each type, of the jobs (of one tenant) that failed since then: how many, since when, and the newest.
with failed as (
    select type, count(*) as many, min(finished_at) as first_at, max(id) as last
    from jobs where finished_at >= ? and state = 'failed' and tenant = coalesce(?, tenant)
    group by type
)
select failed.type, failed.many, failed.first_at, failed.last, jobs.error
from failed join jobs on jobs.id = failed.last order by failed.many desc, failed.type
