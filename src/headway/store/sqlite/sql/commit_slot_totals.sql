insert into slot_totals (upstream, reclaimed, outlived, outlived_s)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3 from jsonb_each(?) where true
on conflict (upstream) do update set reclaimed = excluded.reclaimed, outlived = excluded.outlived,
    outlived_s = excluded.outlived_s
