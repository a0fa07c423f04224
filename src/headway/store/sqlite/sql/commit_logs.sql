insert into logs (job, at, level, line)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3 from jsonb_each(?)
