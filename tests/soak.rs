//! Several hundred actions in a seeded order on one source: views come and go, are paused, slowed down and canceled while
//! a producer writes, the server is killed, the broker restarts and connections to the database break.
//!
//! Invariant: whatever was done, once everything is resumed each view that exists shows the truth, no job is left, and
//! one reading serves them all. `SEGUE_SOAK_SEED=n` replays one order.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use segue_testkit::kafka::KafkaServer;
use segue_testkit::postgres::PostgresServer;
use segue_testkit::proxy::Proxy;
use segue_testkit::segue::Segue;
use segue_testkit::wait::wait_for_async;
use support::views::{create_source, expect_one_reading, expect_view, source, view};
use support::{DEADLINE, Orders, Random, Writer, rows, segue};
use tokio_postgres::{Client, NoTls};

const ACTIONS: usize = 300;
const VIEWS: u64 = 6;
const BROKER_RESTARTS_MAX: usize = 3;

struct Soak {
    random: Random,
    kafka: Arc<KafkaServer>,
    proxy: Proxy,
    create_source: String,
    segue: Segue,
    client: Client,
    truth: Orders,
    writer: Writer,
    broker_restarts: usize,
    /// What was done, for the message of a failure.
    done: Vec<String>,
}

impl Soak {
    async fn start(seed: u64, postgres: &PostgresServer) -> Soak {
        let kafka = Arc::new(KafkaServer::start());
        let (_, truth, writer) = source(postgres, &kafka, "soaked").await;
        let proxy = Proxy::start(postgres.port()).await;
        let url = postgres.url().replace(&postgres.port().to_string(), &proxy.port().to_string());
        let create_source = create_source(&url, &kafka, "soaked");
        let segue = segue();
        let client = segue.connect().await;
        client.batch_execute(&create_source).await.expect("the source is new");
        let (random, done) = (Random(seed), Vec::new());
        let broker_restarts = 0;
        Soak {
            random,
            kafka,
            proxy,
            create_source,
            segue,
            client,
            truth,
            writer,
            broker_restarts,
            done,
        }
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[usize::try_from(self.random.below(words.len() as u64)).expect("few words")]
    }

    /// Runs a statement that may be refused: the state it meets is whatever the actions before have left.
    async fn try_statement(&mut self, statement: String) {
        let result = self.client.batch_execute(&statement).await;
        let outcome = match &result {
            Ok(()) => "ok".to_owned(),
            Err(error) => match error.as_db_error() {
                Some(error) => format!("{} {}", error.code().code(), error.message()),
                None => panic!("{statement}: {error:?}; after {:#?}", self.done),
            },
        };
        let expected = ["ok", "42P07", "42P01", "55000", "57014", "2BP01", "42704"];
        let is_expected = expected.iter().any(|code| outcome.starts_with(code));
        assert!(is_expected, "{statement}: {outcome}; after {:#?}", self.done);
        self.done.push(format!("{statement} → {outcome}"));
    }

    async fn canceled(&mut self, statement: String) {
        let (token, wait) =
            (self.client.cancel_token(), Duration::from_millis(self.random.below(150)));
        {
            let mut trying = std::pin::pin!(self.try_statement(statement));
            if tokio::time::timeout(wait, &mut trying).await.is_err() {
                token.cancel_query(NoTls).await.expect("a cancel request is taken");
                trying.await;
            }
        }
        // One that came late hits the next statement, which is this one.
        drop(self.client.simple_query("SELECT 1").await);
    }

    async fn restart_segue(&mut self) {
        self.segue.kill();
        self.segue.start_again();
        self.client = self.segue.connect().await;
        self.done.push("kill -9".to_owned());
    }

    async fn act(&mut self) {
        let name = format!("v{}", self.random.below(VIEWS));
        let n: usize = name[1..].parse().expect("a number");
        let create = view(n, &Orders::default()).0;
        match self.random.below(100) {
            0..18 => self.writer.change(&mut self.truth, &self.kafka, "soaked", 60),
            18..30 => {
                self.try_statement("SET background_ddl = true".to_owned()).await;
                self.try_statement(create).await;
                self.try_statement("SET background_ddl = false".to_owned()).await;
            }
            30..40 => self.canceled(create).await,
            40..50 => self.try_statement(format!("DROP MATERIALIZED VIEW {name}")).await,
            50..62 => {
                let verb = self.one_of(&["PAUSE", "RESUME", "RESUME"]);
                self.try_statement(format!("ALTER MATERIALIZED VIEW {name} {verb}")).await;
            }
            62..70 => {
                let verb = self.one_of(&["PAUSE", "RESUME", "RESUME", "REFRESH"]);
                self.try_statement(format!("ALTER SOURCE orders {verb}")).await;
            }
            70..78 => {
                let setting =
                    self.one_of(&["source_rate_limit", "backfill_rate_limit", "parallelism"]);
                let value = self.one_of(&["DEFAULT", "DEFAULT", "3", "2000"]);
                self.try_statement(format!("ALTER SOURCE orders SET {setting} = {value}")).await;
            }
            78..84 => self.cancel_jobs().await,
            84..90 => self.restart_segue().await,
            90..92 => self.restart_broker(),
            92..95 => {
                let count = self.one_of(&["1", "2", "3", "DEFAULT"]);
                self.try_statement(format!(
                    "ALTER MATERIALIZED VIEW {name} SET parallelism = {count}"
                ))
                .await;
            }
            95..97 => self.anew().await,
            _ => self.try_statement("FLUSH".to_owned()).await,
        }
    }

    async fn cancel_jobs(&mut self) {
        for row in rows(&self.client, "SELECT id FROM segue.jobs").await {
            let verb = self.one_of(&["CANCEL", "PAUSE", "RESUME"]);
            self.try_statement(format!("{verb} JOB {}", row[0])).await;
        }
    }

    fn restart_broker(&mut self) {
        if self.broker_restarts < BROKER_RESTARTS_MAX {
            self.broker_restarts += 1;
            self.kafka.stop();
            self.kafka.start_again();
            self.done.push("broker restarted".to_owned());
        }
    }

    /// The source itself is made anew, while its connection to the database breaks: what it captures then is what the
    /// database holds, which has not changed.
    async fn anew(&mut self) {
        self.try_statement("DROP SOURCE orders CASCADE".to_owned()).await;
        self.proxy.cut_once_after(self.random.below(200_000));
        let create = self.create_source.clone();
        self.try_statement(create).await;
        self.proxy.restore();
    }

    /// Everything is resumed, and must come right.
    async fn finish(&mut self) {
        for setting in ["source_rate_limit", "backfill_rate_limit", "parallelism"] {
            self.try_statement(format!("ALTER SOURCE orders SET {setting} = DEFAULT")).await;
        }
        self.try_statement("ALTER SOURCE orders RESUME".to_owned()).await;
        for n in 0..VIEWS {
            self.try_statement(format!("ALTER MATERIALIZED VIEW v{n} RESUME")).await;
        }
        let ended = tokio::time::timeout(DEADLINE, self.client.batch_execute("WAIT")).await;
        ended.expect("every job ends in time").expect("every job ends");
        assert_eq!(rows(&self.client, "SELECT * FROM segue.jobs").await, Vec::<Vec<String>>::new());
        let listed = rows(&self.client, "SELECT relname FROM pg_class WHERE relkind = 'm'").await;
        let names: BTreeSet<String> = listed.into_iter().map(|row| row[0].clone()).collect();
        for name in &names {
            let n = name[1..].parse().expect("v and a number");
            expect_view(&self.client, n, &self.truth).await;
        }
        if names.is_empty() {
            let consumers = "SELECT count(consumer) FROM segue.stages WHERE source = 'orders'";
            assert_eq!(rows(&self.client, consumers).await, [["0"]], "after {:#?}", self.done);
        } else {
            expect_one_reading(&self.client).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_actions_in_any_order_leave_every_view_right() {
    let seed = std::env::var("SEGUE_SOAK_SEED").ok().and_then(|seed| seed.parse().ok());
    let postgres = PostgresServer::start();
    let mut soak = Soak::start(seed.unwrap_or(20), &postgres).await;
    for action in 0..ACTIONS {
        soak.act().await;
        if action % 100 == 99 {
            soak.finish().await;
        }
    }
    // Nothing holds on to anything that only a running server knows.
    soak.restart_segue().await;
    soak.finish().await;
    wait_for_async("all views to go", DEADLINE, async || {
        soak.client.batch_execute("DROP SOURCE orders CASCADE").await.ok()
    })
    .await;
}
