-- What is rarer still, and does not belong to a job.
create or replace function take_other(rest jsonb) returns void
language plpgsql as $$
#variable_conflict use_column
declare
    refusal text;
begin
    if rest ? 'processes' then
        delete from processes using jsonb_array_elements(rest -> 'processes') as v
        where v ->> 1 is null and job = (v ->> 0)::bigint;
        insert into processes select (v ->> 0)::bigint, (v ->> 1)::bigint,
            (v ->> 2)::double precision
        from jsonb_array_elements(rest -> 'processes') as v where v ->> 1 is not null
        on conflict (job) do update set pid = excluded.pid, started_at = excluded.started_at;
    end if;
    if rest ? 'settings' then
        delete from settings using jsonb_array_elements(rest -> 'settings') as v
        where v ->> 2 is null and kind = v ->> 0 and name = v ->> 1;
        insert into settings select v ->> 0, v ->> 1, v ->> 2, (v ->> 3)::double precision
        from jsonb_array_elements(rest -> 'settings') as v where v ->> 2 is not null
        on conflict (kind, name) do update set value = excluded.value, at = excluded.at;
    end if;
    if rest ? 'schedules' then
        insert into schedules select v ->> 0, v ->> 1, v ->> 2, v ->> 3, v ->> 4,
            (v ->> 5)::smallint, (v ->> 6)::integer, (v ->> 7)::double precision,
            (v ->> 8)::double precision, (v ->> 9)::bigint, (v ->> 10)::double precision, v ->> 11
        from jsonb_array_elements(rest -> 'schedules') as v
        on conflict (name) do update set type = excluded.type, args = excluded.args,
            rule = excluded.rule, options = excluded.options, paused = excluded.paused,
            strikes = excluded.strikes, last_due_at = excluded.last_due_at,
            next_due_at = excluded.next_due_at, missed = excluded.missed, source = excluded.source;
    end if;
    if rest ? 'schedules_gone' then
        delete from schedules using jsonb_array_elements_text(rest -> 'schedules_gone') as v
        where name = v;
    end if;
    if rest ? 'slots' then
        insert into slots select (v ->> 0)::bigint, v ->> 1, (v ->> 2)::bigint, v ->> 3, v ->> 4,
            (v ->> 5)::double precision, (v ->> 6)::double precision, (v ->> 7)::double precision,
            (v ->> 8)::smallint
        from jsonb_array_elements(rest -> 'slots') as v
        on conflict (number) do update set phase = excluded.phase, fence = excluded.fence,
            upstream = excluded.upstream, wish = excluded.wish, granted_at = excluded.granted_at,
            lease_end = excluded.lease_end, claimed = excluded.claimed;
    end if;
    if rest ? 'slots_gone' then
        delete from slots using jsonb_array_elements_text(rest -> 'slots_gone') as v
        where number = v::bigint;
    end if;
    if rest ? 'slot_totals' then
        insert into slot_totals select v ->> 0, (v ->> 1)::bigint, (v ->> 2)::bigint,
            (v ->> 3)::double precision
        from jsonb_array_elements(rest -> 'slot_totals') as v
        on conflict (upstream) do update set reclaimed = excluded.reclaimed,
            outlived = excluded.outlived, outlived_s = excluded.outlived_s;
    end if;
    if rest ? 'obeyed' then
        delete from commands using jsonb_array_elements_text(rest -> 'obeyed') as v
        where id = v::bigint;
    end if;
    if rest ? 'jobs' then
        select refused into refusal from put(rest ->> 'jobs') where refused is not null;
        if found then
            raise exception '%', refusal using errcode = 'HW001';
        end if;
    end if;
end $$;
