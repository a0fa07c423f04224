delete from gates where (kind, name, tenant) in (
    select value ->> 0, value ->> 1, value ->> 2 from jsonb_each(?) where value ->> 3 is null)
