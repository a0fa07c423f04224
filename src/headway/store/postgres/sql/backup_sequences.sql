-- The sequences of a schema: the last number each has given, whether it has given any, the words
-- that make it, and those that bind it to the column it is of. No words for those of identity
-- columns: they come with the column.
select
    s.relname,
    coalesce(v.last_value, v.start_value),
    v.last_value is not null,
    case when d.deptype is distinct from 'i' then
        format(
            'create sequence %%I as %%s increment by %%s minvalue %%s maxvalue %%s '
            'start with %%s cache %%s%%s',
            s.relname, v.data_type, v.increment_by, v.min_value, v.max_value, v.start_value,
            v.cache_size, case when v.cycle then ' cycle' else '' end
        )
    end,
    case when d.deptype = 'a' then
        format('alter sequence %%I owned by %%I.%%I', s.relname, c.relname, a.attname)
    end
from pg_class as s
join pg_namespace as n on n.oid = s.relnamespace
join pg_sequences as v on v.schemaname = n.nspname and v.sequencename = s.relname
left join pg_depend as d
    on d.classid = 'pg_class'::regclass and d.objid = s.oid
    and d.refclassid = 'pg_class'::regclass and d.refobjsubid > 0 and d.deptype in ('a', 'i')
left join pg_class as c on c.oid = d.refobjid
left join pg_attribute as a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
where s.relkind = 'S' and n.nspname = %s
