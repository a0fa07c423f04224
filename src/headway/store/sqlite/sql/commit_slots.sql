insert into slots
    (number, phase, fence, upstream, wish, created_at, granted_at, lease_end, claimed)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
    value ->> 7, value ->> 8
from jsonb_each(?) where true
on conflict (number) do update set phase = excluded.phase, fence = excluded.fence,
    upstream = excluded.upstream, wish = excluded.wish, granted_at = excluded.granted_at,
    lease_end = excluded.lease_end, claimed = excluded.claimed
