-- The sequences of a schema: the last number each has given, and whether it has given any.
select sequencename, coalesce(last_value, start_value), last_value is not null
from pg_sequences where schemaname = %s
