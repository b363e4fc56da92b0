//! Runs sqllogictest files through the real wire protocol, simple or extended.
//!
//! Values are compared as PostgreSQL's text form; NULL is `NULL`, an empty string `(empty)`.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use async_trait::async_trait;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType};
use tokio_postgres::error::ErrorPosition;
use tokio_postgres::types::{FromSql, Kind, Type};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// How long one file may take.
const FILE_DEADLINE: Duration = Duration::from_secs(240);

/// Which half of the protocol a run exercises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Simple,
    Extended,
}

impl Protocol {
    /// Both, for tests that must hold in both.
    pub const ALL: [Protocol; 2] = [Protocol::Simple, Protocol::Extended];

    /// For names of tests and labels in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Simple => "simple",
            Protocol::Extended => "extended",
        }
    }
}

/// Runs `file` against the server on `port`. `variables` are for `${NAME}` in the file and for its commands.
pub async fn run_file(
    file: &Path,
    port: u16,
    protocol: Protocol,
    variables: &[(String, String)],
) -> Result<(), String> {
    let mut runner = sqllogictest::Runner::new(|| Connection::open(port, protocol));
    runner.add_label(protocol.as_str());
    runner.with_column_validator(sqllogictest::default_column_validator);
    for (name, value) in variables {
        runner.set_var(name.clone(), value.clone());
    }
    match tokio::time::timeout(FILE_DEADLINE, runner.run_file_async(file)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error.display(false).to_string()),
        Err(_) => Err(format!("{} took over {FILE_DEADLINE:?}", file.display())),
    }
}

/// Rewrites what `file` expects to what the server answers.
pub async fn update_file(
    file: &Path,
    port: u16,
    variables: &[(String, String)],
) -> Result<(), String> {
    let mut runner = sqllogictest::Runner::new(|| Connection::open(port, Protocol::Simple));
    for (name, value) in variables {
        runner.set_var(name.clone(), value.clone());
    }
    runner
        .update_test_file(
            file,
            " ",
            sqllogictest::default_validator,
            sqllogictest::default_normalizer,
            sqllogictest::default_column_validator,
        )
        .await
        .map_err(|error| error.to_string())
}

/// One connection of a file.
struct Connection {
    client: Client,
    protocol: Protocol,
}

/// The server's error, shown as psql would with `VERBOSITY verbose`.
#[derive(Debug, thiserror::Error)]
#[error("{}", show(.error, .sql))]
struct QueryError {
    error: tokio_postgres::Error,
    sql: String,
}

impl QueryError {
    fn of(sql: &str) -> impl Fn(tokio_postgres::Error) -> QueryError {
        |error| QueryError { error, sql: sql.to_owned() }
    }
}

impl Connection {
    async fn open(port: u16, protocol: Protocol) -> Result<Connection, QueryError> {
        let url = format!("host=127.0.0.1 port={port} user=test dbname=test");
        let (client, connection) =
            tokio_postgres::connect(&url, NoTls).await.map_err(QueryError::of(""))?;
        tokio::spawn(async move { drop(connection.await) });
        Ok(Connection { client, protocol })
    }
}

#[async_trait]
impl AsyncDB for Connection {
    type Error = QueryError;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, QueryError> {
        match self.protocol {
            Protocol::Simple => simple(&self.client, sql).await,
            Protocol::Extended => extended(&self.client, sql).await,
        }
        .map_err(QueryError::of(sql))
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "segue"
    }

    async fn sleep(duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    async fn run_command(command: Command) -> std::io::Result<Output> {
        tokio::process::Command::from(command).output().await
    }

    fn error_sql_state(error: &QueryError) -> Option<String> {
        error.error.code().map(|code| code.code().to_owned())
    }
}

async fn simple(
    client: &Client,
    sql: &str,
) -> Result<DBOutput<DefaultColumnType>, tokio_postgres::Error> {
    let mut columns = None;
    let mut rows = Vec::new();
    let mut affected = 0;
    for message in client.simple_query(sql).await? {
        match message {
            SimpleQueryMessage::RowDescription(description) => columns = Some(description.len()),
            SimpleQueryMessage::Row(row) => {
                rows.push((0..row.len()).map(|i| cell(row.get(i))).collect());
            }
            SimpleQueryMessage::CommandComplete(count) => affected = count,
            _ => {}
        }
    }
    Ok(output(columns, rows, affected))
}

async fn extended(
    client: &Client,
    sql: &str,
) -> Result<DBOutput<DefaultColumnType>, tokio_postgres::Error> {
    let statement = client.prepare(sql).await?;
    if statement.columns().is_empty() {
        let affected = client.execute(&statement, &[]).await?;
        return Ok(output(None, Vec::new(), affected));
    }
    let rows = client.query(&statement, &[]).await?;
    let text = rows
        .iter()
        .map(|row| {
            (0..row.len())
                .map(|i| cell(row.get::<_, Option<BinaryValue>>(i).map(|value| value.0).as_deref()))
                .collect()
        })
        .collect();
    Ok(output(Some(statement.columns().len()), text, 0))
}

fn output(
    columns: Option<usize>,
    rows: Vec<Vec<String>>,
    affected: u64,
) -> DBOutput<DefaultColumnType> {
    match columns {
        Some(columns) => DBOutput::Rows { types: vec![DefaultColumnType::Any; columns], rows },
        None => DBOutput::StatementComplete(affected),
    }
}

fn cell(value: Option<&str>) -> String {
    match value {
        None => "NULL".to_owned(),
        Some("") => "(empty)".to_owned(),
        Some(text) => text.to_owned(),
    }
}

fn show(error: &tokio_postgres::Error, sql: &str) -> String {
    let Some(db) = error.as_db_error() else { return error.to_string() };
    let mut text = format!("ERROR: {}: {}", db.code().code(), db.message());
    if let Some(detail) = db.detail() {
        text += &format!("\nDETAIL: {detail}");
    }
    if let Some(hint) = db.hint() {
        text += &format!("\nHINT: {hint}");
    }
    if let Some(ErrorPosition::Original(position)) = db.position() {
        text += &format!("\nAT: {}", place(sql, *position));
    }
    text
}

/// Where a position points: line and word, as offsets depend on what stands for the file's variables.
fn place(sql: &str, position: u32) -> String {
    let before = usize::try_from(position).map_or(0, |position| position.saturating_sub(1));
    let at = sql.char_indices().nth(before).map_or(sql.len(), |(at, _)| at);
    let line = sql[..at].matches('\n').count() + 1;
    let rest = &sql[at..];
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    let word = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
    let other = rest.chars().next().map_or(0, char::len_utf8);
    match &rest[..word.max(other)] {
        "" => format!("line {line}, the end"),
        word => format!("line {line}, {word}"),
    }
}

/// A binary value in PostgreSQL's text form, so that both protocols are held to the same expectations.
struct BinaryValue(String);

impl<'a> FromSql<'a> for BinaryValue {
    fn from_sql(
        ty: &Type,
        raw: &'a [u8],
    ) -> Result<BinaryValue, Box<dyn std::error::Error + Sync + Send>> {
        binary::text(ty, raw).map(BinaryValue)
    }

    fn accepts(ty: &Type) -> bool {
        matches!(ty.kind(), Kind::Simple | Kind::Array(_) | Kind::Pseudo | Kind::Composite(_))
    }
}

mod binary;
