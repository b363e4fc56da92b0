//! A real Apache Pulsar broker (standalone: broker, bookie and metadata in one process) for tests: on free ports,
//! with its own data folder.
//!
//! The jars come from `tools/pulsar/install.sh`, its client from `tools/python/install.sh`; both are run when
//! something is missing. Invariant: the broker dies with its handle, and also with the test process, however that
//! ends: a shell holds the other end of a pipe and kills the broker when the pipe closes.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::ports::free_port;
use crate::wait::{poll, wait_for};

/// The version that `tools/pulsar/install.sh` fetches.
const VERSION: &str = "3.0.7";
/// How long the broker may take to answer after its start, on a busy machine.
const START_DEADLINE: Duration = Duration::from_secs(120);
/// How long it may take to end.
const STOP_DEADLINE: Duration = Duration::from_secs(20);

/// Nothing is moved between brokers or removed by itself: tests say when.
const SETTINGS: &str = "\
clusterName=standalone
bindAddress=127.0.0.1
advertisedAddress=127.0.0.1
metadataStoreUrl=
zookeeperServers=
managedLedgerDefaultEnsembleSize=1
managedLedgerDefaultWriteQuorum=1
managedLedgerDefaultAckQuorum=1
numIOThreads=2
numHttpServerThreads=8
loadBalancerEnabled=false
webSocketServiceEnabled=false
functionsWorkerEnabled=false
transactionCoordinatorEnabled=false
systemTopicEnabled=false
topicLevelPoliciesEnabled=false
allowAutoTopicCreation=false
brokerDeleteInactiveTopicsEnabled=false
defaultRetentionTimeInMinutes=-1
defaultRetentionSizeInMB=-1
";

const KEEPER: &str = r#"
home=$1; shift
cd "$home"
"$@" </dev/null >>"$home/broker.log" 2>&1 &
broker=$!
read -r order
kill -KILL $broker; wait $broker
[ "$order" = kill ] || rm -rf "$home"
"#;

/// What Pulsar reaches into.
const OPENED: &[&str] = &[
    "java.base/java.nio=ALL-UNNAMED",
    "java.base/jdk.internal.misc=ALL-UNNAMED",
    "java.base/java.util.zip=ALL-UNNAMED",
    "java.base/sun.net=ALL-UNNAMED",
    "java.management/sun.management=ALL-UNNAMED",
];

/// One broker. Dropping it kills the broker and removes its data.
pub struct PulsarServer {
    home: TempDir,
    services: PathBuf,
    ports: Ports,
    keeper: Mutex<Option<Child>>,
    driver: Mutex<Option<Driver>>,
}

#[derive(Clone, Copy)]
struct Ports {
    broker: u16,
    web: u16,
    bookie: u16,
}

/// The process that uses Pulsar's own client.
struct Driver {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// How messages are put into entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batching {
    /// One message an entry.
    Single,
    /// So many messages an entry.
    Of(u32),
}

impl PulsarServer {
    /// Starts a broker; returns when it serves topics.
    ///
    /// # Panics
    /// If something cannot be installed, or the broker does not answer in time; the message holds its log.
    pub fn start() -> PulsarServer {
        let home = tempfile::Builder::new().prefix("segue-pulsar-").tempdir();
        let home = home.expect("a scratch folder");
        let ports = Ports { broker: free_port(), web: free_port(), bookie: free_port() };
        let settings =
            format!("{SETTINGS}brokerServicePort={}\nwebServicePort={}\n", ports.broker, ports.web);
        fs::write(home.path().join("standalone.conf"), settings).expect("the folder is writable");
        let (keeper, driver) = (Mutex::new(None), Mutex::new(None));
        let server = PulsarServer { home, services: installed(), ports, keeper, driver };
        server.start_again();
        server
    }

    /// Where clients connect to.
    pub fn url(&self) -> String {
        format!("pulsar://127.0.0.1:{}", self.ports.broker)
    }

    fn web(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.web)
    }

    /// Kills the broker (SIGKILL). Its data stays. Does nothing when it is down.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn kill(&self) {
        *self.driver.lock() = None;
        let Some(mut keeper) = self.keeper.lock().take() else { return };
        let mut stdin = keeper.stdin.take().expect("the keeper was given a pipe");
        stdin.write_all(b"kill\n").expect("the keeper reads its pipe");
        wait_for("the broker to end", STOP_DEADLINE, || {
            keeper.try_wait().expect("the keeper is our child").map(|_| ())
        });
    }

    /// Starts the broker on the same ports and data; returns when it serves topics.
    ///
    /// # Panics
    /// If it runs already, or does not answer in time.
    pub fn start_again(&self) {
        let mut keeper = self.keeper.lock();
        assert!(keeper.is_none(), "the broker runs already");
        self.forget_registration();
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper"]).arg(self.home.path()).arg("java");
        command.args(["-Xmx640m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]);
        command.args(OPENED.iter().flat_map(|opened| ["--add-opens", opened]));
        command.args(["-Dio.netty.tryReflectionSetAccessible=true", "-cp"]);
        command.arg(self.libraries());
        command.args(["org.apache.pulsar.PulsarStandaloneStarter", "-c", "standalone.conf"]);
        command.args(["-nfw", "-nss", "-a", "127.0.0.1", "--num-bookies", "1"]);
        command.args(["--metadata-dir", "data/metadata", "--bookkeeper-dir", "data/bookkeeper"]);
        command.args(["--bookkeeper-port", &self.ports.bookie.to_string()]);
        let child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn();
        *keeper = Some(child.expect("sh runs"));
        drop(keeper);
        let serves = || {
            let found = self.try_admin("GET", "namespaces/public/default", &Value::Null).ok()?;
            (found["status"] == 200).then_some(())
        };
        if poll(START_DEADLINE, serves).is_none() {
            let log = fs::read_to_string(self.home.path().join("broker.log")).unwrap_or_default();
            let tail = log.get(log.len().saturating_sub(8000)..).unwrap_or(&log);
            panic!("the broker did not serve topics in {START_DEADLINE:?}:\n{tail}");
        }
    }

    fn libraries(&self) -> PathBuf {
        self.services.join(format!("pulsar-{VERSION}/libs/*"))
    }

    /// What a cluster does when a session ends: `tools/pulsar/Forget.java` says why.
    fn forget_registration(&self) {
        let metadata = self.home.path().join("data/metadata");
        if !metadata.exists() {
            return;
        }
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/pulsar/Forget.java");
        let mut command = Command::new("java");
        command.args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"]);
        command.arg(self.libraries()).arg(program).arg(metadata);
        let done = command.output().expect("java runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "the registration stays: {said}");
    }

    /// A request of the admin API; `path` is what stands behind `/admin/v2/`.
    ///
    /// # Panics
    /// If the broker refuses it.
    pub fn admin(&self, method: &str, path: &str, body: &Value) -> String {
        let answer = self.try_admin(method, path, body);
        let answer = answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        let status = answer["status"].as_u64().expect("an answer has a status");
        assert!(status < 300, "{method} {path}: {answer}");
        answer["text"].as_str().unwrap_or_default().to_owned()
    }

    /// The same; nothing while the broker refuses, as it does when it has just started again.
    pub fn admin_if_ready(&self, method: &str, path: &str, body: &Value) -> Option<String> {
        let answer = self.try_admin(method, path, body).ok()?;
        let is_done = answer["status"].as_u64().is_some_and(|status| status < 300);
        is_done.then(|| answer["text"].as_str().unwrap_or_default().to_owned())
    }

    fn try_admin(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        self.order(&json!({ "admin": [method, path, body] }))
    }

    /// Creates a topic of `public/default`; with no partitions, one that is not partitioned.
    pub fn create_topic(&self, name: &str, partitions: u32) {
        let path = format!("persistent/public/default/{name}");
        match partitions {
            0 => self.admin("PUT", &path, &Value::Null),
            count => self.admin("PUT", &format!("{path}/partitions"), &json!(count)),
        };
    }

    /// Grows a topic to `partitions`.
    pub fn add_partitions(&self, name: &str, partitions: u32) {
        let path = format!("persistent/public/default/{name}/partitions");
        self.admin("POST", &path, &json!(partitions));
    }

    /// Stores values, in this order, and returns their places as `ledger:entry:index`.
    ///
    /// # Panics
    /// If one is not stored.
    pub fn produce(
        &self,
        topic: &str,
        values: impl IntoIterator<Item = String>,
        batching: Batching,
    ) -> Vec<String> {
        let messages: Vec<Value> =
            values.into_iter().map(|value| json!({ "value": value })).collect();
        self.produce_messages(topic, &messages, batching, None)
    }

    /// The same with all that a message has: `value`, `key`, `properties`, `event_time`; and compressed.
    ///
    /// # Panics
    /// If one is not stored.
    pub fn produce_messages(
        &self,
        topic: &str,
        messages: &[Value],
        batching: Batching,
        compression: Option<&str>,
    ) -> Vec<String> {
        let (batch, batch_max) = match batching {
            Batching::Single => (false, 1),
            Batching::Of(count) => (true, count),
        };
        let topic = match topic.contains("://") {
            true => topic.to_owned(),
            false => format!("persistent://public/default/{topic}"),
        };
        let order = json!({
            "produce": topic, "messages": messages, "batch": batch, "batch_max": batch_max,
            "compression": compression,
        });
        let answer = self.order(&order).unwrap_or_else(|error| panic!("{topic}: {error}"));
        assert_eq!(answer["failures"], json!([]), "{topic}");
        let ids = answer["ids"].as_array().expect("an answer has ids");
        let place = |id: &Value| {
            let number = |at: usize| id[at].as_i64().expect("an id has three numbers").max(0);
            format!("{}:{}:{}", number(0), number(1), number(2))
        };
        ids.iter().map(place).collect()
    }

    fn order(&self, order: &Value) -> Result<Value, String> {
        let mut driver = self.driver.lock();
        let driver = driver.get_or_insert_with(|| self.drive());
        writeln!(driver.orders, "{order}").map_err(|error| error.to_string())?;
        let mut answer = String::new();
        driver.answers.read_line(&mut answer).map_err(|error| error.to_string())?;
        let answer: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
        match answer.get("error") {
            Some(error) => Err(error.to_string()),
            None => Ok(answer),
        }
    }

    fn drive(&self) -> Driver {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/pulsar/driver.py");
        let mut command = Command::new(self.services.join("python/bin/python"));
        command.arg(script).args([self.url(), self.web()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the client's environment is installed");
        let orders = child.stdin.take().expect("stdin is piped");
        let answers = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Driver { child, orders, answers }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Drop for PulsarServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The folder of services, with the broker and its client installed.
fn installed() -> PathBuf {
    let services = std::env::var_os("SEGUE_SERVICES_DIR").map(PathBuf::from).unwrap_or_else(|| {
        let home = std::env::var_os("HOME").expect("HOME is set");
        Path::new(&home).join(".cache/segue")
    });
    for script in ["pulsar/install.sh", "python/install.sh"] {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools").join(script);
        let status = Command::new(&script).status().expect("the install script runs");
        assert!(status.success(), "{} failed", script.display());
    }
    services
}
