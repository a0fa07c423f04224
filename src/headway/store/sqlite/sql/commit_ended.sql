update jobs set state = v ->> 1, since = v ->> 2, finished_at = v ->> 2, tries = v ->> 3,
    error = v ->> 4, lease_end = null
from (select value as v from jsonb_each(?)) where jobs.id = v ->> 0
