-- How every session of ours behaves, whatever the server's defaults are.
set search_path to {schema}, pg_temp;
set default_transaction_isolation to 'read committed';
set default_transaction_read_only to off;
set statement_timeout to 0;
set idle_in_transaction_session_timeout to 0;
set idle_session_timeout to 0;
set lock_timeout to '10s';
set tcp_keepalives_idle to 10;
set tcp_keepalives_interval to 5;
set tcp_keepalives_count to 3;
select set_config('synchronous_commit', 'on', false)
where current_setting('synchronous_commit') = 'off'
