-- Slots of clients outside: who waits, who holds, and whose lease is over. What was here before was
-- forgotten at each restart.
drop table slots;
create table slots (
    number bigint primary key, phase text not null, fence bigint not null, upstream text,
    wish text, created_at double precision not null, granted_at double precision not null,
    lease_end double precision not null, claimed smallint not null
) with (fillfactor = 50);
create table slot_totals (
    upstream text primary key, reclaimed bigint not null, outlived bigint not null,
    outlived_s double precision not null
);
