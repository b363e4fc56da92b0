CREATE TABLE t (a int PRIMARY KEY, b text NOT NULL DEFAULT 'x', c numeric NULL);
--> CREATE TABLE t (
-->     a integer,
-->     b text NOT NULL DEFAULT 'x',
-->     c numeric(38,10),
-->     PRIMARY KEY (a)
--> )
CREATE TABLE IF NOT EXISTS public.t (a int, b int, PRIMARY KEY (a, b)) ON CONFLICT DO UPDATE FULL;
--> CREATE TABLE IF NOT EXISTS t (
-->     a integer,
-->     b integer,
-->     PRIMARY KEY (a, b)
--> ) ON CONFLICT OVERWRITE
CREATE TABLE t (a int) APPEND ONLY;
--> CREATE TABLE t (
-->     a integer
--> ) APPEND ONLY
CREATE TABLE t (a int PRIMARY KEY) ON CONFLICT DO NOTHING WITH STAGES (
    h WITH (connector = 'postgres', query = 'SELECT 1'),
    l WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON
);
--> CREATE TABLE t (
-->     a integer,
-->     PRIMARY KEY (a)
--> ) ON CONFLICT DO NOTHING
--> WITH STAGES (
-->     h WITH (connector = 'postgres', query = 'SELECT 1'),
-->     l WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON
--> )
CREATE TABLE t (a int PRIMARY KEY) ON CONFLICT DO UPDATE IF NOT NULL WITH (connector = 'kafka');
--> CREATE TABLE t (
-->     a integer,
-->     PRIMARY KEY (a)
--> ) ON CONFLICT DO UPDATE IF NOT NULL
--> WITH (connector = 'kafka')
CREATE TABLE t AS SELECT 1 AS a;
--> SQL CREATE TABLE t AS SELECT 1 AS a
CREATE TABLE t;
--> ERROR 42601 syntax error at or near ";"
--> AT ;
--> DETAIL Expected a list of columns in parentheses.
CREATE TABLE t (a int) ON CONFLICT EXPLODE;
--> ERROR 42601 syntax error at or near "EXPLODE"
--> AT EXPLODE;
--> DETAIL Expected DO NOTHING, OVERWRITE, DO UPDATE FULL or DO UPDATE IF NOT NULL.
CREATE TABLE t (a int, b int) ON CONFLICT OVERWRITE WITH VERSION COLUMN (b);
--> CREATE TABLE t (
-->     a integer,
-->     b integer
--> ) ON CONFLICT OVERWRITE WITH VERSION COLUMN (b)
CREATE TABLE t (a int UNIQUE);
--> ERROR 0A000 UNIQUE constraints are not supported
--> AT UNIQUE);
CREATE TABLE t (a int, CHECK (a > 0));
--> ERROR 0A000 CHECK constraints are not supported
--> AT CHECK (a > 0));
CREATE TABLE t (a int REFERENCES u);
--> ERROR 0A000 FOREIGN KEY constraints are not supported
--> AT REFERENCES u);
CREATE TABLE t (a int PRIMARY KEY PRIMARY KEY);
--> ERROR 42601 syntax error at or near "PRIMARY"
--> AT PRIMARY KEY);
--> DETAIL Expected ")".
CREATE TEMPORARY TABLE t (a int);
--> SQL CREATE TEMPORARY TABLE t (a INT)
CREATE TABLE t (a int, b int, PRIMARY KEY (a DESC, b asc)) APPEND ONLY WITH (source_rate_limit = 5);
--> CREATE TABLE t (
-->     a integer,
-->     b integer,
-->     PRIMARY KEY (a, b)
--> ) APPEND ONLY
CREATE TABLE t (a int) WITH ('appendonly' = true);
--> CREATE TABLE t (
-->     a integer
--> ) APPEND ONLY
CREATE USER u WITH PASSWORD 'p';
--> SQL CREATE ROLE u PASSWORD 'p'
