-- What a person types into psql: objects of each kind, and the commands that list and describe them.
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, tags text[]);
CREATE SOURCE orders (id bigint, customer int, amount numeric(12,2)) WITH STAGES (
    history WITH (connector = 'datagen', datagen.rows.per.second = '1000',
        fields.id.kind = 'sequence', fields.id.start = '1', fields.id.end = '5',
        fields.customer.kind = 'sequence', fields.customer.start = '1', fields.customer.end = '5',
        fields.amount.kind = 'sequence', fields.amount.start = '1', fields.amount.end = '5')
);
CREATE MATERIALIZED VIEW per_customer AS
SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer;
CREATE VIEW names AS SELECT id, name FROM customers;
INSERT INTO customers VALUES (1, 'ann', '{a,b}'), (2, 'bob', NULL);
UPDATE customers SET name = 'ben' WHERE id = 2;
DELETE FROM customers WHERE id = 99;
\d customers
\d orders
\d per_customer
\d names
\d+ names
\d nothing
\dt
\dm
\dE
\l
\dn
\du
\df
\dp
\dy
\ddp
\x
SELECT * FROM customers ORDER BY id;
\x
\pset null (null)
SELECT * FROM customers ORDER BY id;
SELECT customer, n, total FROM per_customer WHERE customer = 3;
\copy customers TO STDOUT WITH (FORMAT csv, HEADER)
\copy customers FROM STDIN
3	cyd	{c}
\.
SELECT count(*) FROM customers;
SELECT 1 AS one \gdesc
-- Mistakes are pointed at.
SELEC 1;
SELECT nope
FROM customers;
SELECT * FROM nowhere;
SELECT 1 +;
CREATE TABLE bad (a nosuchtype);
CREATE SOURCE bad (a int) WITH (conector = 'kafka');
INSERT INTO customers VALUES (1);
BEGIN;
SELECT 1 / 0;
SELECT 1;
COMMIT;
DROP TABLE customers;
DROP TABLE customers CASCADE;
