//! `kill -9` at random commits while joins, top-N, windows and distinct aggregates have changes in flight, and sinks let
//! theirs into tables: after each restart every view, and every table that a sink feeds, equals the batch answer over the
//! tables, and the tables what was acknowledged.

mod support;

use std::collections::BTreeMap;

use segue_testkit::segue::Segue;
use support::{Random, rows, segue};
use tokio_postgres::Client;

const ROUNDS: usize = 24;
const STATEMENTS: usize = 12;

/// Names and queries; each query is also run as it is.
const VIEWS: &[(&str, &str)] = &[
    (
        "joined",
        "SELECT s.id, s.amount, c.region FROM sold s LEFT JOIN people c ON c.id = s.customer",
    ),
    (
        "by_region",
        "SELECT region, count(*) AS n, sum(amount) AS s, count(DISTINCT customer) AS customers, min(amount) AS m \
         FROM sold JOIN people ON people.id = sold.customer GROUP BY region",
    ),
    (
        "best",
        "SELECT * FROM (SELECT customer, id, amount, row_number() OVER (PARTITION BY customer ORDER BY amount DESC, id) \
         AS place FROM sold) WHERE place <= 2",
    ),
    (
        "running",
        "SELECT id, customer, sum(amount) OVER (PARTITION BY customer ORDER BY id) AS s, \
         lag(amount) OVER (PARTITION BY customer ORDER BY id) AS before FROM sold",
    ),
    ("amounts", "SELECT DISTINCT amount, customer % 3 AS third FROM sold"),
    ("first_ten", "SELECT id, amount FROM sold ORDER BY amount DESC, id LIMIT 10"),
    (
        "idle",
        "SELECT id FROM people WHERE NOT EXISTS (SELECT 1 FROM sold WHERE sold.customer = people.id)",
    ),
    (
        "above",
        "SELECT p.id, l.id AS sale, l.amount FROM people p LEFT JOIN LATERAL (SELECT id, amount FROM sold \
         WHERE sold.customer = p.id AND sold.amount > p.id ORDER BY amount DESC, id LIMIT 2) AS l ON true",
    ),
    ("nearest", "SELECT p.id, s.amount FROM people p ASOF LEFT JOIN sold s ON p.id >= s.amount"),
    (
        "sessions",
        "SELECT id, count(*) OVER (PARTITION BY customer ORDER BY to_timestamp(amount) \
         SESSION WITH GAP INTERVAL '2 seconds') AS n FROM sold",
    ),
    ("of_views", "SELECT b.customer, j.region, b.amount FROM best b JOIN joined j ON j.id = b.id"),
];

/// Tables that sinks feed, what they have, and the query of the sink.
const FED: &[(&str, &str, &str)] = &[
    (
        "totals",
        "customer bigint PRIMARY KEY, n bigint, s numeric(38,0)",
        "SELECT customer, count(*) AS n, sum(amount) AS s FROM sold GROUP BY customer",
    ),
    (
        "shown",
        "customer bigint, id bigint PRIMARY KEY, amount bigint",
        "SELECT customer, id, amount FROM best WHERE place = 1",
    ),
    ("every_change", "op bigint, n bigint, PRIMARY KEY (op)", CHANGES),
];

/// By what it did, how many rows there were of a changelog that a view keeps.
const CHANGES: &str = "SELECT CASE WHEN changelog_op IN (1, 3) THEN 1 ELSE -1 END AS op, count(*) AS n FROM log GROUP BY 1";

/// (customer, amount) by id.
type Sold = BTreeMap<i64, (i64, i64)>;

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

/// A statement, and the table after it.
fn change(random: &mut Random, sold: &Sold) -> (String, Sold) {
    let mut after = sold.clone();
    let mut number = |bound: u64| i64::try_from(random.below(bound)).expect("small");
    let sql = match number(10) {
        0..5 => {
            let new = (0..1 + number(40)).map(|_| (number(400), (number(30), number(20))));
            let new = new.collect::<Sold>();
            let values =
                new.iter().map(|(id, (customer, amount))| format!("({id}, {customer}, {amount})"));
            let values = values.collect::<Vec<_>>().join(", ");
            after.extend(new);
            format!("INSERT INTO sold VALUES {values}")
        }
        5..7 => {
            let third = number(7);
            after.retain(|id, _| id % 7 != third);
            format!("DELETE FROM sold WHERE id % 7 = {third}")
        }
        7..9 => {
            let (customer, to) = (number(30), number(30));
            let of_customer = after.values_mut().filter(|(of, _)| *of == customer);
            of_customer.for_each(|(of, amount)| (*of, *amount) = (to, *amount + 1));
            format!(
                "UPDATE sold SET customer = {to}, amount = amount + 1 WHERE customer = {customer}"
            )
        }
        _ => {
            format!("UPDATE people SET region = 'region {}' WHERE id = {}", number(5), number(30))
        }
    };
    (sql, after)
}

async fn held(client: &Client) -> Sold {
    let all = rows(client, "SELECT id, customer, amount FROM sold").await;
    let number = |text: &String| text.parse::<i64>().expect("a number");
    all.iter().map(|row| (number(&row[0]), (number(&row[1]), number(&row[2])))).collect()
}

async fn expect_views(client: &Client) {
    let fed = FED.iter().map(|(name, _, query)| (name, query));
    for (name, query) in VIEWS.iter().map(|(name, query)| (name, query)).chain(fed) {
        let mut kept = rows(client, &format!("SELECT * FROM {name}")).await;
        let mut expected = rows(client, query).await;
        kept.sort();
        expected.sort();
        assert_eq!(kept, expected, "{name}");
    }
    let logged = "SELECT id, customer, amount FROM log GROUP BY id, customer, amount \
                  HAVING sum(CASE WHEN changelog_op IN (1, 3) THEN 1 ELSE -1 END) = 1";
    let mut logged = rows(client, logged).await;
    let mut expected = rows(client, "SELECT id, customer, amount FROM sold").await;
    logged.sort();
    expected.sort();
    assert_eq!(logged, expected, "what was logged adds up to the table");
}

/// How a round of statements ended.
enum Ended {
    /// All were acknowledged; the table of sales holds this.
    Alive(Sold),
    /// The server died; the table holds what it did before the statement that was under way, or after it.
    Dead { before: Sold, after: Sold },
}

/// Changes the tables, for as long as the server lives.
async fn work(client: &Client, random: &mut Random, mut sold: Sold) -> Ended {
    for _ in 0..STATEMENTS {
        let (sql, after) = change(random, &sold);
        match client.batch_execute(&sql).await {
            Ok(()) => sold = after,
            Err(error) if error.as_db_error().is_none() => {
                return Ended::Dead { before: sold, after };
            }
            Err(error) => panic!("{sql}: {error:?}"),
        }
        if random.below(6) == 0 {
            let view = VIEWS[usize::try_from(random.below(VIEWS.len() as u64)).expect("few")].0;
            let workers = 1 + random.below(3);
            let alter = format!("ALTER MATERIALIZED VIEW {view} SET PARALLELISM = {workers}");
            if client.batch_execute(&alter).await.is_err_and(|error| error.as_db_error().is_none())
            {
                return Ended::Dead { before: sold.clone(), after: sold };
            }
        }
    }
    Ended::Alive(sold)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_equal_the_batch_answer_after_a_kill_with_any_operator_in_flight() {
    let mut segue: Segue = segue();
    let client = segue.connect().await;
    run(&client, "CREATE TABLE sold (id bigint PRIMARY KEY, customer bigint, amount bigint)").await;
    run(&client, "CREATE TABLE people (id bigint PRIMARY KEY, region text)").await;
    let customers = "INSERT INTO people SELECT i, 'region ' || (i % 5)::text FROM generate_series(0, 24) AS s(i)";
    run(&client, customers).await;
    for (name, query) in VIEWS {
        run(&client, &format!("CREATE MATERIALIZED VIEW {name} AS {query}")).await;
    }
    let log = "CREATE MATERIALIZED VIEW log AS WITH c AS CHANGELOG FROM sold SELECT * FROM c";
    run(&client, log).await;
    for (name, columns, query) in FED {
        run(&client, &format!("CREATE TABLE {name} ({columns})")).await;
        run(&client, &format!("CREATE SINK to_{name} INTO {name} AS {query}")).await;
    }
    let mut random = Random(17);
    let mut sold = Sold::new();
    let mut deaths = 0;
    for _ in 0..ROUNDS {
        let side = ["before-commit", "after-commit"][usize::from(random.below(2) == 0)];
        segue.kill();
        segue.set_failpoints(&format!("{side}={}*off->1*return", 1 + random.below(9)));
        segue.start_again();
        let client = segue.connect().await;
        let ended = work(&client, &mut random, sold).await;
        segue.set_failpoints("");
        segue.kill();
        segue.start_again();
        let client = segue.connect().await;
        sold = held(&client).await;
        match ended {
            Ended::Alive(expected) => assert_eq!(sold, expected),
            Ended::Dead { before, after } => {
                deaths += 1;
                assert!(sold == before || sold == after, "nothing is lost, nothing half done");
            }
        }
        expect_views(&client).await;
    }
    assert!(deaths > ROUNDS / 2, "the server died in {deaths} of {ROUNDS} rounds");
}
