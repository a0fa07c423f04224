insert into payloads (job, args) values (last_insert_rowid(), ?)
