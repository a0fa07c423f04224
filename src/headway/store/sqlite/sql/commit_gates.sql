insert into gates (kind, name, tenant, state)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3 from jsonb_each(?)
where value ->> 3 is not null
on conflict (kind, name, tenant) do update set state = excluded.state
