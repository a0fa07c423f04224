delete from waits where job in (select value from json_each(?))
