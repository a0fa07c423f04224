-- For triggers, and programs in any language: one job, by the names of its arguments. Like all of
-- it, in the caller's transaction. A unique key that is taken gives the job that is there.
create or replace function enqueue(
    type text, args jsonb default '{}', lane text default 'default', tenant text default '',
    key text default null, upstreams text[] default null, priority integer default 5,
    not_before timestamptz default null, unique_key text default null
) returns bigint
language plpgsql set search_path from current as $$
declare
    at constant double precision := extract(epoch from clock_timestamp());
    due_at constant double precision := coalesce(extract(epoch from not_before), 0);
    number bigint;
begin
    select job into strict number from put(jsonb_build_array(jsonb_build_array(
        type, lane, tenant, key, to_jsonb(upstreams)::text, priority, due_at, null, at, null,
        type || ':' || unique_key, case when unique_key is not null then 'queued+running' end,
        null, null, 0, case when due_at > at then 'pending' else 'queued' end, at, args::text,
        case when unique_key is not null then 'join' end, null, null))::text);
    perform pg_notify('headway_' || current_schema(), '');
    return number;
end $$;
