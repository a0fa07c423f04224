delete from commands where id <= ?
