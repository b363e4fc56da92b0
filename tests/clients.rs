//! Real clients against the server: psql with what a person types, psycopg and asyncpg with what a program sends.
//!
//! What psql prints is kept in `clients/psql.out`; `UPDATE_CLIENTS=1` writes it anew, to be read before it is kept.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use segue_testkit::segue::{Segue, repository};
use segue_testkit::wait::{poll, wait_for};

const DEADLINE: Duration = Duration::from_secs(120);

fn segue() -> Segue {
    Segue::start(env!("CARGO_BIN_EXE_segue"))
}

/// psql, without anybody's settings.
fn psql(segue: &Segue) -> Command {
    let mut command = Command::new("psql");
    command
        .args(["--no-psqlrc", "--host=127.0.0.1", "--username=test", "--dbname=test"])
        .arg(format!("--port={}", segue.port()))
        .env("LC_ALL", "C.UTF-8")
        .env("PAGER", "cat")
        .env_remove("PGOPTIONS")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn finished(mut child: Child, what: &str) -> Output {
    let ended = poll(DEADLINE, || child.try_wait().expect("it is our child"));
    if ended.is_none() {
        drop(child.kill());
    }
    let output = child.wait_with_output().expect("its output is readable");
    assert!(ended.is_some(), "{what} does not end: {}", text(&output.stderr));
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn run(command: &mut Command, what: &str) -> Output {
    finished(command.spawn().expect("the client is installed"), what)
}

#[test]
fn psql_shows_what_is_kept_in_its_file() {
    let segue = segue();
    let script = repository().join("tests/clients/psql.sql");
    let shown = Command::new("sh")
        .args(["-c", "exec \"$@\" 2>&1", "sh"])
        .arg("psql")
        .args([
            "--no-psqlrc",
            "--echo-queries",
            "--host=127.0.0.1",
            "--username=test",
            "--dbname=test",
        ])
        .arg(format!("--port={}", segue.port()))
        .arg("--file=psql.sql")
        .current_dir(script.parent().expect("it is in a folder"))
        .env("LC_ALL", "C.UTF-8")
        .env("PAGER", "cat")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("psql is installed");
    let shown = text(&finished(shown, "psql").stdout);
    let kept = repository().join("tests/clients/psql.out");
    if std::env::var_os("UPDATE_CLIENTS").is_some() {
        std::fs::write(&kept, &shown).expect("the folder is writable");
    }
    let kept = std::fs::read_to_string(&kept).expect("it is there");
    for (number, (shown, kept)) in shown.lines().zip(kept.lines()).enumerate() {
        assert_eq!(shown, kept, "line {} of tests/clients/psql.out", number + 1);
    }
    assert_eq!(shown.lines().count(), kept.lines().count(), "as many lines");
}

/// psql's completion of names in `SELECT * FROM per_`, `\d or` and `SET back`, in its own words.
const COMPLETIONS: [(&str, &str); 3] = [
    (
        "SELECT c.relname, NULL::pg_catalog.text FROM pg_catalog.pg_class c WHERE c.relkind IN ('r', 'S', 'v', 'm', \
         'f', 'p') AND (c.relname) LIKE 'per\\_%' AND pg_catalog.pg_table_is_visible(c.oid) AND c.relnamespace <> \
         (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'pg_catalog')\nUNION ALL\nSELECT \
         NULL::pg_catalog.text, n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname LIKE 'per\\_%' AND \
         n.nspname NOT LIKE E'pg\\\\_%'\nLIMIT 1000",
        "per_name|",
    ),
    (
        "SELECT pg_catalog.quote_ident(attname) FROM pg_catalog.pg_attribute a, pg_catalog.pg_class c WHERE c.oid = \
         a.attrelid AND a.attnum > 0 AND NOT a.attisdropped AND substring(pg_catalog.quote_ident(attname),1,2)='na' \
         AND (pg_catalog.quote_ident(relname)='people' OR '\"' || relname || '\"'='people') AND \
         pg_catalog.pg_table_is_visible(c.oid)\nLIMIT 1000",
        "name",
    ),
    (
        "SELECT pg_catalog.lower(name) FROM pg_catalog.pg_settings WHERE context IN ('user', 'superuser') AND \
         pg_catalog.lower(name) LIKE pg_catalog.lower('back%')\nLIMIT 1000",
        "background_ddl",
    ),
];

#[test]
fn psql_completes_names_of_relations_columns_and_settings() {
    let segue = segue();
    let setup = "CREATE TABLE people (id int PRIMARY KEY, name text); \
                 CREATE MATERIALIZED VIEW per_name AS SELECT name, count(*) AS n FROM people GROUP BY name";
    assert!(run(psql(&segue).args(["-qc", setup]), "psql").status.success());
    for (question, answer) in COMPLETIONS {
        let output = run(psql(&segue).args(["-Atc", question]), "psql");
        assert!(output.status.success(), "{question}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout).trim(), answer, "{question}");
    }
}

fn interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success(), "psql is there to be interrupted");
}

/// What psql says of a statement that Ctrl-C ends; it reads no further then.
fn interrupted(segue: &Segue, statement: &str, is_running: impl Fn() -> bool) -> Output {
    let mut child = psql(segue)
        .args(["-At", "-v", "VERBOSITY=verbose"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("psql is installed");
    let mut input = child.stdin.take().expect("stdin is piped");
    writeln!(input, "{statement};").expect("psql reads");
    drop(input);
    wait_for("the statement to run", DEADLINE, || is_running().then_some(()));
    interrupt(&child);
    finished(child, "psql")
}

fn answer(segue: &Segue, question: &str) -> String {
    let output = run(psql(segue).args(["-Atc", question]), "psql");
    assert!(output.status.success(), "{question}: {}", text(&output.stderr));
    text(&output.stdout).trim().to_owned()
}

#[test]
fn ctrl_c_ends_a_long_select() {
    let segue = segue();
    let statement = "SELECT count(*) FROM generate_series(1, 10000000) a(x), generate_series(1, 10000000) b(y) \
                     WHERE x + y = 3";
    let start = Instant::now();
    let pid = segue.pid();
    // The server works once the query has used the processor for a while.
    let output = interrupted(&segue, statement, || {
        start.elapsed() > Duration::from_secs(1) && processor_ticks(pid) > 30
    });
    let errors = text(&output.stderr);
    assert!(errors.contains("57014: canceling statement due to user request"), "{errors}");
    assert_eq!(text(&output.stdout), "");
    assert_eq!(answer(&segue, "SELECT 1"), "1", "the server goes on");
}

/// Hundredths of a second of processor time.
fn processor_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the server runs");
    let (_, fields) = stat.rsplit_once(')').expect("the name is in brackets");
    let fields: Vec<&str> = fields.split_whitespace().collect();
    [11, 12].iter().filter_map(|place| fields[*place].parse::<u64>().ok()).sum()
}

#[test]
fn ctrl_c_ends_a_view_that_is_being_filled_and_leaves_nothing() {
    let segue = segue();
    // Ten rows a second: the view would take hours.
    let source = "CREATE SOURCE slow (id bigint) WITH STAGES (history WITH (connector = 'datagen', \
                  datagen.rows.per.second = '10', fields.id.kind = 'sequence', fields.id.start = '1', \
                  fields.id.end = '1000000'))";
    assert!(run(psql(&segue).args(["-qc", source]), "psql").status.success());
    let statement = "CREATE MATERIALIZED VIEW filled AS SELECT count(*) AS n FROM slow";
    let output = interrupted(&segue, statement, || !answer(&segue, "SHOW JOBS").is_empty());
    let errors = text(&output.stderr);
    assert!(errors.contains("57014"), "{errors}");
    assert_eq!(text(&output.stdout), "");
    assert_eq!(answer(&segue, "SHOW JOBS"), "", "the job has gone");
    assert_eq!(answer(&segue, "SELECT relname FROM pg_class WHERE relname = 'filled'"), "");
}

fn python() -> PathBuf {
    let home = match std::env::var_os("SEGUE_SERVICES_DIR") {
        Some(home) => PathBuf::from(home),
        None => Path::new(&std::env::var_os("HOME").expect("HOME is set")).join(".cache/segue"),
    };
    let python = home.join("python/bin/python");
    if !python.exists() {
        let made = Command::new(repository().join("tools/python/install.sh")).status();
        assert!(
            made.expect("bash runs").success(),
            "tools/python/install.sh makes {}",
            python.display()
        );
    }
    python
}

#[test]
fn psycopg_finds_everything_as_in_postgresql() {
    finds_everything("psycopg_client.py");
}

#[test]
fn asyncpg_finds_everything_as_in_postgresql() {
    finds_everything("asyncpg_client.py");
}

fn finds_everything(program: &str) {
    let segue = segue();
    let script = repository().join("tests/clients").join(program);
    let output = run(
        Command::new(python())
            .arg(script)
            .arg(segue.port().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
        "the Python program",
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "all is as it should be\n");
}
