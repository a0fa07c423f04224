delete from commands where id in (select value from json_each(?))
