//! Every file below `slt/`, through the simple and the extended protocol, each against a server of its own.
//!
//! A file that mentions `${POSTGRES}` or `${KAFKA}` gets a real server, shared by all files; `${ID}` is different
//! in each run, for names of tables and topics there; `${SECONDS}` is when it began; `${TESTKIT}` is the tool that makes
//! topics and records.
//! `UPDATE_SLT=1` rewrites what the files expect to what the server answers.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use libtest_mimic::{Arguments, Failed, Trial};
use segue_testkit::kafka::KafkaServer;
use segue_testkit::postgres::PostgresServer;
use segue_testkit::segue::{Segue, repository};
use segue_testkit::slt::{self, Protocol};

fn main() {
    let mut arguments = Arguments::from_args();
    // Each trial is a server process; two at a time keep two cores busy.
    arguments.test_threads.get_or_insert(3);
    let root = repository().join("slt");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    assert!(!files.is_empty(), "no files below {}", root.display());
    let update = std::env::var_os("UPDATE_SLT").is_some();
    let protocols = if update { &Protocol::ALL[..1] } else { &Protocol::ALL[..] };
    let trials = files
        .iter()
        .flat_map(|file| protocols.iter().map(|protocol| trial(&root, file, *protocol, update)))
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    services().stop();
    conclusion.exit();
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the folder is readable").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "slt") {
            files.push(path);
        }
    }
}

fn trial(root: &Path, file: &Path, protocol: Protocol, update: bool) -> Trial {
    let name = file.strip_prefix(root).expect("found below the root").display();
    let file = file.to_owned();
    Trial::test(format!("{name} ({})", protocol.as_str()), move || run(&file, protocol, update))
}

fn run(file: &Path, protocol: Protocol, update: bool) -> Result<(), Failed> {
    let text = std::fs::read_to_string(file)?;
    let variables = variables(&text);
    let segue = Segue::start(env!("CARGO_BIN_EXE_segue"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        if update {
            slt::update_file(file, segue.port(), &variables).await
        } else {
            slt::run_file(file, segue.port(), protocol, &variables).await
        }
    });
    outcome.map_err(|error| Failed::from(format!("{error}\nserver log:\n{}", tail(&segue.log()))))
}

fn tail(log: &str) -> &str {
    let start = log.len().saturating_sub(4000);
    log.get(start..).unwrap_or(log)
}

fn variables(text: &str) -> Vec<(String, String)> {
    static RUN: AtomicU32 = AtomicU32::new(0);
    let id = RUN.fetch_add(1, Ordering::Relaxed);
    let mut variables = vec![
        ("ID".to_owned(), format!("r{id}")),
        ("SLT".to_owned(), repository().join("slt").display().to_string()),
        ("SECONDS".to_owned(), seconds_since_1970().to_string()),
        ("TESTKIT".to_owned(), testkit().display().to_string()),
    ];
    if text.contains("${POSTGRES}") {
        variables.push(("POSTGRES".to_owned(), services().postgres()));
    }
    if text.contains("${KAFKA}") {
        variables.push(("KAFKA".to_owned(), services().kafka()));
    }
    variables
}

fn seconds_since_1970() -> u64 {
    std::time::UNIX_EPOCH.elapsed().expect("the clock is right").as_secs()
}

/// The testkit's tool, which the same build has put beside the server.
fn testkit() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_segue")).with_file_name("segue-testkit");
    assert!(binary.exists(), "{} is missing: build the whole workspace", binary.display());
    binary
}

/// The real servers, started when the first file asks.
#[derive(Default)]
struct Services {
    postgres: OnceLock<parking_lot::Mutex<Option<PostgresServer>>>,
    kafka: OnceLock<parking_lot::Mutex<Option<KafkaServer>>>,
}

fn services() -> &'static Services {
    static SERVICES: OnceLock<Services> = OnceLock::new();
    SERVICES.get_or_init(Services::default)
}

impl Services {
    fn postgres(&self) -> String {
        let server =
            self.postgres.get_or_init(|| parking_lot::Mutex::new(Some(PostgresServer::start())));
        server.lock().as_ref().expect("stopped only at the end").url()
    }

    fn kafka(&self) -> String {
        let server = self.kafka.get_or_init(|| parking_lot::Mutex::new(Some(KafkaServer::start())));
        server.lock().as_ref().expect("stopped only at the end").bootstrap()
    }

    /// Statics are never dropped, so the servers are ended by hand.
    fn stop(&self) {
        if let Some(server) = self.postgres.get() {
            server.lock().take();
        }
        if let Some(server) = self.kafka.get() {
            server.lock().take();
        }
    }
}
