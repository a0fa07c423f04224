insert into settings (kind, name, value, at)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3 from jsonb_each(?)
where value ->> 2 is not null
on conflict (kind, name) do update set value = excluded.value, at = excluded.at
