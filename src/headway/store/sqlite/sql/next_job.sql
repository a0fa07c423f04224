select 1 + max(purged_job, coalesce((select max(id) from jobs), 0)) from brain
