//! The options of a `postgres` stage, checked and typed.
//!
//! Invariant: an error about the URL never repeats it, because it may hold a password.

use std::path::PathBuf;
use std::time::Duration;

use segue_connect::{
    ConnectError, Format, IncludeKind, OptionSpec, Options, ReadConfig, RowFormat, Start,
};
use segue_types::{SqlState, UserError};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::query::quoted;

const fn option(name: &'static str, doc: &'static str) -> OptionSpec {
    OptionSpec { name, required: false, secret: false, doc }
}

const fn secret(name: &'static str, doc: &'static str) -> OptionSpec {
    OptionSpec { name, required: false, secret: true, doc }
}

pub(crate) const OPTIONS: &[OptionSpec] = &[
    secret("url", "Where the database is: postgres://user:password@host:port/database."),
    option("hostname", "The server's host name, instead of url."),
    option("port", "The server's port; 5432 unless given."),
    option("username", "The user to connect as."),
    secret("password", "The user's password."),
    option("database.name", "The database; the user's name unless given."),
    option("schema.name", "The schema of table.name; public unless given."),
    option("table.name", "The table to read whole; instead of query."),
    option("query", "The query to read; instead of table.name."),
    option("ssl.mode", "disable, prefer (the default), require, or verify-full."),
    option("ssl.root.cert", "A file of PEM certificates to trust, for verify-full."),
    option("connect.timeout", "Seconds to wait for a connection; 10 unless given."),
];

const CONNECT_TIMEOUT_S: u64 = 10;
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;
/// How long sent bytes may stay unacknowledged; the same time as the keepalives give.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);

/// How much of the server's certificate is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// As libpq's `require`: encrypted, but whoever answers is believed.
    Anyone,
    Roots(PathBuf),
}

/// A stage's options, checked.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) connection: Config,
    pub(crate) trust: Trust,
    pub(crate) query: String,
    /// The server, for messages: no user, no password.
    pub(crate) system: String,
}

impl Settings {
    /// Checks everything that can be checked without the server.
    pub(crate) fn of(config: &ReadConfig) -> Result<Settings, ConnectError> {
        check_read(config).map_err(ConnectError::Config)?;
        let settings = || {
            let mut connection = connection(&config.options)?;
            let trust = trust(&config.options, &mut connection)?;
            let system = system(&connection)?;
            Ok(Settings { connection, trust, query: query(&config.options)?, system })
        };
        settings().map_err(ConnectError::Config)
    }
}

fn invalid(message: impl Into<String>) -> UserError {
    UserError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn check_read(config: &ReadConfig) -> Result<(), UserError> {
    let Format { rows, encode, .. } = &config.format;
    if *rows != RowFormat::Plain || !matches!(encode.as_str(), "" | "native") {
        return Err(invalid("connector \"postgres\" takes no FORMAT and ENCODE")
            .with_hint("Leave them out: the rows have the types of the query."));
    }
    if !matches!(config.start, Start::Handoff | Start::Earliest) || config.stop.is_some() {
        return Err(UserError::unsupported("a query is read whole, from its beginning to its end")
            .with_hint("Leave out START AT and STOP AT, and restrict the rows in the query."));
    }
    let fields = &config.schema.fields()[config.declared_columns..];
    for (include, field) in config.includes.iter().zip(fields) {
        if include.kind != IncludeKind::Stage && !field.is_nullable() {
            return Err(invalid(format!("INCLUDE column \"{}\" would be NULL", field.name()))
                .with_detail("The rows of a query have no partition, offset, header or file."));
        }
    }
    Ok(())
}

fn connection(options: &Options) -> Result<Config, UserError> {
    let mut connection = match (options.get("url"), options.get("hostname")) {
        (Some(_), Some(_)) => {
            return Err(invalid("options \"url\" and \"hostname\" exclude each other"));
        }
        (Some(url), None) => parse_url(url)?,
        (None, Some(host)) => {
            let mut connection = Config::new();
            connection.host(host).user(options.require("username")?);
            connection
        }
        (None, None) => {
            return Err(invalid("option \"url\" or \"hostname\" is required")
                .with_hint("Give url = 'postgres://user@host:5432/database'."));
        }
    };
    match (options.parse::<u16>("port", "a port number")?, options.get("url")) {
        (Some(_), Some(_)) => {
            return Err(invalid("options \"url\" and \"port\" exclude each other"));
        }
        (Some(port), None) => _ = connection.port(port),
        (None, _) => {}
    }
    if let Some(user) = options.get("username") {
        connection.user(user);
    }
    if let Some(password) = options.get("password") {
        connection.password(password);
    }
    if let Some(database) = options.get("database.name") {
        connection.dbname(database);
    }
    let timeout_s = options.parse::<u64>("connect.timeout", "a number of seconds")?;
    connection
        .application_name("segue")
        .connect_timeout(Duration::from_secs(timeout_s.unwrap_or(CONNECT_TIMEOUT_S).max(1)))
        .keepalives(true)
        .keepalives_idle(KEEPALIVE_IDLE)
        .keepalives_interval(KEEPALIVE_INTERVAL)
        .keepalives_retries(KEEPALIVE_RETRIES)
        .tcp_user_timeout(TCP_USER_TIMEOUT);
    Ok(connection)
}

/// The parser's own message may quote parts of the URL, so it is not passed on.
fn parse_url(url: &str) -> Result<Config, UserError> {
    let hint = "Write it as postgres://user:password@host:port/database, with special characters \
                percent-encoded; the parameters after ? are those of tokio-postgres, TLS is set by ssl.mode.";
    let connection: Config =
        url.parse().map_err(|_| invalid("invalid value for option \"url\"").with_hint(hint))?;
    if connection.get_user().is_none() {
        return Err(invalid("option \"url\" names no user").with_hint(hint));
    }
    Ok(connection)
}

fn trust(options: &Options, connection: &mut Config) -> Result<Trust, UserError> {
    let roots = options.get("ssl.root.cert");
    let mode = options.get("ssl.mode");
    match mode {
        None => {}
        Some("disable" | "disabled") => _ = connection.ssl_mode(SslMode::Disable),
        Some("prefer" | "preferred") => _ = connection.ssl_mode(SslMode::Prefer),
        Some("require" | "required" | "verify-full") => {
            connection.ssl_mode(SslMode::Require);
        }
        Some(other) => {
            return Err(invalid(format!("invalid value for option \"ssl.mode\": \"{other}\""))
                .with_hint("Give disable, prefer, require or verify-full."));
        }
    }
    match (mode, roots) {
        (Some("verify-full"), Some(roots)) => Ok(Trust::Roots(PathBuf::from(roots))),
        (Some("verify-full"), None) => {
            Err(invalid("ssl.mode \"verify-full\" needs option \"ssl.root.cert\""))
        }
        (_, Some(_)) => Err(invalid("option \"ssl.root.cert\" needs ssl.mode \"verify-full\"")),
        (_, None) => Ok(Trust::Anyone),
    }
}

fn query(options: &Options) -> Result<String, UserError> {
    let schema = options.get("schema.name");
    match (options.get("query"), options.get("table.name")) {
        (Some(query), None) if schema.is_none() => Ok(query.to_owned()),
        (Some(_), None) => Err(invalid("option \"schema.name\" goes with \"table.name\"")
            .with_hint("Qualify the names in the query instead.")),
        (None, Some(table)) => {
            Ok(format!("SELECT * FROM {}.{}", quoted(schema.unwrap_or("public")), quoted(table)))
        }
        (Some(_), Some(_)) => {
            Err(invalid("options \"query\" and \"table.name\" exclude each other"))
        }
        (None, None) => Err(invalid("option \"query\" or \"table.name\" is required")),
    }
}

fn system(connection: &Config) -> Result<String, UserError> {
    let host = match connection.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => match connection.get_hostaddrs().first() {
            Some(address) => address.to_string(),
            None => return Err(invalid("option \"url\" names no host")),
        },
    };
    let port = connection.get_ports().first().copied().unwrap_or(5432);
    Ok(format!("postgres at {host}:{port}"))
}

#[cfg(test)]
mod tests;
