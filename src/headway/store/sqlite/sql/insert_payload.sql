insert into payloads (job, args) values (?, ?)
on conflict (job) do update set args = excluded.args
