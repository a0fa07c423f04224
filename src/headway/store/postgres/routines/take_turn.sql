-- All that one turn of the engine decided. Says false, and changes nothing, when the term is over
-- or this turn was taken already. Most turns grant, complete and say so; `its_rest` has what is rare.
-- `its_place` is where the row of the brain was last: without it, all its versions would be read
-- that some old transaction elsewhere keeps alive. Answers where it is now.
create or replace function take_turn(
    its_term bigint, its_turn bigint, its_fence bigint, its_mark text,
    its_granted jsonb, its_completed jsonb, its_events jsonb, its_gates jsonb, its_rest jsonb,
    its_place text
) returns text
language plpgsql as $$
#variable_conflict use_column
declare
    many constant bigint := coalesce(jsonb_array_length(its_events), 0);
    base bigint;
    place text;
begin
    update brain set turn = its_turn, fence = greatest(fence, its_fence),
        mark = coalesce(its_mark, mark), last_event = last_event + many
    where ctid = its_place::tid and term = its_term and turn = its_turn - 1
    returning last_event - many, ctid::text into base, place;
    if not found then
        update brain set turn = its_turn, fence = greatest(fence, its_fence),
            mark = coalesce(its_mark, mark), last_event = last_event + many
        where term = its_term and turn = its_turn - 1
        returning last_event - many, ctid::text into base, place;
    end if;
    if not found then
        return null;
    end if;
    if its_rest is not null then
        perform take_rest(its_rest);
    end if;
    if its_granted is not null then
        update jobs set state = 'running', since = (v ->> 1)::double precision,
            granted_at = (v ->> 1)::double precision, fence = (v ->> 2)::bigint, upstream = v ->> 3,
            lease_end = (v ->> 4)::double precision, waited_s = (v ->> 5)::double precision,
            asked = null
        from jsonb_array_elements(its_granted) as v where id = (v ->> 0)::bigint;
    end if;
    if its_completed is not null then
        update jobs set state = 'completed', since = (v ->> 1)::double precision,
            finished_at = (v ->> 1)::double precision, error = null, lease_end = null
        from jsonb_array_elements(its_completed) as v where id = (v ->> 0)::bigint;
    end if;
    if its_events is not null then
        insert into events (id, at, job, event, before, after, fence, detail, subject, who)
        select base + place, (v ->> 0)::double precision, (v ->> 1)::bigint, v ->> 2, v ->> 3,
            v ->> 4, (v ->> 5)::bigint, v ->> 6, v ->> 7, v ->> 8
        from jsonb_array_elements(its_events) with ordinality as each (v, place);
    end if;
    if its_gates is not null then
        delete from gates using jsonb_array_elements(its_gates) as v
        where v ->> 3 is null and kind = v ->> 0 and name = v ->> 1 and tenant = v ->> 2;
        insert into gates select v ->> 0, v ->> 1, v ->> 2, v ->> 3
        from jsonb_array_elements(its_gates) as v where v ->> 3 is not null
        on conflict (kind, name, tenant) do update set state = excluded.state;
    end if;
    if its_rest ? 'writes' then
        perform take_writes(its_rest -> 'writes');
    end if;
    return place;
end $$;
