-- One job that may have to wait for others, or be there already.
create or replace function put_one(new jsonb)
returns table (job bigint, joined boolean, refused text)
language plpgsql as $$
#variable_conflict use_column
declare
    wanted constant text := new ->> 10;
    conflict constant text := new ->> 18;
    occurrence constant text := new ->> 20;
    number bigint;
    found_id bigint;
    found_state text;
    found_priority integer;
begin
    number := nextval(pg_get_serial_sequence('jobs', 'id'));
    if occurrence is not null then
        insert into occurrences values (occurrence, number) on conflict do nothing;
        if not found then
            select o.job into number from occurrences as o where o.key = occurrence;
            return query select number, true, null::text;
            return;
        end if;
    end if;
    loop
        if wanted is not null then
            if conflict = 'replace' then
                select id, state, priority into found_id, found_state, found_priority
                from jobs where unique_key = wanted for update;
            else
                select id, state, priority into found_id, found_state, found_priority
                from jobs where unique_key = wanted;
            end if;
            exit when found;
        end if;
        insert into jobs (id, type, lane, tenant, key, upstreams, priority, not_before, deadline,
            created_at, spec, unique_key, unique_scope, batch, schedule, waits, state, since, args)
        values (number, new ->> 0, new ->> 1, new ->> 2, new ->> 3, new ->> 4, (new ->> 5)::integer,
            (new ->> 6)::double precision, (new ->> 7)::double precision,
            (new ->> 8)::double precision, new ->> 9, wanted, new ->> 11, (new ->> 12)::bigint,
            new ->> 13, (new ->> 14)::smallint, new ->> 15, (new ->> 16)::double precision,
            new ->> 17)
        on conflict (unique_key) where unique_key is not null do nothing;
        if found then
            if new ->> 19 is not null then
                insert into waits select distinct number, other::bigint
                from jsonb_array_elements_text(new -> 19) as other;
            end if;
            return query select number, false, null::text;
            return;
        end if;
        -- Somebody was quicker: look again.
    end loop;
    if conflict = 'reject' or (conflict = 'replace' and found_state = 'running') then
        raise exception '%', jsonb_build_array(found_id, conflict = 'replace', wanted)
            using errcode = 'HW001';
    elsif conflict = 'replace' then
        update jobs set args = new ->> 17 where id = found_id;
        insert into commands (at, verb, target, args) values ((new ->> 8)::double precision,
            'replace', found_id::text, jsonb_build_array(new -> 6, new -> 5)::text);
    elsif (new ->> 5)::integer < found_priority then
        insert into commands (at, verb, target, args) values ((new ->> 8)::double precision,
            'prioritise', found_id::text, new ->> 5);
    end if;
    update occurrences set job = found_id where key = occurrence;
    return query select found_id, true, null::text;
end $$;
