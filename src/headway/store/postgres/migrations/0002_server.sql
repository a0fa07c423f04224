-- Who did it, and from where; null: the system by itself.
alter table events add column who text;
create index events_who on events (id) where who is not null;
alter table commands add column who text;
alter table batches add column tenant text not null default '';

-- Of a token only the hash is here; it is shown once, when it is made.
create table tokens (
    id text primary key,
    name text not null,
    hash text not null,
    scopes text not null,
    tenant text,
    created_at double precision not null,
    expires_at double precision,
    revoked_at double precision,
    last_used_at double precision
);
create table secrets (name text primary key, value text not null);
