-- What applications write into their tables, in order: a JSON array with an array for each write,
-- of the statement and its rows. A statement that fails takes all of it back.
create or replace function take_writes(writes jsonb) returns void
language plpgsql as $$
declare
    its_statement text;
    its_rows jsonb;
begin
    for its_statement, its_rows in
        select v ->> 0, v -> 1 from jsonb_array_elements(writes) with ordinality as each (v, place)
        order by place
    loop
        execute its_statement using its_rows;
    end loop;
end $$;
