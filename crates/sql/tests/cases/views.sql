CREATE MATERIALIZED VIEW v AS SELECT a, count(*) -- all of them
    FROM t GROUP BY a;
--> CREATE MATERIALIZED VIEW v AS SELECT a, count(*) -- all of them
-->     FROM t GROUP BY a
CREATE MATERIALIZED VIEW IF NOT EXISTS v (x, "Y") AS WITH c AS (SELECT 1, 2) SELECT * FROM c;
--> CREATE MATERIALIZED VIEW IF NOT EXISTS v (x, "Y") AS WITH c AS (SELECT 1, 2) SELECT * FROM c
CREATE OR REPLACE VIEW v AS (SELECT 1) UNION ALL (SELECT 2);
--> CREATE OR REPLACE VIEW v AS (SELECT 1) UNION ALL (SELECT 2)
CREATE OR REPLACE VIEW IF NOT EXISTS v AS SELECT 1;
--> ERROR 42601 syntax error at or near "IF"
--> AT IF NOT EXISTS v AS SELECT 1;
--> DETAIL Expected a name.
CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE;
--> ERROR 42601 syntax error at or near ";"
--> AT ;
--> DETAIL Expected an expression.
CREATE MATERIALIZED VIEW v AS SELECT a FROM t EMIT ON WINDOW CLOSE;
--> ERROR 0A000 EMIT ON WINDOW CLOSE is not supported
--> AT EMIT ON WINDOW CLOSE;
CREATE MATERIALIZED VIEW v AS SELECT 1 SELECT 2;
--> ERROR 42601 syntax error at or near "SELECT"
--> AT SELECT 2;
CREATE MATERIALIZED VIEW v AS INSERT INTO t VALUES (1);
--> ERROR 42601 syntax error at or near "INSERT"
--> AT INSERT INTO t VALUES (1);
--> DETAIL Expected a query.
CREATE MATERIALIZED VIEW v AS;
--> ERROR 42601 syntax error at or near ";"
--> AT ;
--> DETAIL Expected SELECT, VALUES, or a subquery in the query body.
CREATE MATERIALIZED v AS SELECT 1;
--> ERROR 42601 syntax error at or near "v"
--> AT v AS SELECT 1;
--> DETAIL Expected VIEW.
CREATE VIEW v WITH (x = 1) AS SELECT 1;
--> ERROR 0A000 options of a view are not supported
--> AT WITH (x = 1) AS SELECT 1;
CREATE VIEW v () AS SELECT 1;
--> ERROR 42601 syntax error at or near ")"
--> AT ) AS SELECT 1;
--> DETAIL Expected a name.
