update jobs set state = 'completed', since = v ->> 1, finished_at = v ->> 1, error = null,
    lease_end = null
from (select value as v from jsonb_each(?)) where jobs.id = v ->> 0
