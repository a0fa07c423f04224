delete from slots where fence in (select value from json_each(?))
