-- The role of servers and workers, which uses the tables and creates none. Run it with psql, once, as the role that runs
-- `axolotl tasks prepare` later: everything that this role creates can be used by the other.
\set password `cat /run/secrets/worker-password`
create role worker login password :'password';
alter default privileges grant usage on schemas to worker;
alter default privileges grant select, insert, update, delete on tables to worker;
alter default privileges grant usage on sequences to worker;
