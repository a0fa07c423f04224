insert into events (id, at, job, event, before, after, fence, detail, subject, who)
select key + (
        select 1 + max(purged_event, coalesce((select max(id) from events), 0)) from brain
    ), value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
    value ->> 7, value ->> 8
from jsonb_each(?)
