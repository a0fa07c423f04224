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
    created_at real not null,
    expires_at real,
    revoked_at real,
    last_used_at real
) strict, without rowid;
create table secrets (name text primary key, value text not null) strict, without rowid;
