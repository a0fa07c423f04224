select j.id, j.args, c.data from jobs as j left join checkpoints as c on c.job = j.id
where j.id = any(?)
