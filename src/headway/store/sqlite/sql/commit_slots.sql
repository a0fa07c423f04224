insert into slots (fence, ticket, upstream, granted_at, lease_end)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 from jsonb_each(?) where true
on conflict (fence) do update set lease_end = excluded.lease_end
