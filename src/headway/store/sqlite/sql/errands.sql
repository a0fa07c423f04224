select p.job, p.args, c.data from json_each(?) as asked
join payloads as p on p.job = asked.value
left join checkpoints as c on c.job = asked.value
