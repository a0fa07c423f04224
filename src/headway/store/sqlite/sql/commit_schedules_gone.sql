delete from schedules where name in (select value from json_each(?))
