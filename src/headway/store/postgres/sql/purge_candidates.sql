select id from jobs where finished_at is not null and (
    (state <> 'failed' and finished_at < %s) or (state = 'failed' and finished_at < %s)
) order by finished_at limit %s for update skip locked
