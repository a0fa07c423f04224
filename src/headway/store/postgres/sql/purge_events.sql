-- From the front only, so that what is left has no gaps; the trail of a job that is still there
-- stays whole.
with oldest as (
    select id, at, job from events order by id limit %(limit)s
), kept as (
    select min(id) as id from oldest
    where at >= %(before)s or exists (select from jobs where jobs.id = oldest.job)
)
delete from events using kept
where events.id <= (select max(id) from oldest) and (kept.id is null or events.id < kept.id)
