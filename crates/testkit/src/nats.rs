//! A real NATS server with JetStream for tests: on a free port, with its own data folder.
//!
//! The binary comes from `tools/nats/install.sh`, which is run when it is missing. Invariant: the server dies
//! with its handle, and also with the test process, however that ends: a shell holds the other end of a pipe
//! and kills the server when the pipe closes.

mod client;

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use parking_lot::Mutex;
use tempfile::TempDir;

pub use client::{NatsClient, Publish};

use crate::ports::free_port;
use crate::wait::{poll, wait_for};

/// The version that `tools/nats/install.sh` fetches.
const VERSION: &str = "2.15.1";
/// How long the server may take to listen after its start, on a busy machine.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// How long it may take to end.
const STOP_DEADLINE: Duration = Duration::from_secs(20);

/// The user whom a server of [`NatsServer::with_password`] lets in.
pub const USER: &str = "segue";
/// And the password.
pub const PASSWORD: &str = "s3cret";

/// Runs the server and obeys its stdin: `kill` ends it at once; the end of stdin, which is also the end of
/// the test process, kills it and removes its home.
const KEEPER: &str = r#"
home=$1; shift
"$@" </dev/null >>"$home/server.log" 2>&1 &
server=$!
read -r order
kill -KILL $server; wait $server
[ "$order" = kill ] || rm -rf "$home"
"#;

/// One server. Dropping it kills the server and removes its data.
pub struct NatsServer {
    home: TempDir,
    binary: PathBuf,
    port: u16,
    user: Option<&'static str>,
    keeper: Mutex<Option<Child>>,
}

impl NatsServer {
    /// Starts a server; returns when it listens.
    ///
    /// # Panics
    /// If it cannot be installed or does not listen in time; the message holds its log.
    pub fn start() -> NatsServer {
        NatsServer::new(None)
    }

    /// The same, but it lets in only [`USER`] with [`PASSWORD`].
    ///
    /// # Panics
    /// As [`NatsServer::start`].
    pub fn with_password() -> NatsServer {
        NatsServer::new(Some(USER))
    }

    fn new(user: Option<&'static str>) -> NatsServer {
        let home = tempfile::Builder::new().prefix("segue-nats-").tempdir();
        let home = home.expect("a scratch folder");
        let keeper = Mutex::new(None);
        let server = NatsServer { home, binary: binary(), port: free_port(), user, keeper };
        server.start_again();
        server
    }

    /// Where clients connect to.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The server's port, for a proxy in front of it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A client, for streams and messages.
    pub async fn client(&self) -> NatsClient {
        NatsClient::connect(&self.url(), self.user.map(|user| (user, PASSWORD))).await
    }

    /// Kills the server (SIGKILL). Its data stays. Does nothing when it is down.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn kill(&self) {
        let Some(mut keeper) = self.keeper.lock().take() else { return };
        let mut stdin = keeper.stdin.take().expect("the keeper was given a pipe");
        stdin.write_all(b"kill\n").expect("the keeper reads its pipe");
        wait_for("the server to end", STOP_DEADLINE, || {
            keeper.try_wait().expect("the keeper is our child").map(|_| ())
        });
    }

    /// Starts the server on the same port and data; returns when it listens.
    ///
    /// # Panics
    /// If it runs already, or does not listen in time.
    pub fn start_again(&self) {
        let mut keeper = self.keeper.lock();
        assert!(keeper.is_none(), "the server runs already");
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper"]).arg(self.home.path()).arg(&self.binary);
        command.args(["-a", "127.0.0.1", "-p", &self.port.to_string(), "-js", "-sd"]);
        command.arg(self.home.path().join("data"));
        if let Some(user) = self.user {
            command.args(["--user", user, "--pass", PASSWORD]);
        }
        let child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn();
        *keeper = Some(child.expect("sh runs"));
        drop(keeper);
        // It listens last of all, when JetStream has recovered its streams.
        let listens = || TcpStream::connect(("127.0.0.1", self.port)).ok().map(drop);
        if poll(START_DEADLINE, listens).is_none() {
            let log = fs::read_to_string(self.home.path().join("server.log")).unwrap_or_default();
            panic!("the server did not listen in {START_DEADLINE:?}:\n{log}");
        }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The server's binary, installed first when it is missing.
fn binary() -> PathBuf {
    let services = std::env::var_os("SEGUE_SERVICES_DIR").map(PathBuf::from).unwrap_or_else(|| {
        let home = std::env::var_os("HOME").expect("HOME is set");
        Path::new(&home).join(".cache/segue")
    });
    let binary = services.join(format!("nats-{VERSION}/bin/nats-server"));
    if !binary.is_file() {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/nats/install.sh");
        let status = Command::new(&script).status().expect("the install script runs");
        assert!(status.success() && binary.is_file(), "{} failed", script.display());
    }
    binary
}
