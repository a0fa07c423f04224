-- Applications have their own tables here; this says which version of them.
create table app_schemas (app text primary key, version bigint not null);
