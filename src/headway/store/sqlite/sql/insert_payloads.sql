-- ?1: a JSON array of texts; the number of the first job is ?2
insert into payloads (job, args) select key + ?2, value from json_each(?1)
