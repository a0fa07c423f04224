select raise(abort, 'stale brain') where not exists (select 1 from brain where term = new.term);
update brain set fence = max(fence, new.fence), seen_job = max(seen_job, new.seen_job)
