//! The stage's options, understood.

use segue_connect::{ConnectError, OptionSpec, ReadConfig, RowFormat};
use segue_types::{SqlState, UserError, nearest};

use crate::subjects::Subjects;

const fn option(name: &'static str, required: bool, doc: &'static str) -> OptionSpec {
    OptionSpec { name, required, secret: false, doc }
}

/// Every option of the connector.
pub(crate) const OPTIONS: &[OptionSpec] = &[
    option("server_url", true, "Servers to ask first, as nats://host:port, comma-separated."),
    option("subject", true, "The subjects to read, comma-separated; * and > are wildcards."),
    option("stream", false, "The stream to read; the one that has the subject unless given."),
    option("connect_mode", false, "plain (the default) or user_and_password."),
    option("username", false, "The user, for user_and_password."),
    OptionSpec {
        name: "password",
        required: false,
        secret: true,
        doc: "The user's password, for user_and_password.",
    },
    option("scan.startup.mode", false, "earliest or latest: another spelling of START AT."),
    option("scan.startup.timestamp.millis", false, "Another spelling of START AT TIMESTAMP."),
    option(
        "durable_consumer_name",
        false,
        "Accepted and not used: Segue keeps positions itself and leaves no consumer on the server.",
    ),
];

const CONNECT_MODES: [&str; 2] = ["plain", "user_and_password"];

#[derive(Clone)]
pub(crate) struct Settings {
    /// Addresses, without secrets.
    pub(crate) servers: Vec<String>,
    pub(crate) subjects: Subjects,
    /// The stream, if the user has named it.
    pub(crate) stream: Option<String>,
    pub(crate) login: Option<Login>,
    /// Whether a message without a payload removes its key.
    pub(crate) keyed: bool,
}

#[derive(Clone)]
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) password: String,
}

impl Settings {
    pub(crate) fn parse(config: &ReadConfig) -> Result<Settings, ConnectError> {
        let options = &config.options;
        let servers = options.require("server_url").map_err(ConnectError::Config)?;
        let servers = servers.split(',').map(address).collect::<Result<Vec<_>, _>>()?;
        let subjects = options.require("subject").map_err(ConnectError::Config)?;
        let stream = options.get("stream").map(str::to_owned);
        if let Some(stream) = stream.as_deref().filter(|stream| !is_stream_name(stream)) {
            return Err(invalid(
                "stream",
                stream,
                "Give a name without spaces, dots and wildcards.",
            ));
        }
        let mode = options.get("connect_mode").unwrap_or(CONNECT_MODES[0]);
        let login = match mode {
            "plain" => {
                if options.get("username").is_some() || options.get("password").is_some() {
                    let hint =
                        "Say connect_mode = 'user_and_password' to use username and password.";
                    return Err(invalid("connect_mode", mode, hint));
                }
                None
            }
            "user_and_password" => Some(Login {
                user: options.require("username").map_err(ConnectError::Config)?.to_owned(),
                password: options.require("password").map_err(ConnectError::Config)?.to_owned(),
            }),
            "credential" => {
                return Err(ConnectError::Unsupported(
                    "connect_mode 'credential' is not supported; use user_and_password".to_owned(),
                ));
            }
            other => {
                let hint = match nearest(other, CONNECT_MODES) {
                    Some(near) => format!("Perhaps you meant '{near}'."),
                    None => "Give 'plain' or 'user_and_password'.".to_owned(),
                };
                return Err(invalid("connect_mode", other, &hint));
            }
        };
        Ok(Settings {
            servers,
            subjects: Subjects::parse(subjects)?,
            stream,
            login,
            keyed: config.format.rows == RowFormat::Upsert,
        })
    }

    /// The system, for errors.
    pub(crate) fn system(&self) -> String {
        format!("NATS at {}", self.servers.join(","))
    }
}

/// One address. A password in it would be printed with it, so it is refused.
fn address(text: &str) -> Result<String, ConnectError> {
    let text = text.trim();
    if text.contains('@') {
        let message = "option \"server_url\" holds a user or password";
        return Err(ConnectError::Config(
            UserError::new(SqlState::INVALID_PARAMETER_VALUE, message).with_hint(
                "Say connect_mode = 'user_and_password', and use the options username and password.",
            ),
        ));
    }
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    let known = matches!(scheme, None | Some("nats" | "tls"));
    if !known || text.parse::<async_nats::ServerAddr>().is_err() {
        return Err(invalid("server_url", text, "Give addresses like nats://host:4222."));
    }
    Ok(text.to_owned())
}

fn is_stream_name(name: &str) -> bool {
    let bad =
        |c: char| c.is_whitespace() || c.is_control() || matches!(c, '.' | '*' | '>' | '/' | '\\');
    !name.is_empty() && !name.contains(bad)
}

fn invalid(option: &str, value: &str, hint: &str) -> ConnectError {
    let message = format!("invalid value for option \"{option}\": \"{value}\"");
    ConnectError::Config(UserError::new(SqlState::INVALID_PARAMETER_VALUE, message).with_hint(hint))
}
