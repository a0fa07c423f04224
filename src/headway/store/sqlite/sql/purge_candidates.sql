-- ?1, ?2: completed (or cancelled) and failed jobs that ended before then; ?3: at most so many
select id from jobs where finished_at is not null and (
    (state <> 'failed' and finished_at < ?1) or (state = 'failed' and finished_at < ?2)
) order by finished_at limit ?3
