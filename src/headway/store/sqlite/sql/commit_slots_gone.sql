delete from slots where number in (select value from json_each(?))
