//! Configuration: flags over environment over file over defaults.
//!
//! Invariant: every setting has one name in all three places: `--data-dir`, `SEGUE_DATA_DIR`, `data_dir`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use segue_engine::MemoryLimits;
use serde::Deserialize;

use crate::machine::Size;

/// A streaming SQL server whose sources change hands without losing a row.
#[derive(Parser)]
#[command(name = "segue", version, about, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start the server.
    Serve(ServeFlags),
}

#[derive(Args)]
pub(crate) struct ServeFlags {
    /// Where psql connects [default: 127.0.0.1:4566].
    #[arg(long, env = "SEGUE_LISTEN", value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Where everything durable lies [default: ./segue-data].
    #[arg(long, env = "SEGUE_DATA_DIR", value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// How many clients may be connected [default: 500].
    #[arg(long, env = "SEGUE_MAX_CONNECTIONS", value_name = "N")]
    max_connections: Option<usize>,
    /// How much memory the state of tables and views may take before sources are not read any more, such as 6GiB
    /// [default: half of the machine's].
    #[arg(long, env = "SEGUE_MEMORY_SOFT_LIMIT", value_name = "SIZE")]
    memory_soft_limit: Option<Size>,
    /// How much it may take before the largest view is suspended [default: seven tenths of the machine's].
    #[arg(long, env = "SEGUE_MEMORY_HARD_LIMIT", value_name = "SIZE")]
    memory_hard_limit: Option<Size>,
    /// How many threads maintain one table or view of which much changes, where ALTER … SET PARALLELISM has not said
    /// otherwise [default: the machine's cores].
    #[arg(long, env = "SEGUE_WORKERS", value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Where Prometheus scrapes /metrics, such as 127.0.0.1:4567 [default: nowhere].
    #[arg(long, env = "SEGUE_METRICS_LISTEN", value_name = "ADDRESS:PORT")]
    metrics_listen: Option<SocketAddr>,
    /// How log lines look [default: plain].
    #[arg(long, env = "SEGUE_LOG_FORMAT", value_name = "FORMAT")]
    log_format: Option<LogFormat>,
    /// A TOML file with the same settings: listen, data_dir, max_connections, memory_soft_limit, memory_hard_limit,
    /// workers, metrics_listen, log_format.
    #[arg(long, env = "SEGUE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    #[default]
    Plain,
    Json,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    listen: Option<SocketAddr>,
    data_dir: Option<PathBuf>,
    max_connections: Option<usize>,
    memory_soft_limit: Option<Size>,
    memory_hard_limit: Option<Size>,
    workers: Option<NonZeroUsize>,
    metrics_listen: Option<SocketAddr>,
    log_format: Option<LogFormat>,
}

/// The settings in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    pub(crate) data_dir: PathBuf,
    pub(crate) max_connections: usize,
    pub(crate) memory: MemoryLimits,
    pub(crate) workers: NonZeroUsize,
    /// `None`: there are no metrics.
    pub(crate) metrics_listen: Option<SocketAddr>,
    pub(crate) log_format: LogFormat,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("could not read configuration file \"{}\": {reason}", file.display())]
    Read { file: PathBuf, reason: std::io::Error },
    #[error("could not read configuration file \"{}\": {}", file.display(), reason.to_string().trim_end())]
    Parse { file: PathBuf, reason: toml::de::Error },
    #[error(
        "the soft limit of memory ({soft_bytes} bytes) is above the hard one ({hard_bytes} bytes)"
    )]
    Memory { soft_bytes: u64, hard_bytes: u64 },
}

impl ServeFlags {
    /// Flags (and through clap the environment) over the file over the defaults.
    pub(crate) fn resolve(self) -> Result<Config, ConfigError> {
        let file = self.config.as_deref().map_or_else(|| Ok(ConfigFile::default()), read_file)?;
        Ok(Config {
            listen: self.listen.or(file.listen).unwrap_or(([127, 0, 0, 1], 4566).into()),
            data_dir: self.data_dir.or(file.data_dir).unwrap_or_else(|| "segue-data".into()),
            max_connections: self.max_connections.or(file.max_connections).unwrap_or(500),
            memory: memory_limits(
                self.memory_soft_limit.or(file.memory_soft_limit),
                self.memory_hard_limit.or(file.memory_hard_limit),
            )?,
            workers: self.workers.or(file.workers).unwrap_or_else(crate::machine::cores),
            metrics_listen: self.metrics_listen.or(file.metrics_listen),
            log_format: self.log_format.or(file.log_format).unwrap_or_default(),
        })
    }
}

/// What is not set follows from the machine; one limit alone draws the other with it.
fn memory_limits(soft: Option<Size>, hard: Option<Size>) -> Result<MemoryLimits, ConfigError> {
    let machine_bytes = crate::machine::memory_bytes();
    let of_machine = |tenths: u64| machine_bytes.map_or(u64::MAX, |bytes| bytes / 10 * tenths);
    let hard_bytes = hard.map_or_else(|| of_machine(7), |size| size.0);
    let soft_bytes = soft.map_or_else(|| of_machine(5).min(hard_bytes), |size| size.0);
    let hard_bytes = if hard.is_none() { hard_bytes.max(soft_bytes) } else { hard_bytes };
    if soft_bytes > hard_bytes {
        return Err(ConfigError::Memory { soft_bytes, hard_bytes });
    }
    Ok(MemoryLimits { soft_bytes, hard_bytes })
}

fn read_file(file: &Path) -> Result<ConfigFile, ConfigError> {
    let text = std::fs::read_to_string(file)
        .map_err(|reason| ConfigError::Read { file: file.to_owned(), reason })?;
    toml::from_str(&text).map_err(|reason| ConfigError::Parse { file: file.to_owned(), reason })
}

/// Logs go to stderr, `RUST_LOG` filters them; stdout is for the line that says the server is ready.
pub(crate) fn init_logging(format: LogFormat) {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Plain => builder.init(),
        LogFormat::Json => builder.json().init(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use clap::Parser;

    use super::{Cli, Command, Config, LogFormat};

    fn resolve(arguments: &[&str]) -> Result<Config, String> {
        let cli = Cli::try_parse_from([&["segue", "serve"], arguments].concat())
            .map_err(|error| error.to_string())?;
        let Command::Serve(flags) = cli.command;
        flags.resolve().map_err(|error| error.to_string())
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        write!(file, "listen = \"127.0.0.1:7000\"\nlog_format = \"json\"\n").expect("written");
        let path = file.path().to_str().expect("ASCII").to_owned();
        let config = resolve(&["--config", &path, "--listen", "127.0.0.1:7001"]).expect("valid");
        assert_eq!(config.listen.port(), 7001);
        assert_eq!(config.log_format, LogFormat::Json);
        assert_eq!(config.max_connections, 500);
    }

    #[test]
    fn limits_of_memory_are_sizes_and_the_soft_one_is_the_lower() {
        let config = resolve(&["--memory-soft-limit", "1GiB", "--memory-hard-limit", "1500 MB"]);
        let memory = config.expect("valid").memory;
        assert_eq!((memory.soft_bytes, memory.hard_bytes), (1 << 30, 1_500_000_000));
        let memory = resolve(&["--memory-hard-limit", "4096"]).expect("valid").memory;
        assert_eq!((memory.soft_bytes, memory.hard_bytes), (4096, 4096));
        let error = resolve(&["--memory-soft-limit", "2KiB", "--memory-hard-limit", "1KiB"]);
        assert!(error.unwrap_err().contains("above the hard one"));
        let error = resolve(&["--memory-soft-limit", "much"]).unwrap_err();
        assert!(error.contains("a size is a number of bytes, or of KiB"), "{error}");
    }

    #[test]
    fn an_unknown_setting_is_named() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        writeln!(file, "lisen = \"127.0.0.1:7000\"").expect("written");
        let error = resolve(&["--config", file.path().to_str().expect("ASCII")]).unwrap_err();
        assert!(error.contains("unknown field `lisen`"), "{error}");
    }
}
