select coalesce(j.args, p.args) from jobs as j left join payloads as p on p.job = j.id
where j.id = ? and coalesce(j.args, p.args) is not null
