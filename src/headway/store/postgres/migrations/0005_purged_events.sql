-- Up to this event some are missing between those that are still here.
create table purged_events (up_to bigint not null);
insert into purged_events (up_to) values (0);
