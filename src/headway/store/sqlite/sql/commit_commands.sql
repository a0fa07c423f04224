delete from commands where id <= new.seen_command
