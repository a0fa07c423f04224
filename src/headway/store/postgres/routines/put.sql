-- New jobs, a JSON array with one array for each: all of them or none, and the answers in order.
-- `refused` says why there are none: the job that is there, whether it runs, and the key. Everybody
-- who enqueues calls this, also from SQL. Only a job that is unique, waits for others or is an
-- occurrence has more than 18 columns.
create or replace function put(texts text)
returns table (job bigint, joined boolean, refused text)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    news constant jsonb := texts::jsonb;
    new jsonb;
begin
    if not exists (
        select from jsonb_array_elements(news) as v
        where jsonb_array_length(v) > 18
    ) then
        return query insert into jobs (type, lane, tenant, key, upstreams, priority, not_before,
            deadline, created_at, spec, batch, schedule, waits, state, since, args)
        select v ->> 0, v ->> 1, v ->> 2, v ->> 3, v ->> 4, (v ->> 5)::integer,
            (v ->> 6)::double precision, (v ->> 7)::double precision, (v ->> 8)::double precision,
            v ->> 9, (v ->> 12)::bigint, v ->> 13, (v ->> 14)::smallint, v ->> 15,
            (v ->> 16)::double precision, v ->> 17
        from jsonb_array_elements(news) with ordinality as each (v, place) order by place
        returning id, false, null::text;
        return;
    end if;
    begin  -- what was put before a refusal is taken back, and the caller's transaction lives
        for new in select v from jsonb_array_elements(news) with ordinality as each (v, place)
                   order by place loop
            return query select * from put_one(new);
        end loop;
    exception when sqlstate 'HW001' then
        return query select null::bigint, true, sqlerrm;
    end;
end $$;
