//! The options of a files stage.

use std::path::PathBuf;
use std::time::Duration;

use segue_connect::{IncludeKind, OptionSpec, ReadConfig, RowFormat, Start, Stop};
use segue_formats::{CsvOptions, JsonOptions};
use segue_types::{Boundedness, SqlState, UserError};

use crate::glob::Glob;

pub(crate) const SPECS: &[OptionSpec] = &[
    OptionSpec {
        name: "path",
        required: true,
        secret: false,
        doc: "directory, file or glob of files on the server",
    },
    OptionSpec {
        name: "match_pattern",
        required: false,
        secret: false,
        doc: "glob (*, ?, **) that the path below the directory must match; without a slash, the file's name",
    },
    OptionSpec {
        name: "refresh.interval.sec",
        required: false,
        secret: false,
        doc: "makes the stage continuous: looks for new files and new rows this often",
    },
];

/// What the files hold.
#[derive(Clone, Debug)]
pub(crate) enum Encoding {
    Json(JsonOptions),
    Csv(CsvOptions),
    Parquet,
}

#[derive(Clone, Debug)]
pub(crate) struct FilesOptions {
    /// A directory, or one file when there is no pattern.
    pub(crate) path: PathBuf,
    /// What the path below the directory must match.
    pub(crate) pattern: Option<Glob>,
    /// How often to look again; `None` reads what is there once.
    pub(crate) refresh: Option<Duration>,
    pub(crate) encoding: Encoding,
}

impl FilesOptions {
    pub(crate) fn parse(config: &ReadConfig) -> Result<FilesOptions, UserError> {
        let (path, pattern) = parse_path(config)?;
        let refresh =
            config.options.parse::<f64>("refresh.interval.sec", "a number of seconds")?.map(
                |seconds| Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero()),
            );
        let refresh = match refresh {
            Some(None) => {
                return Err(invalid("option \"refresh.interval.sec\" must be more than 0"));
            }
            Some(Some(refresh)) if config.stop.is_none() => Some(refresh),
            _ => None,
        };
        let options = FilesOptions { path, pattern, refresh, encoding: parse_encoding(config)? };
        check_clauses(config, &options)?;
        Ok(options)
    }

    pub(crate) fn boundedness(&self) -> Boundedness {
        match self.refresh {
            Some(_) => Boundedness::Continuous,
            None => Boundedness::Bounded,
        }
    }

    /// Path and pattern as one text.
    pub(crate) fn location(&self) -> String {
        match &self.pattern {
            Some(glob) => format!("{}/{}", self.path.display(), glob.as_str()),
            None => self.path.display().to_string(),
        }
    }
}

fn invalid(message: impl Into<String>) -> UserError {
    UserError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn parse_path(config: &ReadConfig) -> Result<(PathBuf, Option<Glob>), UserError> {
    let text = config.options.require("path")?;
    if let Some((scheme, _)) = text.split_once("://").filter(|(scheme, _)| *scheme != "file") {
        return Err(UserError::unsupported(format!(
            "path with scheme \"{scheme}\" is not supported"
        ))
        .with_hint("Give a path on the server, for example '/data/orders'."));
    }
    let text = text.strip_prefix("file://").unwrap_or(text).trim_end_matches('/');
    let given = config.options.get("match_pattern");
    let special = text.find(['*', '?']);
    if let Some(special) = special {
        if given.is_some() {
            return Err(invalid(
                "a path with wildcards and option \"match_pattern\" exclude each other",
            ));
        }
        let cut = text[..special].rfind('/').map_or(0, |slash| slash + 1);
        let root = if cut == 0 { "." } else { &text[..cut] };
        return Ok((PathBuf::from(root), Some(Glob::anchored(&text[cut..]))));
    }
    let path = PathBuf::from(if text.is_empty() { "/" } else { text });
    Ok((path, given.map(Glob::new)))
}

fn parse_encoding(config: &ReadConfig) -> Result<Encoding, UserError> {
    let options = &config.format.options;
    match config.format.encode.as_str() {
        "json" => Ok(Encoding::Json(JsonOptions::parse(&options.0)?)),
        "csv" => Ok(Encoding::Csv(CsvOptions::parse(&options.0)?)),
        "parquet" => match options.0.keys().next() {
            Some(name) => Err(invalid(format!("unknown option \"{name}\" of ENCODE PARQUET"))),
            None => Ok(Encoding::Parquet),
        },
        "native" => Err(invalid("FORMAT and ENCODE are required")
            .with_hint("Give FORMAT PLAIN ENCODE JSON, CSV or PARQUET.")),
        other => Err(invalid(format!(
            "connector \"files\" does not read ENCODE {}",
            other.to_uppercase()
        ))
        .with_hint("Give FORMAT PLAIN ENCODE JSON, CSV or PARQUET.")),
    }
}

fn check_clauses(config: &ReadConfig, options: &FilesOptions) -> Result<(), UserError> {
    if config.format.rows == RowFormat::Upsert && config.key.is_empty() {
        return Err(invalid("FORMAT UPSERT needs a PRIMARY KEY"));
    }
    for include in &config.includes {
        let known =
            matches!(include.kind, IncludeKind::File | IncludeKind::Stage | IncludeKind::Offset)
                || (include.kind == IncludeKind::Payload
                    && !matches!(options.encoding, Encoding::Parquet));
        if !known {
            return Err(UserError::unsupported(format!(
                "INCLUDE column \"{}\" is not available from connector \"files\"",
                include.column
            ))
            .with_hint("Available are file, offset, stage, and payload of JSON and CSV files."));
        }
    }
    let refused = match (&config.start, &config.stop) {
        (Start::Earliest | Start::Offsets(_), None | Some(Stop::Latest)) => return Ok(()),
        (Start::Latest, None) if options.refresh.is_some() => return Ok(()),
        (Start::Latest, None) => "START AT LATEST reads nothing from files that are not watched",
        (Start::Timestamp { .. }, _) => {
            "START AT TIMESTAMP is not supported by connector \"files\""
        }
        (Start::Handoff | Start::Query(_) | Start::Columns { .. }, _) => {
            "connector \"files\" cannot derive its start from another stage"
        }
        (_, Some(_)) => "connector \"files\" knows no STOP AT but LATEST",
    };
    Err(UserError::unsupported(refused).with_hint("Give START AT EARLIEST or START AT OFFSETS."))
}
