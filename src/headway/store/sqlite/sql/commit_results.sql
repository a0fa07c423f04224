insert into results (job, value, expires_at)
select value ->> 0, value ->> 1, value ->> 2 from jsonb_each(?) where true
on conflict (job) do update set value = excluded.value, expires_at = excluded.expires_at
