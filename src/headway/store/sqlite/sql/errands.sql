select j.id, coalesce(j.args, p.args), c.data from json_each(?) as asked
join jobs as j on j.id = asked.value
left join payloads as p on p.job = asked.value
left join checkpoints as c on c.job = asked.value
where coalesce(j.args, p.args) is not null
