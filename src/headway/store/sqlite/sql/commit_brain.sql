update brain set fence = max(fence, ?2), seen_job = max(seen_job, ?3),
    seen_command = max(seen_command, ?4)
where term = ?1
