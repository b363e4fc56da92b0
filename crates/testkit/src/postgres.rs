//! A real PostgreSQL server for one test: own data directory, own port, statement log.
//!
//! PostgreSQL refuses to run as root, so root starts it as user `postgres`. Between the test and the server
//! sits a guardian shell that reads a pipe of the test's process: however that process ends, also by
//! SIGKILL, the pipe closes, the server stops and its directory goes.
//! Invariant: no wait without a deadline; a server that does not start panics with its log.

use std::fs::{File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio_postgres::NoTls;

use crate::ports::free_port;
use crate::wait::poll;

const DEADLINE: Duration = Duration::from_secs(30);

/// Started by [`PostgresServer::start`] with the directory as `$0` and the server's command line as
/// arguments. A background child of a shell has SIGINT and SIGQUIT ignored, but PostgreSQL sets its own
/// handlers.
const GUARDIAN: &str = r#"
"$@" & server=$!
read order || order=gone
case $order in stop) kill -INT $server ;; *) kill -QUIT $server ;; esac
wait $server
if [ "$order" = gone ]; then rm -rf "$0"; fi
"#;

const SETTINGS: &str = "
listen_addresses = '127.0.0.1'
wal_level = logical
max_replication_slots = 20
max_wal_senders = 20
max_connections = 60
shared_buffers = 64MB
fsync = off
synchronous_commit = off
full_page_writes = off
log_statement = all
log_line_prefix = '%m [%p] %a '
timezone = 'UTC'
lc_messages = 'C'
";

/// Everybody is trusted, except members of the role `password_required` (which a test creates).
const CLIENT_AUTHENTICATION: &str = "
local all all trust
host all +password_required 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
host replication all 127.0.0.1/32 trust
";

/// A running (or stopped) server. Dropping it stops the server at once and removes its directory.
#[derive(Debug)]
pub struct PostgresServer {
    directory: TempDir,
    binaries: PathBuf,
    port: u16,
    guardian: Option<Guardian>,
}

#[derive(Debug)]
struct Guardian {
    shell: Child,
    orders: ChildStdin,
}

impl PostgresServer {
    /// Creates a cluster in a new directory and starts it on a free port.
    ///
    /// # Panics
    /// If PostgreSQL is not installed or does not start within 30 s.
    pub fn start() -> PostgresServer {
        let binaries = binaries();
        let directory = tempfile::Builder::new()
            .prefix("segue-postgres-")
            .tempdir()
            .expect("a temporary directory can be made");
        give_to_postgres(directory.path());
        let data = directory.path().join("data");
        let mut initdb = as_postgres(&binaries.join("initdb"));
        initdb
            .arg("-D")
            .arg(&data)
            .args(["-U", "postgres", "--auth=trust", "--no-sync", "--locale=C.UTF-8", "-E", "UTF8"])
            .current_dir("/");
        let output = initdb.output().expect("initdb can be run");
        assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
        let port = free_port();
        let sockets = directory.path().display();
        let place = format!("port = {port}\nunix_socket_directories = '{sockets}'\n");
        append(&data.join("postgresql.conf"), &format!("{SETTINGS}{place}"));
        std::fs::write(data.join("pg_hba.conf"), CLIENT_AUTHENTICATION).expect("data is writable");
        let mut server = PostgresServer { directory, binaries, port, guardian: None };
        server.start_again();
        server
    }

    /// Starts the stopped server on the same port and data.
    ///
    /// # Panics
    /// If it runs already, or does not start within 30 s.
    pub fn start_again(&mut self) {
        assert!(self.guardian.is_none(), "the server runs already");
        let log = OpenOptions::new().create(true).append(true).open(self.log_path());
        let log = log.expect("the log can be written");
        let mut server = as_postgres(&self.binaries.join("postgres"));
        server.arg("-D").arg(self.data());
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(GUARDIAN).arg(self.directory.path());
        shell.arg(server.get_program()).args(server.get_args());
        shell.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        let mut shell = shell.spawn().expect("a shell can be started");
        let orders = shell.stdin.take().expect("stdin is piped");
        self.guardian = Some(Guardian { shell, orders });
        await_until("PostgreSQL to start", &|| self.log(), || self.is_ready());
    }

    /// Stops the server in an orderly way; its data and port are kept.
    ///
    /// # Panics
    /// If it does not stop within 30 s.
    pub fn stop(&mut self) {
        let Some(mut guardian) = self.guardian.take() else { return };
        guardian.orders.write_all(b"stop\n").expect("the guardian listens");
        guardian.await_end();
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A URL of the superuser and the database `postgres`.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// A connection as superuser. Needs a tokio runtime.
    ///
    /// # Panics
    /// If the server refuses.
    pub async fn connect(&self) -> tokio_postgres::Client {
        let url = self.url();
        let connecting = tokio_postgres::connect(&url, NoTls);
        let connected = tokio::time::timeout(DEADLINE, connecting).await.expect("connects in time");
        let (client, connection) = connected.expect("the server accepts its superuser");
        tokio::spawn(connection);
        client
    }

    /// Serves TLS from now on, with a certificate that it signed itself.
    ///
    /// # Panics
    /// If `openssl` cannot be run.
    pub fn enable_tls(&mut self) {
        let (data, certificate) = (self.data(), self.certificate());
        let mut openssl = as_postgres(Path::new("openssl"));
        openssl.args(["req", "-new", "-x509", "-days", "2", "-nodes", "-subj", "/CN=localhost"]);
        openssl.args(["-addext", "subjectAltName=DNS:localhost"]);
        openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        openssl.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-batch"]);
        openssl.arg("-out").arg(certificate).arg("-keyout").arg(data.join("server.key"));
        let output = openssl.current_dir("/").output().expect("openssl can be run");
        assert!(output.status.success(), "openssl: {}", String::from_utf8_lossy(&output.stderr));
        append(&data.join("postgresql.conf"), "ssl = on\n");
        self.stop();
        self.start_again();
    }

    /// The certificate of [`PostgresServer::enable_tls`], for the name `localhost`; it is its own root.
    pub fn certificate(&self) -> PathBuf {
        self.data().join("server.crt")
    }

    /// How many statements in the log contain `needle`.
    pub fn statements_matching(&self, needle: &str) -> usize {
        statements(&self.log()).filter(|statement| statement.contains(needle)).count()
    }

    /// The whole log.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(self.log_path()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn log_path(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    /// The last line of `postmaster.pid` says so, without a connection.
    fn is_ready(&self) -> bool {
        std::fs::read_to_string(self.data().join("postmaster.pid"))
            .is_ok_and(|text| text.lines().nth(7).is_some_and(|status| status.trim() == "ready"))
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if let Some(guardian) = self.guardian.take() {
            let Guardian { shell, orders } = guardian;
            drop(orders);
            await_end(shell);
        }
    }
}

impl Guardian {
    fn await_end(self) {
        await_end(self.shell);
    }
}

fn await_end(mut shell: Child) {
    let ended = || shell.try_wait().is_ok_and(|status| status.is_some());
    await_until("PostgreSQL to stop", &String::new, ended);
}

/// The logged statements, each as one text (continuation lines of the log start with a tab).
fn statements(log: &str) -> impl Iterator<Item = String> {
    let mut entries: Vec<String> = Vec::new();
    for line in log.lines() {
        match (line.strip_prefix('\t'), entries.last_mut()) {
            (Some(rest), Some(entry)) => {
                entry.push('\n');
                entry.push_str(rest);
            }
            _ => entries.push(line.to_owned()),
        }
    }
    entries
        .into_iter()
        .filter(|entry| entry.contains("LOG:  statement: ") || entry.contains("LOG:  execute "))
}

fn await_until(what: &str, log: &dyn Fn() -> String, mut condition: impl FnMut() -> bool) {
    let met = poll(DEADLINE, || condition().then_some(()));
    met.unwrap_or_else(|| panic!("waited {DEADLINE:?} for {what}\n{}", log()));
}

/// Where `initdb` and `postgres` are: the newest version that is installed, or what `pg_config` says.
fn binaries() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|version| {
            Path::new(&format!("/usr/lib/postgresql/{version}/bin/postgres")).exists()
        })
        .max();
    if let Some(version) = newest {
        return PathBuf::from(format!("/usr/lib/postgresql/{version}/bin"));
    }
    let output = Command::new("pg_config").arg("--bindir").output();
    let output = output.expect("PostgreSQL is installed, or pg_config on the PATH says where");
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}

fn we_are_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// `program`, run as user `postgres` when we are root.
fn as_postgres(program: &Path) -> Command {
    if !we_are_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]).arg(program);
    command
}

fn give_to_postgres(directory: &Path) {
    if we_are_root() {
        let id = |flag| {
            let output =
                Command::new("id").args([flag, "postgres"]).output().expect("id can be run");
            String::from_utf8_lossy(&output.stdout).trim().parse().ok()
        };
        chown(directory, id("-u"), id("-g")).expect("root may give a directory away");
    }
    std::fs::set_permissions(directory, Permissions::from_mode(0o750))
        .expect("it is ours or we are root");
}

fn append(path: &Path, text: &str) {
    let mut file: File =
        OpenOptions::new().append(true).open(path).expect("initdb has written this file");
    file.write_all(text.as_bytes()).expect("the disk has room");
}

#[cfg(test)]
mod tests {
    use super::{PostgresServer, statements};
    use std::time::{Duration, Instant};

    #[tokio::test]
    async fn a_server_keeps_its_data_over_a_stop_and_logs_its_statements() {
        let began = Instant::now();
        let mut server = PostgresServer::start();
        assert!(began.elapsed() < Duration::from_secs(10), "started in {:?}", began.elapsed());
        let client = server.connect().await;
        client.batch_execute("CREATE TABLE kept AS SELECT 42 AS answer").await.expect("creates");
        server.stop();
        assert!(tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.is_err());
        server.start_again();
        let row = server.connect().await.query_one("SELECT answer FROM kept", &[]).await;
        assert_eq!(row.expect("the table is there").get::<_, i32>(0), 42);
        assert_eq!(server.statements_matching("CREATE TABLE kept"), 1);
        let directory = server.directory.path().to_owned();
        drop(server);
        assert!(!directory.exists());
    }

    #[test]
    fn a_statement_of_several_lines_is_one_and_an_error_repeats_none() {
        let log = "t [1] app LOG:  statement: SELECT 1\n\t, 2\nt [1] app ERROR:  no\n\
                   t [1] app STATEMENT:  SELECT 1\n\t, 2\nt [1] app LOG:  execute s: COMMIT\n";
        assert_eq!(statements(log).collect::<Vec<_>>().len(), 2);
        assert!(statements(log).next().is_some_and(|first| first.ends_with("SELECT 1\n, 2")));
    }
}
