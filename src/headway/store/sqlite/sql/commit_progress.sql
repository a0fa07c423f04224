insert into progress (job, done, total, note, at)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 from jsonb_each(?) where true
on conflict (job) do update set done = excluded.done, total = excluded.total,
    note = excluded.note, at = excluded.at
