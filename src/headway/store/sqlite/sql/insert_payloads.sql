-- ?1: a JSON array of texts; the number of the job before the first one is ?2
insert into payloads (job, args) select key + ?2, value from json_each(?1)
