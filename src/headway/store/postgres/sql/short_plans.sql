-- For sessions that only ever touch few rows by their keys: plans must not depend on statistics,
-- which are old or missing in a table that fills and empties all the time.
set enable_seqscan to off;
set enable_bitmapscan to off;
set enable_hashjoin to off;
set enable_mergejoin to off;
set jit to off
