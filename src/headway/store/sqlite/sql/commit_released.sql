update jobs set waits = 0 where id in (select value from json_each(?))
