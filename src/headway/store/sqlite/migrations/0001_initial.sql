-- What was asked and where it stands. A large payload is apart, so that loading a million jobs does
-- not read a million of them, and moving a job does not write its payload again. Numbers grow in the
-- order of commits, so the engine sees all new ones, and none is used twice: a new one is above all
-- that were purged, too. (`autoincrement` would do that with one more page in every commit.)
create table jobs (
    id integer primary key,
    type text not null,
    lane text not null,
    tenant text not null,
    key text,
    upstreams text,
    priority integer not null,
    not_before real not null,
    deadline real,
    created_at real not null,
    spec text,
    args text,
    unique_key text,
    unique_scope text,
    batch integer,
    schedule text,
    waits integer not null default 0,
    state text not null,
    since real not null,
    pin integer,
    fence integer not null default 0,
    upstream text,
    granted_at real,
    lease_end real,
    waited_s real,
    tries text,
    asked text,
    finished_at real,
    error text
) strict;
create index jobs_open on jobs (id) where finished_at is null;
create index jobs_ended on jobs (finished_at) where finished_at is not null;
create unique index jobs_unique on jobs (unique_key) where unique_key is not null;
create index jobs_batch on jobs (batch) where batch is not null;
create index jobs_schedule on jobs (schedule) where schedule is not null;

create table payloads (job integer primary key, args text not null) strict;
create table results (
    job integer primary key, value text not null, expires_at real not null
) strict;
create index results_expiry on results (expires_at);
create table checkpoints (job integer primary key, data text not null, at real not null) strict;
create table progress (
    job integer primary key, done real not null, total real, note text not null, at real not null
) strict;
create table logs (
    id integer primary key, job integer not null, at real not null, level text not null,
    line text not null
) strict;
create index logs_job on logs (job);
create table waits (
    job integer not null, on_job integer not null, primary key (job, on_job)
) strict, without rowid;
create index waits_on on waits (on_job);
create table batches (
    id integer primary key autoincrement, created_at real not null, label text not null
) strict;

-- The audit trail. Only the engine writes it, so its numbers have no gaps.
create table events (
    id integer primary key,
    at real not null,
    job integer,
    event text not null,
    before text,
    after text,
    fence integer not null,
    detail text not null,
    subject text
) strict;
create index events_job on events (job) where job is not null;

-- One row for each occurrence that was ever claimed and is not yet purged: none is claimed twice.
create table occurrences (key text primary key, job integer not null) strict, without rowid;
create index occurrences_job on occurrences (job);
create table schedules (
    name text primary key,
    type text not null,
    args text not null,
    rule text not null,
    options text not null,
    paused integer not null,
    strikes integer not null,
    last_due_at real,
    next_due_at real,
    missed integer not null,
    created_at real not null,
    source text not null
) strict, without rowid;

create table gates (
    kind text not null, name text not null, tenant text not null, state text not null,
    primary key (kind, name, tenant)
) strict, without rowid;
create table settings (
    kind text not null, name text not null, value text not null, at real not null,
    primary key (kind, name)
) strict, without rowid;
create table slots (
    fence integer primary key, ticket text not null, upstream text, granted_at real not null,
    lease_end real not null
) strict;
create table processes (job integer primary key, pid integer not null, started_at real not null) strict;
create table commands (
    id integer primary key autoincrement, at real not null, verb text not null,
    target text not null, args text not null
) strict;

create table brain (
    one integer primary key check (one = 1),
    term integer not null,
    fence integer not null,
    seen_job integer not null,
    seen_command integer not null,
    purged_job integer not null,  -- the largest numbers that were ever purged
    purged_event integer not null
) strict;
insert into brain values (1, 0, 0, 0, 0, 0, 0);
