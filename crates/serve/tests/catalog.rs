//! What psql and drivers ask of the catalogs, in their own words.

mod support;

use segue_serve::ServeConfig;
use support::Server;
use tokio_postgres::{Client, SimpleQueryMessage};

async fn rows(client: &Client, sql: &str) -> Vec<Vec<String>> {
    let messages =
        client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let row = |message| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|i| row.get(i).unwrap_or_default().to_owned()).collect())
        }
        _ => None,
    };
    messages.into_iter().filter_map(row).collect()
}

async fn server_with_objects() -> (Server, Client) {
    let server = Server::start(ServeConfig::default()).await;
    let client = server.connect().await;
    client
        .batch_execute(
            "CREATE TABLE t (id INT PRIMARY KEY, v TEXT, n NUMERIC(12,2) NOT NULL);
             CREATE MATERIALIZED VIEW m AS SELECT id FROM t;
             CREATE VIEW w AS SELECT id, v FROM t",
        )
        .await
        .expect("the objects are made");
    (server, client)
}

/// psql 15's `\d`.
const LIST: &str = "SELECT n.nspname as \"Schema\", c.relname as \"Name\",
  CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
  WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table'
  WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index'
  END as \"Type\",
  pg_catalog.pg_get_userbyid(c.relowner) as \"Owner\"
FROM pg_catalog.pg_class c
     LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam
WHERE c.relkind IN ('r','p','v','m','S','f','')
      AND n.nspname <> 'pg_catalog'
      AND n.nspname !~ '^pg_toast'
      AND n.nspname <> 'information_schema'
  AND pg_catalog.pg_table_is_visible(c.oid)
ORDER BY 1,2";

/// psql's completion of a relation's name.
const COMPLETION: &str = "SELECT c.relname, NULL::pg_catalog.text FROM pg_catalog.pg_class c
WHERE c.relkind IN ('r','S','v','m','f','p') AND (c.relname) LIKE 't%'
 AND pg_catalog.pg_table_is_visible(c.oid)
 AND c.relnamespace <> (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'pg_catalog')
UNION ALL SELECT NULL::pg_catalog.text, n.nspname FROM pg_catalog.pg_namespace n
WHERE n.nspname LIKE 't%' AND n.nspname NOT LIKE E'pg\\\\_%' LIMIT 1000";

#[tokio::test(flavor = "multi_thread")]
async fn psql_lists_and_completes_what_was_created() {
    let (server, client) = server_with_objects().await;
    let listed = rows(&client, LIST).await;
    assert_eq!(
        listed,
        [
            ["public", "m", "materialized view", "dev"],
            ["public", "t", "table", "dev"],
            ["public", "w", "view", "dev"],
        ]
    );
    assert_eq!(rows(&client, COMPLETION).await, [["t", ""]]);
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn psql_describes_the_columns_and_the_key_of_a_table() {
    let (server, client) = server_with_objects().await;
    let oid = rows(
        &client,
        "SELECT c.oid FROM pg_catalog.pg_class c
           LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relname OPERATOR(pg_catalog.~) '^(t)$' COLLATE pg_catalog.default
           AND pg_catalog.pg_table_is_visible(c.oid)",
    )
    .await
    .remove(0)
    .remove(0);
    let columns = rows(
        &client,
        &format!(
            "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
  (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) FROM pg_catalog.pg_attrdef d
   WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef),
  a.attnotnull,
  (SELECT c.collname FROM pg_catalog.pg_collation c, pg_catalog.pg_type t
   WHERE c.oid = a.attcollation AND t.oid = a.atttypid AND a.attcollation <> t.typcollation) AS attcollation,
  a.attidentity, a.attgenerated
FROM pg_catalog.pg_attribute a
WHERE a.attrelid = '{oid}' AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum"
        ),
    )
    .await;
    let shown: Vec<_> = columns.iter().map(|row| [&row[0], &row[1], &row[3]]).collect();
    assert_eq!(shown, [["id", "integer", "t"], ["v", "text", "f"], ["n", "numeric(12,2)", "t"]]);
    let keys = rows(
        &client,
        &format!(
            "SELECT c2.relname, i.indisprimary, pg_catalog.pg_get_indexdef(i.indexrelid, 0, true),
  pg_catalog.pg_get_constraintdef(con.oid, true)
FROM pg_catalog.pg_class c, pg_catalog.pg_class c2, pg_catalog.pg_index i
  LEFT JOIN pg_catalog.pg_constraint con
    ON (conrelid = i.indrelid AND conindid = i.indexrelid AND contype IN ('p','u','x'))
WHERE c.oid = '{oid}' AND c.oid = i.indrelid AND i.indexrelid = c2.oid"
        ),
    )
    .await;
    let index = "CREATE UNIQUE INDEX t_pkey ON public.t USING btree (id)";
    assert_eq!(keys, [["t_pkey", "t", index, "PRIMARY KEY (id)"]]);
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_and_standard_views_tell_the_same() {
    let (server, client) = server_with_objects().await;
    assert_eq!(rows(&client, "SELECT matviewname FROM pg_matviews").await, [["m"]]);
    let definition = rows(&client, "SELECT pg_get_viewdef('w'::regclass, true)").await;
    assert!(definition[0][0].contains("SELECT id, v FROM t"), "{definition:?}");
    assert_eq!(
        rows(
            &client,
            "SELECT column_name, data_type, is_nullable FROM information_schema.columns
             WHERE table_name = 't' ORDER BY ordinal_position",
        )
        .await,
        [["id", "integer", "NO"], ["v", "text", "YES"], ["n", "numeric", "NO"]]
    );
    assert_eq!(
        rows(
            &client,
            "SELECT table_name, table_type FROM information_schema.tables
             WHERE table_schema = 'public' ORDER BY 1"
        )
        .await,
        [["m", "MATERIALIZED VIEW"], ["t", "BASE TABLE"], ["w", "VIEW"]]
    );
    let session =
        "SELECT current_setting('server_version_num'), current_database(), current_schema()";
    assert_eq!(rows(&client, session).await, [["150000", "dev", "public"]]);
    let version = rows(&client, "SELECT version()").await;
    assert!(version[0][0].starts_with("PostgreSQL 15.0 "), "{version:?}");
    server.finish().await;
}
