insert into schedules
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
    value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11
from jsonb_each(?) where true
on conflict (name) do update set type = excluded.type, args = excluded.args, rule = excluded.rule,
    options = excluded.options, paused = excluded.paused, strikes = excluded.strikes,
    last_due_at = excluded.last_due_at, next_due_at = excluded.next_due_at,
    missed = excluded.missed, source = excluded.source
