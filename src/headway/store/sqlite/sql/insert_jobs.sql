-- ?1: a JSON array with one array for each job; the number of the first one is ?2
insert into jobs (id, type, lane, tenant, key, upstreams, priority, not_before, deadline,
    created_at, spec, unique_key, unique_scope, batch, schedule, waits, state, since, args)
select key + ?2, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
    value ->> 6, value ->> 7, value ->> 8, value ->> 9, null, null, value ->> 12, value ->> 13,
    value ->> 14, value ->> 15, value ->> 16, value ->> 17
from jsonb_each(?1)
