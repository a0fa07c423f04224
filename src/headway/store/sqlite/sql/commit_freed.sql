update jobs set unique_key = null where id in (select value from json_each(?))
