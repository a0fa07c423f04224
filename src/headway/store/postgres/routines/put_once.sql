-- What `put` does, once for each number of a producer: whoever does not know whether he was heard
-- asks again, and gets the same answer. `its_place` is where the row of the producer was last, which
-- is quicker than its key when an old transaction keeps many versions of it alive. `its_bell` is
-- rung with the commit, if it is not null.
create or replace function put_once(
    its_token uuid, its_number bigint, texts text, its_place text, its_bell text,
    out answers text, out place text
)
language plpgsql as $$
#variable_conflict use_column
declare
    last bigint;
begin
    select number, producers.answers, ctid::text into last, answers, place
    from producers where ctid = its_place::tid and token = its_token for update;
    while last is null loop
        select number, producers.answers, ctid::text into last, answers, place
        from producers where token = its_token for update;
        if last is null then
            insert into producers (token, number, at) values (its_token, 0, now())
            on conflict do nothing;
        end if;
    end loop;
    if its_bell is not null then  -- also when this is asked again: then nobody may have rung yet
        perform pg_notify(its_bell, '');
    end if;
    if last >= its_number then
        return;
    end if;
    select json_agg(case when joined then json_build_array(job, refused) else to_json(job) end)
    into answers from put(texts);
    update producers set number = its_number, answers = put_once.answers, at = now()
    where ctid = put_once.place::tid returning ctid::text into place;
end $$;
