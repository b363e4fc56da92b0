-- What is not ours stays sqlparser's.
SELECT 1; INSERT INTO t VALUES (1, 'a;b'); BEGIN; SET background_ddl = true; SHOW server_version; SHOW ALL;
--> SQL SELECT 1
--> SQL INSERT INTO t VALUES (1, 'a;b')
--> SQL BEGIN
--> SQL SET background_ddl = true
--> SQL SHOW server_version
--> SQL SHOW ALL
EXPLAIN SELECT a FROM t; EXPLAIN (VERBOSE) SELECT 1; ALTER TABLE t ADD COLUMN b int; CREATE INDEX i ON t (a);
--> SQL EXPLAIN SELECT a FROM t
--> SQL EXPLAIN (VERBOSE) SELECT 1
--> SQL ALTER TABLE t ADD COLUMN b INT
--> CREATE INDEX i ON t (a)
-- COPY does not take what follows for its data.
COPY t (a, b) FROM STDIN WITH (FORMAT csv); SELECT 2;
--> SQL COPY t (a, b) FROM STDIN (FORMAT csv)
--> SQL SELECT 2
/* nothing */ ; -- at all
;
SELECT E'a\'b', $x$ it's $x$, "a""b", 'é → ü' FROM;
--> ERROR 42601 syntax error at or near ";"
--> AT ;
--> DETAIL Expected identifier.
SELECT * FROM t WHERE;
--> ERROR 42601 syntax error at or near ";"
--> AT ;
--> DETAIL Expected an expression.
SELECT 'é', 1 +;
--> ERROR 42601 syntax error at or near ";"
--> AT ;
--> DETAIL Expected an expression.
SELECT 1 SELECT 2;
--> ERROR 42601 syntax error at or near "SELECT"
--> AT SELECT 2;
SELEC 1;
--> ERROR 42601 syntax error at or near "SELEC"
--> AT SELEC 1;
--> DETAIL Expected an SQL statement.
SELECT 1; SELECT );
--> ERROR 42601 syntax error at or near ")"
--> AT );
--> DETAIL Expected an expression.
SELECT 'it is not over;
--> ERROR 42601 unterminated quoted string at or near "'it is not over;"
--> AT 'it is not over;
SELECT "it is not over;
--> ERROR 42601 unterminated quoted identifier at or near ""it is not over;"
--> AT "it is not over;
SELECT 1 /* it is not over;
--> ERROR 42601 unterminated /* comment at or near "/* it is not over;"
--> AT /* it is not over;
SELECT $x$ it is not over;
--> ERROR 42601 unterminated dollar-quoted string at or near "$x$ it is not over;"
--> AT $x$ it is not over;
SELECT 'postgres://app:secret@db' 'postgres://app:secret@db' 2;
--> ERROR 42601 syntax error at or near "2"
--> AT 2;
