-- A command is deleted when it is obeyed, so those that are there are those to obey.
alter table brain drop column seen_command;
