-- One stage, with everything that a column list may say.
CREATE SOURCE IF NOT EXISTS orders (
    order_id BIGINT PRIMARY KEY,
    "Customer" varchar(20) NOT NULL,
    amount NUMERIC(12,2) DEFAULT 0,
    at TIMESTAMP WITH TIME ZONE,
    WATERMARK FOR at AS at - INTERVAL '5' SECOND,
)
INCLUDE partition INCLUDE offset AS "offset" INCLUDE header 'trace' AS trace
WITH (connector = 'kafka', properties.bootstrap.server = 'k:9092', topic = 'shop.orders', retries = -3, tls = TRUE)
FORMAT plain ENCODE json (timestamptz.handling.mode = 'milli');
--> CREATE SOURCE IF NOT EXISTS orders (
-->     order_id bigint,
-->     "Customer" text NOT NULL,
-->     amount numeric(12,2) DEFAULT 0,
-->     at timestamptz,
-->     PRIMARY KEY (order_id),
-->     WATERMARK FOR at AS at - INTERVAL '5' SECOND
--> )
--> INCLUDE partition
--> INCLUDE offset AS "offset"
--> INCLUDE header 'trace' AS trace
--> WITH (connector = 'kafka', properties.bootstrap.server = 'k:9092', topic = 'shop.orders', retries = '-3', tls = 'true') FORMAT PLAIN ENCODE JSON (timestamptz.handling.mode = 'milli')
-- Two stages, the clauses of one in another order.
create source public.orders (order_id bigint, constraint pk primary key (order_id))
with stages (
    history with (connector = 'postgres', url = 'postgres://app:pw@db/shop', query = $$SELECT 'it''s' FROM orders$$),
    "Live"  with (connector = 'kafka', topic = 'shop.orders')
            start at offsets '{"0": 100, "1": 57}' format upsert encode json,
);
--> CREATE SOURCE orders (
-->     order_id bigint,
-->     PRIMARY KEY (order_id)
--> )
--> WITH STAGES (
-->     history WITH (connector = 'postgres', url = 'postgres://app:pw@db/shop', query = 'SELECT ''it''''s'' FROM orders'),
-->     "Live" WITH (connector = 'kafka', topic = 'shop.orders') FORMAT UPSERT ENCODE JSON START AT OFFSETS '{"0": 100, "1": 57}'
--> )
-- Every start and every stop.
CREATE SOURCE s (a int) WITH STAGES (
    a WITH (connector = 'x') START AT EARLIEST STOP AT LATEST,
    b WITH (connector = 'x') START AT HANDOFF STOP AT TIMESTAMP '2026-01-01',
    c WITH (connector = 'x') START AT COLUMNS (p, "O") STOP AT OFFSETS '{}' AS EVENTS,
    d WITH (connector = 'x') START AT QUERY 'SELECT partition, next FROM marks' ALLOW OVERLAP,
    e WITH (connector = 'x') START AT TIMESTAMP '2026-01-01' ALLOW GAP,
    f WITH (connector = 'x') START AT LATEST
);
--> CREATE SOURCE s (
-->     a integer
--> )
--> WITH STAGES (
-->     a WITH (connector = 'x') START AT EARLIEST STOP AT LATEST,
-->     b WITH (connector = 'x') START AT HANDOFF STOP AT TIMESTAMP '2026-01-01',
-->     c WITH (connector = 'x') START AT COLUMNS (p, "O") STOP AT OFFSETS '{}' AS EVENTS,
-->     d WITH (connector = 'x') START AT QUERY 'SELECT partition, next FROM marks' ALLOW OVERLAP,
-->     e WITH (connector = 'x') START AT TIMESTAMP '2026-01-01' ALLOW GAP,
-->     f WITH (connector = 'x') START AT LATEST
--> )
CREATE SOURCE s (a int);
--> ERROR 42601 syntax error at or near ";"
--> AT ;
--> DETAIL Expected WITH.
CREATE SOURCE s WITH (connector = 'x');
--> ERROR 42601 syntax error at or near "WITH"
--> AT WITH (connector = 'x');
--> DETAIL Expected a list of columns in parentheses.
CREATE SOURCE s () WITH (connector = 'x');
--> ERROR 42601 syntax error at or near ")"
--> AT ) WITH (connector = 'x');
--> DETAIL Expected a name.
CREATE SOURCE s (PRIMARY KEY (a)) WITH (connector = 'x');
--> ERROR 42P16 "s" has no columns
--> AT (PRIMARY KEY (a)) WITH (connector = 'x');
CREATE SOURCE s (a int) WITH ();
--> ERROR 42601 syntax error at or near ")"
--> AT );
--> DETAIL Expected a name.
CREATE SOURCE s (a int) WITH STAGES ();
--> ERROR 42601 syntax error at or near ")"
--> AT );
--> DETAIL Expected a name.
CREATE SOURCE s (a int) WITH STAGES (a WITH (connector = 'x') FORMAT PLAIN);
--> ERROR 42601 syntax error at or near ")"
--> AT );
--> DETAIL Expected ENCODE.
CREATE SOURCE s (a int) WITH STAGES (a WITH (connector = 'x') START AT NOON);
--> ERROR 42601 syntax error at or near "NOON"
--> AT NOON);
--> DETAIL Expected HANDOFF, EARLIEST, LATEST, TIMESTAMP '…', OFFSETS '…', QUERY '…' or COLUMNS (…).
CREATE SOURCE s (a int) WITH STAGES (a WITH (connector = 'x') START AT LATEST START AT EARLIEST);
--> ERROR 42601 syntax error at or near "START"
--> AT START AT EARLIEST);
--> DETAIL Expected ")".
CREATE SOURCE s (a int) WITH STAGES (a WITH (connector = 'x') STOP AT EARLIEST);
--> ERROR 42601 syntax error at or near "EARLIEST"
--> AT EARLIEST);
--> DETAIL Expected LATEST, TIMESTAMP '…' or OFFSETS '…'.
CREATE SOURCE s (a int) WITH STAGES (a WITH (connector = 'x') ALLOW EVERYTHING);
--> ERROR 42601 syntax error at or near "EVERYTHING"
--> AT EVERYTHING);
--> DETAIL Expected GAP or OVERLAP.
CREATE SOURCE s (a int) WITH STAGES (a WITH (connector = 'x') START AT COLUMNS (p));
--> ERROR 42601 syntax error at or near ")"
--> AT ));
--> DETAIL Expected ",".
CREATE SOURCE s (a int) WITH (connector = 'x', topic = 'a', Topic = 'b');
--> ERROR 42601 option "topic" specified more than once
--> AT Topic = 'b');
CREATE SOURCE s (a int) WITH (connector = kafka);
--> ERROR 42601 syntax error at or near "kafka"
--> AT kafka);
--> DETAIL Expected a string, a number, true or false.
CREATE SOURCE s (a int) WITH (connector 'kafka');
--> ERROR 42601 syntax error at or near "'kafka'"
--> AT 'kafka');
--> DETAIL Expected "=".
CREATE SOURCE s (a int PRIMARY KEY, b int, PRIMARY KEY (b)) WITH (connector = 'x');
--> ERROR 42P16 multiple primary keys for "s" are not allowed
--> AT PRIMARY KEY (b)) WITH (connector = 'x');
CREATE SOURCE s (a int, WATERMARK FOR a AS a, WATERMARK FOR a AS a - 1) WITH (connector = 'x');
--> ERROR 42P16 multiple watermarks are not allowed
--> AT WATERMARK FOR a AS a - 1) WITH (connector = 'x');
CREATE SOURCE s (a int AS (b + 1)) WITH (connector = 'x');
--> CREATE SOURCE s (
-->     a integer AS (b + 1)
--> )
--> WITH (connector = 'x')
CREATE SOURCE order (a int) WITH (connector = 'x');
--> ERROR 42601 syntax error at or near "order"
--> AT order (a int) WITH (connector = 'x');
--> DETAIL Expected a name.
CREATE SOURCE shop.orders (a int) WITH (connector = 'x');
--> ERROR 3F000 schema "shop" does not exist
--> AT shop.orders (a int) WITH (connector = 'x');
--> HINT Objects live in schema "public".
CREATE SOURCE s (a int) INCLUDE 'key' WITH (connector = 'x');
--> ERROR 42601 syntax error at or near "'key'"
--> AT 'key' WITH (connector = 'x');
--> DETAIL Expected what to include.
CREATE SOURCE "" (a int) WITH (connector = 'x');
--> ERROR 42601 zero-length delimited identifier at or near """"
--> AT "" (a int) WITH (connector = 'x');
CREATE OR REPLACE SOURCE s (a int) WITH (connector = 'x');
--> CREATE OR REPLACE SOURCE s (
-->     a integer
--> )
--> WITH (connector = 'x')
CREATE OR REPLACE SOURCE IF NOT EXISTS s (a int) WITH (connector = 'x');
--> ERROR 42601 syntax error at or near "IF"
--> AT IF NOT EXISTS s (a int) WITH (connector = 'x');
--> DETAIL Expected a name.
CREATE SINK s FROM t WITH (connector = 'x');
--> CREATE SINK s AS SELECT * FROM t
--> WITH (connector = 'x')
CREATE SOURCE é (a int) WITH (connector = 'ü') FORMAT PLAIN ENCODE 'x';
--> ERROR 42601 syntax error at or near "'x'"
--> AT 'x';
--> DETAIL Expected an encoding.
