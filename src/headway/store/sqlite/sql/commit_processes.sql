insert into processes (job, pid, started_at)
select value ->> 0, value ->> 1, value ->> 2 from jsonb_each(?) where value ->> 1 is not null
on conflict (job) do update set pid = excluded.pid, started_at = excluded.started_at
