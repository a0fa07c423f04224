insert into events (at, job, event, before, after, fence, detail, subject)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
    value ->> 7
from jsonb_each(?)
