id, type, lane, tenant, key, upstreams, priority, not_before, deadline, spec, unique_scope,
    batch, schedule, waits, state, since, pin, fence, upstream, granted_at, lease_end, tries, asked
