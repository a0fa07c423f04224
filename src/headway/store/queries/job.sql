select id, type, lane, tenant, key, upstreams, priority, not_before, deadline, created_at, spec,
    unique_key, batch, schedule, state, since, pin, fence, upstream, granted_at, waited_s, tries,
    asked, finished_at, error
from jobs where id = ?
