delete from settings where (kind, name) in (
    select value ->> 0, value ->> 1 from jsonb_each(?) where value ->> 2 is null)
