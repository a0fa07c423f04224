update jobs set finished_at = null, error = null where id in (select value from json_each(?))
