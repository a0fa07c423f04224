update jobs set state = 'running', since = v ->> 1, granted_at = v ->> 1, fence = v ->> 2,
    upstream = v ->> 3, lease_end = v ->> 4, waited_s = v ->> 5, asked = null
from (select value as v from jsonb_each(?)) where jobs.id = v ->> 0
