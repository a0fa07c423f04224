insert into jobs (type, lane, tenant, key, upstreams, priority, not_before, deadline, created_at,
    spec, unique_key, unique_scope, batch, schedule, waits, state, since)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
