insert into jobs (id, type, lane, tenant, key, upstreams, priority, not_before, deadline,
    created_at, spec, unique_key, unique_scope, batch, schedule, waits, state, since, args)
values ((select 1 + max(purged_job, coalesce((select max(id) from jobs), 0)) from brain),
    ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
