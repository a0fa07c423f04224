insert into checkpoints (job, data, at)
select value ->> 0, value ->> 1, value ->> 2 from jsonb_each(?) where true
on conflict (job) do update set data = excluded.data, at = excluded.at
