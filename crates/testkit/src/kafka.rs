//! A real Apache Kafka broker (one KRaft node) for tests: on free ports, with its own data folder.
//!
//! The jars come from `tools/kafka/install.sh`, which is run when they are missing. Invariant: the broker
//! dies with its handle, and also with the test process, however that ends: a shell holds the other end of
//! a pipe and kills the broker when the pipe closes.

mod admin;
mod produce;

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use tempfile::TempDir;

pub use admin::Isolation;
pub use produce::{Record, Transaction};

use crate::ports::free_port;
use crate::wait::{poll, wait_for};

/// The version that `tools/kafka/install.sh` fetches.
const VERSION: &str = "4.1.1";
/// How long the broker may take to answer after its start, on a busy machine.
const START_DEADLINE: Duration = Duration::from_secs(90);
/// How long it may take to end after SIGTERM.
const STOP_DEADLINE: Duration = Duration::from_secs(20);
/// How long one administrative request may take.
const REQUEST_DEADLINE: Duration = Duration::from_secs(30);

/// One node, and nothing waits for what a test would have to wait for: no rebalance delay, short sessions,
/// cleaners and retention at work every half second (but no retention unless a topic asks: tests write old
/// times).
const SETTINGS: &str = "\
broker.heartbeat.interval.ms=300
broker.session.timeout.ms=2000
controlled.shutdown.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
message.max.bytes=33554432
replica.fetch.max.bytes=33554432
log.initial.task.delay.ms=500
log.retention.check.interval.ms=500
log.retention.ms=-1
log.segment.delete.delay.ms=100
log.cleaner.backoff.ms=200
log.cleaner.dedupe.buffer.size=4194304
";

/// Runs the broker and obeys its stdin: `stop` ends it gently, `kill` at once; the end of stdin, which is
/// also the end of the test process, kills it and removes its home.
const KEEPER: &str = r#"
home=$1; shift
"$@" </dev/null >>"$home/broker.log" 2>&1 &
broker=$!
read -r order
case $order in
    stop) kill -TERM $broker; wait $broker ;;
    kill) kill -KILL $broker; wait $broker ;;
    *) kill -KILL $broker; wait $broker; rm -rf "$home" ;;
esac
"#;

/// One broker. Dropping it kills the broker and removes its data.
pub struct KafkaServer {
    home: TempDir,
    libs: PathBuf,
    port: u16,
    keeper: Mutex<Option<Child>>,
    client: KafkaClient,
}

/// What a test does to a cluster: topics, records, transactions. A [`KafkaServer`] is one of its own broker.
pub struct KafkaClient {
    bootstrap: String,
    producer: Mutex<Option<produce::Producer>>,
}

impl KafkaClient {
    /// A client of the cluster at `bootstrap`. Connects when it is used.
    pub fn new(bootstrap: &str) -> KafkaClient {
        KafkaClient { bootstrap: bootstrap.to_owned(), producer: Mutex::new(None) }
    }

    /// What clients connect to.
    pub fn bootstrap(&self) -> String {
        self.bootstrap.clone()
    }

    /// The next record goes through a new producer.
    fn forget_producer(&self) {
        *self.producer.lock() = None;
    }

    /// A client for metadata requests.
    fn metadata_client(&self) -> BaseConsumer {
        self.config().create().expect("the configuration is complete")
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", &self.bootstrap)
            .set("reconnect.backoff.ms", "20")
            .set("reconnect.backoff.max.ms", "200")
            .set("log_level", "0");
        config
    }
}

impl Deref for KafkaServer {
    type Target = KafkaClient;

    fn deref(&self) -> &KafkaClient {
        &self.client
    }
}

impl KafkaServer {
    /// The configuration of a topic whose segments are closed by the next record and compacted at once.
    pub const COMPACTED_SOON: &[(&str, &str)] = &[
        ("cleanup.policy", "compact"),
        ("segment.ms", "50"),
        ("min.cleanable.dirty.ratio", "0.001"),
        ("min.compaction.lag.ms", "0"),
        ("delete.retention.ms", "0"),
    ];

    /// Formats a data folder and starts a broker on it; returns when the broker answers.
    ///
    /// # Panics
    /// If the jars cannot be fetched or the broker does not answer in time; the message holds its log.
    pub fn start() -> KafkaServer {
        let libs = jars();
        let home =
            tempfile::Builder::new().prefix("segue-kafka-").tempdir().expect("a scratch folder");
        let (port, controller_port) = (free_port(), free_port());
        let properties = home.path().join("server.properties");
        fs::write(&properties, server_properties(home.path(), port, controller_port))
            .expect("the scratch folder is writable");
        let client = KafkaClient::new(&format!("127.0.0.1:{port}"));
        let server = KafkaServer { home, libs, port, keeper: Mutex::new(None), client };
        let format = server
            .java(&["-Xmx128m"])
            .args(["kafka.tools.StorageTool", "format", "-t", &cluster_id(port), "-c"])
            .arg(&properties)
            .output()
            .expect("java runs");
        assert!(format.status.success(), "{}", String::from_utf8_lossy(&format.stderr));
        server.start_again();
        server
    }

    /// The broker's port, for a proxy in front of it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends the broker gently (SIGTERM) and waits for it. Does nothing when it is down.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn stop(&self) {
        self.end("stop\n");
    }

    /// Kills the broker (SIGKILL). Its data stays. Does nothing when it is down.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn kill(&self) {
        self.end("kill\n");
    }

    fn end(&self, order: &str) {
        self.client.forget_producer();
        let Some(mut keeper) = self.keeper.lock().take() else { return };
        let mut stdin = keeper.stdin.take().expect("the keeper was given a pipe");
        stdin.write_all(order.as_bytes()).expect("the keeper reads its pipe");
        wait_for("the broker to end", STOP_DEADLINE, || {
            keeper.try_wait().expect("the keeper is our child").map(|_| ())
        });
    }

    /// Starts the broker on the same ports and data; returns when it answers.
    ///
    /// # Panics
    /// If it runs already, or does not answer in time.
    pub fn start_again(&self) {
        let mut keeper = self.keeper.lock();
        assert!(keeper.is_none(), "the broker runs already");
        let java = self.java(&["-Xmx384m"]);
        let child = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(self.home.path())
            .arg(java.get_program())
            .args(java.get_args())
            .arg("kafka.Kafka")
            .arg(self.home.path().join("server.properties"))
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh runs");
        *keeper = Some(child);
        drop(keeper);
        self.wait_until_it_answers();
    }

    fn wait_until_it_answers(&self) {
        let asked = Duration::from_secs(2);
        let mut client = None;
        let answers = || {
            TcpStream::connect(("127.0.0.1", self.port)).ok()?;
            let client = client.get_or_insert_with(|| self.metadata_client());
            let metadata = client.fetch_metadata(None, asked).ok()?;
            (!metadata.brokers().is_empty()).then_some(())
        };
        if poll(START_DEADLINE, answers).is_none() {
            let log = fs::read_to_string(self.log_path()).unwrap_or_default();
            panic!("the broker did not answer in {START_DEADLINE:?}:\n{log}");
        }
    }

    fn log_path(&self) -> PathBuf {
        self.home.path().join("broker.log")
    }

    fn java(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("java");
        command
            .args(arguments)
            .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"])
            .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
            .arg("-cp")
            .arg(self.libs.join("*"));
        command
    }
}

impl Drop for KafkaServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The folder of jars, installed first when it is missing.
fn jars() -> PathBuf {
    let services = std::env::var_os("SEGUE_SERVICES_DIR").map(PathBuf::from).unwrap_or_else(|| {
        let home = std::env::var_os("HOME").expect("HOME is set");
        Path::new(&home).join(".cache/segue")
    });
    let libs = services.join(format!("kafka-{VERSION}/libs"));
    if !libs.is_dir() {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/kafka/install.sh");
        let status = Command::new(&script).status().expect("the install script runs");
        assert!(status.success() && libs.is_dir(), "{} did not install Kafka", script.display());
    }
    libs
}

/// 22 characters that Kafka reads as a UUID; another one for each broker.
fn cluster_id(port: u16) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    format!("{:018}{:03}A", now.as_nanos() / 1000, port % 1000)
}

fn server_properties(home: &Path, port: u16, controller_port: u16) -> String {
    format!(
        "process.roles=broker,controller\n\
         node.id=1\n\
         controller.quorum.voters=1@127.0.0.1:{controller_port}\n\
         listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}\n\
         advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n\
         controller.listener.names=CONTROLLER\n\
         inter.broker.listener.name=PLAINTEXT\n\
         listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n\
         log.dirs={home}/data\n{SETTINGS}",
        home = home.display(),
    )
}
