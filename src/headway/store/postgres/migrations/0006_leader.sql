-- Who leads, and until when unless that is renewed, by the clock of the database alone. It is not in
-- the row of the brain, which is locked while a turn is taken.
create table leader (
    one integer primary key check (one = 1),
    term bigint not null,
    lease_end timestamptz not null,
    holder text not null
) with (fillfactor = 20);
insert into leader select 1, term, '-infinity', '' from brain;
alter table brain drop column holder;

-- The servers that share this store.
create table servers (
    id text primary key,
    about text not null,
    seen_at timestamptz not null
) with (fillfactor = 20);
