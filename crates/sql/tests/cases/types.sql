-- Every spelling of a type.
CREATE TABLE t (
    a1 boolean, a2 bool, b1 smallint, b2 int2, c1 int, c2 integer, c3 int4, d1 bigint, d2 int8,
    e1 real, e2 float4, e3 float(24), f1 double precision, f2 double, f3 float8, f4 float, f5 float(53),
    g1 numeric, g2 numeric(10), g3 decimal(38,38), g4 dec(5, 2),
    h1 text, h2 string, h3 varchar, h4 varchar(10), h5 character varying, h6 character varying(3), h7 char(3), h8 bpchar,
    i bytea, j date, k1 time, k2 time(6) without time zone,
    l1 timestamp, l2 timestamp(3), l3 timestamp without time zone, m1 timestamptz, m2 timestamp(6) with time zone,
    n1 interval, n2 interval day to second, o uuid, p1 json, p2 jsonb, q pg_catalog.int4,
    r1 int[], r2 text[][], r3 int[3],
    s1 STRUCT<a int, "B" varchar>, s2 struct<a struct<b struct<c int>>, d int[]>, s3 struct<a struct<b int>>[],
    s4 struct<a struct<b struct<c int>>>, s5 struct<a struct<b struct<c struct<d int>>>>[]
);
--> CREATE TABLE t (
-->     a1 boolean,
-->     a2 boolean,
-->     b1 smallint,
-->     b2 smallint,
-->     c1 integer,
-->     c2 integer,
-->     c3 integer,
-->     d1 bigint,
-->     d2 bigint,
-->     e1 real,
-->     e2 real,
-->     e3 real,
-->     f1 double precision,
-->     f2 double precision,
-->     f3 double precision,
-->     f4 double precision,
-->     f5 double precision,
-->     g1 numeric(38,10),
-->     g2 numeric(10,0),
-->     g3 numeric(38,38),
-->     g4 numeric(5,2),
-->     h1 text,
-->     h2 text,
-->     h3 text,
-->     h4 text,
-->     h5 text,
-->     h6 text,
-->     h7 text,
-->     h8 text,
-->     i bytea,
-->     j date,
-->     k1 time,
-->     k2 time,
-->     l1 timestamp,
-->     l2 timestamp,
-->     l3 timestamp,
-->     m1 timestamptz,
-->     m2 timestamptz,
-->     n1 interval,
-->     n2 interval,
-->     o uuid,
-->     p1 jsonb,
-->     p2 jsonb,
-->     q integer,
-->     r1 integer[],
-->     r2 text[][],
-->     r3 integer[],
-->     s1 struct<a integer, "B" text>,
-->     s2 struct<a struct<b struct<c integer>>, d integer[]>,
-->     s3 struct<a struct<b integer>>[],
-->     s4 struct<a struct<b struct<c integer>>>,
-->     s5 struct<a struct<b struct<c struct<d integer>>>>[]
--> )
CREATE TABLE t (a bigit);
--> ERROR 42704 type "bigit" does not exist
--> AT bigit);
--> HINT Perhaps you meant the type "bigint".
CREATE TABLE t (a geometry);
--> ERROR 42704 type "geometry" does not exist
--> AT geometry);
CREATE TABLE t (a numeric(39, 2));
--> ERROR 22023 NUMERIC precision 39 must be between 1 and 38
--> AT numeric(39, 2));
--> HINT Values of more digits can be kept as text.
CREATE TABLE t (a numeric(0));
--> ERROR 22023 NUMERIC precision 0 must be between 1 and 38
--> AT numeric(0));
--> HINT Values of more digits can be kept as text.
CREATE TABLE t (a numeric(3, 4));
--> ERROR 22023 NUMERIC scale 4 must be between 0 and precision 3
--> AT numeric(3, 4));
CREATE TABLE t (a numeric(3, 2, 1));
--> ERROR 42601 type modifier is not allowed for type "numeric"
--> AT numeric(3, 2, 1));
CREATE TABLE t (a float(54));
--> ERROR 22023 precision for type float must be less than 54 bits
--> AT float(54));
CREATE TABLE t (a int(4));
--> ERROR 42601 type modifier is not allowed for type "int"
--> AT int(4));
CREATE TABLE t (a time with time zone);
--> ERROR 42704 type "time with time zone" does not exist
--> AT time with time zone);
--> HINT Perhaps you meant the type "timestamp with time zone".
CREATE TABLE t (a struct<>);
--> ERROR 42601 syntax error at or near "<>"
--> AT <>);
--> DETAIL Expected "<".
CREATE TABLE t (a struct<b int, b int>);
--> ERROR 42701 member "b" specified more than once
--> AT b int>);
CREATE TABLE t (a struct<b struct<c int>);
--> ERROR 42601 syntax error at or near ")"
--> AT );
--> DETAIL Expected ">".
CREATE TABLE t (a struct<b int>>);
--> ERROR 42601 syntax error at or near ")"
--> AT );
--> DETAIL Expected one ">" less.
CREATE TABLE t (a int[);
--> ERROR 42601 syntax error at or near ")"
--> AT );
--> DETAIL Expected "]".
CREATE TABLE t (a);
--> ERROR 42601 syntax error at or near ")"
--> AT );
--> DETAIL Expected a name.
