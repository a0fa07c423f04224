-- Slots of clients outside: who waits, who holds, and whose lease is over. What was here before was
-- forgotten at each restart.
drop table slots;
create table slots (
    number integer primary key, phase text not null, fence integer not null, upstream text,
    wish text, created_at real not null, granted_at real not null, lease_end real not null,
    claimed integer not null
) strict;
create table slot_totals (
    upstream text primary key, reclaimed integer not null, outlived integer not null,
    outlived_s real not null
) strict, without rowid;
