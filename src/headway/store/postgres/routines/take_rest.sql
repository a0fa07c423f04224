-- What is rare in a turn, by the name of its list.
create or replace function take_rest(rest jsonb) returns void
language plpgsql as $$
#variable_conflict use_column
begin
    if rest ? 'reopened' then
        update jobs set finished_at = null, error = null
        from jsonb_array_elements_text(rest -> 'reopened') as v where id = v::bigint;
    end if;
    if rest ? 'moved' then
        update jobs set state = v ->> 1, since = (v ->> 2)::double precision,
            not_before = (v ->> 3)::double precision, priority = (v ->> 4)::integer,
            pin = (v ->> 5)::bigint, fence = (v ->> 6)::bigint, upstream = v ->> 7,
            granted_at = (v ->> 8)::double precision, lease_end = (v ->> 9)::double precision,
            waited_s = (v ->> 10)::double precision, tries = v ->> 11, asked = v ->> 12,
            error = coalesce(v ->> 13, error)
        from jsonb_array_elements(rest -> 'moved') as v where id = (v ->> 0)::bigint;
    end if;
    if rest ? 'ended' then
        update jobs set state = v ->> 1, since = (v ->> 2)::double precision,
            finished_at = (v ->> 2)::double precision, tries = v ->> 3, error = v ->> 4,
            lease_end = null
        from jsonb_array_elements(rest -> 'ended') as v where id = (v ->> 0)::bigint;
    end if;
    if rest ? 'freed' then
        update jobs set unique_key = null
        from jsonb_array_elements_text(rest -> 'freed') as v where id = v::bigint;
    end if;
    if rest ? 'released' then
        update jobs set waits = 0
        from jsonb_array_elements_text(rest -> 'released') as v where id = v::bigint;
        delete from waits using jsonb_array_elements_text(rest -> 'released') as v
        where job = v::bigint;
    end if;
    if rest ? 'results' then
        insert into results select (v ->> 0)::bigint, v ->> 1, (v ->> 2)::double precision
        from jsonb_array_elements(rest -> 'results') as v
        on conflict (job) do update set value = excluded.value, expires_at = excluded.expires_at;
    end if;
    if rest ? 'progress' then
        insert into progress select (v ->> 0)::bigint, (v ->> 1)::double precision,
            (v ->> 2)::double precision, v ->> 3, (v ->> 4)::double precision
        from jsonb_array_elements(rest -> 'progress') as v
        on conflict (job) do update set done = excluded.done, total = excluded.total,
            note = excluded.note, at = excluded.at;
    end if;
    if rest ? 'checkpoints' then
        insert into checkpoints select (v ->> 0)::bigint, v ->> 1, (v ->> 2)::double precision
        from jsonb_array_elements(rest -> 'checkpoints') as v
        on conflict (job) do update set data = excluded.data, at = excluded.at;
    end if;
    if rest ? 'logs' then
        insert into logs (job, at, level, line)
        select (v ->> 0)::bigint, (v ->> 1)::double precision, v ->> 2, v ->> 3
        from jsonb_array_elements(rest -> 'logs') with ordinality as each (v, place)
        order by place;
    end if;
    perform take_other(rest);
end $$;
