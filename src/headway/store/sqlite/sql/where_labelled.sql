not exists (
    select 1 from json_each(?) as wanted where not exists (
        select 1 from json_each(case when json_valid(spec) then spec end, '$.labels') as label
        where label.key = wanted.key and label.atom = wanted.atom))
