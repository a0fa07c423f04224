-- Of every table of a schema: its constraints, and the indexes that no constraint brings; and
-- whether each needs other tables, with their rows.
with extras as (
    select
        c.relname as name,
        1 as place,
        format('alter table %%I add constraint %%I %%s', c.relname, k.conname,
            pg_get_constraintdef(k.oid, true)) as words,
        k.contype = 'f' as needs_others
    from pg_class as c
    join pg_namespace as n on n.oid = c.relnamespace
    join pg_constraint as k on k.conrelid = c.oid and k.contype in ('p', 'u', 'c', 'x', 'f')
    where n.nspname = %(schema)s and c.relkind in ('r', 'p')
    union all
    select c.relname, 2, pg_get_indexdef(i.indexrelid, 0, true), false
    from pg_class as c
    join pg_namespace as n on n.oid = c.relnamespace
    join pg_index as i on i.indrelid = c.oid
    where
        n.nspname = %(schema)s and c.relkind in ('r', 'p')
        and not exists (select from pg_constraint as k where k.conindid = i.indexrelid)
)

select name, words, needs_others from extras order by name, place, words
