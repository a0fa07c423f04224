-- JSON that somebody has handed in, to look for something in it. jsonb has no NUL, so a character
-- stands for it that is none. What is no JSON has nothing in it, and disturbs nobody.
create or replace function read_json(its_text text) returns jsonb
language plpgsql immutable strict as $$
begin
    return its_text::jsonb;
exception when others then
    begin
        return regexp_replace(its_text, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\uffff', 'g')::jsonb;
    exception when others then
        return null;
    end;
end $$;
