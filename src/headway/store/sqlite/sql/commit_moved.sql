update jobs set state = v ->> 1, since = v ->> 2, not_before = v ->> 3, priority = v ->> 4,
    pin = v ->> 5, fence = v ->> 6, upstream = v ->> 7, granted_at = v ->> 8, lease_end = v ->> 9,
    waited_s = v ->> 10, tries = v ->> 11, asked = v ->> 12, error = coalesce(v ->> 13, error)
from (select value as v from jsonb_each(?)) where jobs.id = v ->> 0
