delete from processes where job in (select value ->> 0 from jsonb_each(?) where value ->> 1 is null)
