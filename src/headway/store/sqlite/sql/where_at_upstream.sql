(upstream = ? or exists (
    select 1 from json_each(case when json_valid(upstreams) then upstreams end) as candidate
    where candidate.atom = ?))
