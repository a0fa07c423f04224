select max(purged_event, coalesce((select max(id) from events), 0)) from brain
