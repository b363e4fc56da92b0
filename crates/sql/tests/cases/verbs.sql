DROP SOURCE s; DROP TABLE IF EXISTS a, public."B" CASCADE; DROP MATERIALIZED VIEW v RESTRICT; DROP VIEW v;
--> DROP SOURCE s
--> DROP TABLE IF EXISTS a, "B" CASCADE
--> DROP MATERIALIZED VIEW v
--> DROP VIEW v
ALTER SOURCE s PAUSE; ALTER MATERIALIZED VIEW public.v RESUME; ALTER TABLE t PAUSE;
--> ALTER SOURCE s PAUSE
--> ALTER MATERIALIZED VIEW v RESUME
--> ALTER TABLE t PAUSE
SHOW SOURCES; SHOW STAGES FROM orders; SHOW TABLES LIKE 'a%'; SHOW VIEWS IN public; SHOW MATERIALIZED VIEWS; SHOW JOBS;
--> SHOW SOURCES
--> SHOW STAGES FROM orders
--> SHOW TABLES LIKE 'a%'
--> SHOW VIEWS FROM public
--> SHOW MATERIALIZED VIEWS
--> SHOW JOBS
SHOW CREATE SOURCE s; SHOW CREATE MATERIALIZED VIEW public.v; SHOW CREATE TABLE t;
--> SHOW CREATE SOURCE s
--> SHOW CREATE MATERIALIZED VIEW v
--> SHOW CREATE TABLE t
DESCRIBE t; DESC segue.stages;
--> DESCRIBE t
--> DESCRIBE segue.stages
EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT 1; EXPLAIN ANALYZE CREATE SOURCE s (a int) WITH (connector = 'x');
--> EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT 1
--> EXPLAIN ANALYZE CREATE SOURCE s (
-->     a integer
--> )
--> WITH (connector = 'x')
FLUSH; flush;; WAIT; WAIT SOURCE s; WAIT MATERIALIZED VIEW v; CANCEL JOB 7; CANCEL JOBS 7, 8;
--> FLUSH
--> FLUSH
--> WAIT
--> WAIT SOURCE s
--> WAIT MATERIALIZED VIEW v
--> CANCEL JOBS 7
--> CANCEL JOBS 7, 8
DROP SOURCE;
--> ERROR 42601 syntax error at or near ";"
--> AT ;
--> DETAIL Expected a name.
DROP SOURCE s, ;
--> ERROR 42601 syntax error at or near ";"
--> AT ;
--> DETAIL Expected a name.
ALTER SOURCE s STOP;
--> ERROR 42601 syntax error at or near "STOP"
--> AT STOP;
--> DETAIL Expected PAUSE, RESUME, REFRESH or SET.
ALTER MATERIALIZED VIEW v RENAME TO w;
--> ALTER MATERIALIZED VIEW v RENAME TO w
ALTER TABLE public.t RENAME TO "T"; ALTER SINK s RENAME TO r; ALTER VIEW v RENAME TO w;
--> ALTER TABLE t RENAME TO "T"
--> ALTER SINK s RENAME TO r
--> ALTER VIEW v RENAME TO w
SHOW CREATE INDEX i;
--> ERROR 42601 syntax error at or near "INDEX"
--> AT INDEX i;
--> DETAIL Expected SOURCE, TABLE, VIEW, MATERIALIZED VIEW or SINK.
WAIT FOR s;
--> ERROR 42601 syntax error at or near "FOR"
--> AT FOR s;
--> DETAIL Expected SOURCE, TABLE, VIEW, MATERIALIZED VIEW or SINK.
CANCEL JOB one;
--> ERROR 42601 syntax error at or near "one"
--> AT one;
--> DETAIL Expected a whole number.
CANCEL QUERY 1;
--> ERROR 42601 syntax error at or near "QUERY"
--> AT QUERY 1;
--> DETAIL Expected JOBS.
FLUSH NOW;
--> ERROR 42601 syntax error at or near "NOW"
--> AT NOW;
EXPLAIN CREATE INDEX i ON t (a);
--> ERROR 0A000 EXPLAIN of this statement is not supported
--> AT CREATE INDEX i ON t (a);
PAUSE SOURCE s; RESUME TABLE t; PAUSE MATERIALIZED VIEW public.v; PAUSE JOB 3; RESUME JOBS 3, 4;
--> ALTER SOURCE s PAUSE
--> ALTER TABLE t RESUME
--> ALTER MATERIALIZED VIEW v PAUSE
--> PAUSE JOBS 3
--> RESUME JOBS 3, 4
ALTER SOURCE s REFRESH; ALTER TABLE t REFRESH;
--> ALTER SOURCE s REFRESH
--> ALTER TABLE t REFRESH
ALTER SOURCE s SET source_rate_limit = 1000; ALTER TABLE t SET SOURCE_RATE_LIMIT TO DEFAULT; ALTER SOURCE s SET source_rate_limit TO 0;
--> ALTER SOURCE s SET source_rate_limit = 1000
--> ALTER TABLE t SET source_rate_limit = DEFAULT
--> ALTER SOURCE s SET source_rate_limit = 0
ALTER MATERIALIZED VIEW v SET backfill_rate_limit = 5; ALTER TABLE t SET backfill_rate_limit = DEFAULT;
--> ALTER MATERIALIZED VIEW v SET backfill_rate_limit = 5
--> ALTER TABLE t SET backfill_rate_limit = DEFAULT
ALTER MATERIALIZED VIEW v SET PARALLELISM = 4; ALTER SOURCE s SET parallelism TO ADAPTIVE; ALTER TABLE t SET parallelism = DEFAULT;
--> ALTER MATERIALIZED VIEW v SET PARALLELISM = 4
--> ALTER SOURCE s SET PARALLELISM = ADAPTIVE
--> ALTER TABLE t SET PARALLELISM = ADAPTIVE
ALTER TABLE t SET SCHEMA other;
--> ERROR 42601 syntax error at or near "SCHEMA"
--> AT SCHEMA other;
--> DETAIL Expected (.
PAUSE;
--> ERROR 42601 syntax error at or near ";"
--> AT ;
--> DETAIL Expected SOURCE, TABLE, MATERIALIZED VIEW or JOB.
PAUSE INDEX i;
--> ERROR 42601 syntax error at or near "INDEX"
--> AT INDEX i;
--> DETAIL Expected SOURCE, TABLE, MATERIALIZED VIEW or JOB.
RESUME JOB one;
--> ERROR 42601 syntax error at or near "one"
--> AT one;
--> DETAIL Expected a whole number.
ALTER SOURCE s REFRESH SCHEMA;
--> ERROR 0A000 ALTER SOURCE … REFRESH is not supported
--> AT REFRESH SCHEMA;
--> HINT Drop it and create it again.
ALTER SOURCE s SET source_rate_limit 5;
--> ERROR 42601 syntax error at or near "5"
--> AT 5;
--> DETAIL Expected "=" or TO.
ALTER SOURCE s SET source_rate_limit = -1;
--> ERROR 42601 syntax error at or near "-"
--> AT -1;
--> DETAIL Expected a whole number of rows per second, or DEFAULT.
ALTER SOURCE s SET source_rate_limit = 'many';
--> ERROR 42601 syntax error at or near "'many'"
--> AT 'many';
--> DETAIL Expected a whole number of rows per second, or DEFAULT.
ALTER SOURCE s SET parallelism = 0;
--> ERROR 22023 PARALLELISM must be at least 1
--> AT 0;
ALTER SOURCE s SET colour = 5;
--> ERROR 0A000 ALTER SOURCE … SET is not supported
--> AT SET colour = 5;
--> HINT Drop it and create it again.
CREATE INDEX i ON t (a, b DESC); CREATE UNIQUE INDEX IF NOT EXISTS i ON public.t USING btree (lower(a)) INCLUDE (b) DISTRIBUTED BY (a); CREATE INDEX ON t (a) DISTRIBUTED BY a;
--> CREATE INDEX i ON t (a, b DESC)
--> CREATE INDEX IF NOT EXISTS i ON t (lower(a)) INCLUDE (b) DISTRIBUTED BY (a)
--> CREATE INDEX ON t (a) DISTRIBUTED BY (a)
DROP INDEX i; DROP INDEX IF EXISTS i, j CASCADE;
--> DROP INDEX i
--> DROP INDEX IF EXISTS i, j
CREATE INDEX i ON t;
--> ERROR 42601 syntax error at or near ";"
--> AT ;
--> DETAIL Expected "(".
CREATE INDEX i;
--> ERROR 42601 syntax error at or near ";"
--> AT ;
--> DETAIL Expected ON.
