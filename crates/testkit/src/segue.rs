//! The real Segue process: started on a free port and a data directory, stopped gently or killed, started again.

use std::future::poll_fn;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tempfile::TempDir;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use crate::wait::wait_for;

const START_DEADLINE: Duration = Duration::from_secs(60);
const STOP_DEADLINE: Duration = Duration::from_secs(60);

/// A Segue server of a test. Dropping it kills the process and removes the data.
pub struct Segue {
    binary: PathBuf,
    home: TempDir,
    failpoints: String,
    /// Environment variables of the next start.
    settings: Vec<(String, String)>,
    process: Option<Process>,
}

struct Process {
    child: Child,
    port: u16,
    log: Arc<Mutex<String>>,
}

impl Segue {
    /// Starts `binary` on a new data directory.
    ///
    /// # Panics
    /// If it is not ready in time; the message holds its log.
    pub fn start(binary: impl Into<PathBuf>) -> Segue {
        Segue::start_with_failpoints(binary, "")
    }

    /// The same, with crash points as in the variable `FAILPOINTS`.
    pub fn start_with_failpoints(binary: impl Into<PathBuf>, failpoints: &str) -> Segue {
        let home =
            tempfile::Builder::new().prefix("segue-test-").tempdir().expect("a scratch folder");
        let mut segue = Segue {
            binary: binary.into(),
            home,
            failpoints: failpoints.to_owned(),
            settings: Vec::new(),
            process: None,
        };
        segue.start_again();
        segue
    }

    /// The data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// The port of the running process; another one after each start.
    pub fn port(&self) -> u16 {
        self.process.as_ref().expect("the server runs").port
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("the server runs").child.id()
    }

    /// What the process has logged since it was started.
    pub fn log(&self) -> String {
        self.process.as_ref().expect("the server runs").log.lock().clone()
    }

    /// Crash points of the next start.
    pub fn set_failpoints(&mut self, failpoints: &str) {
        failpoints.clone_into(&mut self.failpoints);
    }

    /// Sets an environment variable of the next start, such as `SEGUE_MEMORY_SOFT_LIMIT`.
    pub fn set(&mut self, variable: &str, value: &str) {
        self.settings.push((variable.to_owned(), value.to_owned()));
    }

    /// Starts the process on the same data directory and waits until it is ready.
    ///
    /// # Panics
    /// If it does not become ready; with crash points set, use [`Segue::try_start_again`].
    pub fn start_again(&mut self) {
        if let Err(log) = self.try_start_again() {
            panic!("segue did not become ready:\n{log}");
        }
    }

    /// Starts the process; `Err` with its log when it ends before it is ready.
    pub fn try_start_again(&mut self) -> Result<(), String> {
        assert!(self.process.is_none(), "the server runs already");
        let mut child = self.command().spawn().expect("the segue binary runs");
        let log = Arc::new(Mutex::new(String::new()));
        let stderr = child.stderr.take().expect("stderr is piped");
        let collected = Arc::clone(&log);
        std::thread::spawn(move || collect(stderr, &collected));
        let stdout = child.stdout.take().expect("stdout is piped");
        let (ready, readiness) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                drop(ready.send(line));
            }
        });
        match readiness.recv_timeout(START_DEADLINE) {
            Ok(line) => {
                let port = line
                    .rsplit(' ')
                    .next()
                    .and_then(|port| port.parse().ok())
                    .unwrap_or_else(|| panic!("the ready line ends with the port: {line}"));
                self.process = Some(Process { child, port, log });
                Ok(())
            }
            Err(_) => {
                drop(child.kill());
                drop(child.wait());
                Err(log.lock().clone())
            }
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(self.data_dir())
            .env("FAILPOINTS", &self.failpoints)
            .env("RUST_LOG", "info")
            .envs(self.settings.iter().map(|(variable, value)| (variable, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// SIGKILL, and waits for the end.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            drop(process.child.kill());
            drop(process.child.wait());
        }
    }

    /// SIGTERM; returns how the process ended.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn stop(&mut self) -> ExitStatus {
        let process = self.process.as_mut().expect("the server runs");
        let pid = process.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs");
        assert!(sent.success(), "the process is there to be stopped");
        let status = wait_for_end(&mut process.child);
        self.process = None;
        status
    }

    /// Waits until the process has ended by itself, as a crash point makes it.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn wait_for_crash(&mut self) {
        let process = self.process.as_mut().expect("the server runs");
        wait_for_end(&mut process.child);
        self.process = None;
    }

    /// Whether the process still runs.
    pub fn is_running(&mut self) -> bool {
        let running = |process: &mut Process| {
            process.child.try_wait().expect("the server is our child").is_none()
        };
        self.process.as_mut().is_some_and(running)
    }

    /// A connection to the running process.
    ///
    /// # Panics
    /// If it refuses.
    pub async fn connect(&self) -> Client {
        self.try_connect().await.expect("the server takes connections")
    }

    /// A connection, unless the server refuses or has gone.
    pub async fn try_connect(&self) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(&self.url(), NoTls).await?;
        tokio::spawn(async move { drop(connection.await) });
        Ok(client)
    }

    /// A connection, and the NOTICEs that come on it.
    ///
    /// # Panics
    /// If the server refuses.
    pub async fn connect_with_notices(&self) -> (Client, Notices) {
        let connected = tokio_postgres::connect(&self.url(), NoTls).await;
        let (client, mut connection) = connected.expect("the server takes connections");
        let notices = Notices::default();
        let heard = notices.clone();
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await
            {
                if let AsyncMessage::Notice(notice) = message {
                    heard.0.lock().push(notice.message().to_owned());
                }
            }
        });
        (client, notices)
    }

    fn url(&self) -> String {
        format!("host=127.0.0.1 port={} user=test dbname=test", self.port())
    }
}

/// The NOTICEs of one connection, oldest first.
#[derive(Clone, Default)]
pub struct Notices(Arc<Mutex<Vec<String>>>);

impl Notices {
    /// Those that have come, and forgets them.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

impl Drop for Segue {
    fn drop(&mut self) {
        self.kill();
    }
}

fn wait_for_end(child: &mut Child) -> ExitStatus {
    wait_for("segue to end", STOP_DEADLINE, || child.try_wait().expect("the server is our child"))
}

fn collect(mut from: impl Read, into: &Mutex<String>) {
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        into.lock().push_str(&String::from_utf8_lossy(&buffer[..n]));
    }
}

/// The repository's root, for files that tests read.
pub fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
