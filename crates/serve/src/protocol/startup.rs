//! The startup phase: SSL refused, cancel requests carried out, the session opened and announced.

use std::collections::BTreeMap;
use std::sync::Arc;

use pgwire::messages::response::{GssEncResponse, ReadyForQuery, SslResponse, TransactionStatus};
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey, Startup,
};
use pgwire::messages::{
    PgWireBackendMessage, PgWireFrontendMessage, ProtocolVersion, SslNegotiationMetaMessage,
};
use segue_types::{SqlState, UserError};

use super::connection::{Ending, protocol_violation, shutting_down};
use crate::plan::Identity;
use crate::server::Shared;
use crate::session::Session;
use crate::settings::Settings;
use crate::wire::{Registration, Wire};

/// What came of a new connection.
pub(super) enum Started {
    Session(Box<Session>, Registration),
    /// A cancel request, or a client that went away.
    Nothing,
}

/// How long a client may take to say who it is.
const STARTUP_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

/// Runs the startup phase.
pub(super) async fn start(wire: &mut Wire, shared: &Arc<Shared>) -> Result<Started, Ending> {
    tokio::select! {
        biased;
        () = shared.shutdown.cancelled() => Err(Ending::Fatal(shutting_down())),
        started = tokio::time::timeout(STARTUP_TIMEOUT, negotiate(wire, shared)) => {
            started.unwrap_or(Ok(Started::Nothing))
        }
    }
}

/// Hears a client up to its startup packet; `false` when there was none to answer.
pub(crate) async fn await_startup(wire: &mut Wire, shared: &Arc<Shared>) -> bool {
    let heard = tokio::time::timeout(STARTUP_TIMEOUT, startup_packet(wire, shared)).await;
    matches!(heard, Ok(Ok(Some(_))))
}

async fn negotiate(wire: &mut Wire, shared: &Arc<Shared>) -> Result<Started, Ending> {
    match startup_packet(wire, shared).await? {
        None => Ok(Started::Nothing),
        Some(startup) => {
            let version = (startup.protocol_number_major, startup.protocol_number_minor);
            open(wire, shared, version, &startup.parameters)
        }
    }
}

/// The startup packet; `None` from a client that wanted something cancelled, or went away.
async fn startup_packet(wire: &mut Wire, shared: &Arc<Shared>) -> Result<Option<Startup>, Ending> {
    loop {
        match wire.read().await? {
            None => return Ok(None),
            Some(PgWireFrontendMessage::SslNegotiation(wanted)) => match wanted {
                SslNegotiationMetaMessage::PostgresSsl(_) => {
                    wire.push(&PgWireBackendMessage::SslResponse(SslResponse::Refuse))?;
                    wire.flush().await?;
                }
                SslNegotiationMetaMessage::PostgresGss(_) => {
                    wire.push(&PgWireBackendMessage::GssEncResponse(GssEncResponse::Refuse))?;
                    wire.flush().await?;
                }
                SslNegotiationMetaMessage::None => wire.expect_startup(),
            },
            Some(PgWireFrontendMessage::CancelRequest(request)) => {
                if let Some(secret) = request.secret_key.as_i32() {
                    shared.cancels.cancel(request.pid, secret);
                }
                return Ok(None);
            }
            Some(PgWireFrontendMessage::Startup(startup)) => {
                wire.expect_messages();
                return Ok(Some(startup));
            }
            Some(_) => return Err(Ending::Fatal(protocol_violation("expected a startup packet"))),
        }
    }
}

fn open(
    wire: &mut Wire,
    shared: &Arc<Shared>,
    (major, minor): (u16, u16),
    parameters: &BTreeMap<String, String>,
) -> Result<Started, Ending> {
    if major != 3 {
        let message = format!("unsupported frontend protocol {major}.{minor}");
        return Err(Ending::Fatal(protocol_violation(message)));
    }
    // 3.2 only lengthens the cancel key, and leaves its length to us.
    if ProtocolVersion::from_version_number(major, minor).is_none() {
        let newest = ProtocolVersion::PROTOCOL3_2.into();
        let negotiate = NegotiateProtocolVersion::new(newest, Vec::new());
        wire.push(&PgWireBackendMessage::NegotiateProtocolVersion(negotiate))?;
    }
    let Some(user) = parameters.get("user").filter(|user| !user.is_empty()) else {
        return Err(Ending::Fatal(UserError::new(
            SqlState::try_from("28000".to_owned()).expect("five ASCII characters"),
            "no PostgreSQL user name specified in startup packet",
        )));
    };
    let registration = shared.cancels.register();
    let settings = Arc::new(startup_settings(parameters).map_err(Ending::Fatal)?);
    let identity = Identity {
        user: user.clone(),
        database: parameters.get("database").unwrap_or(user).clone(),
        pid: registration.pid,
        settings: Arc::clone(&settings),
    };
    wire.push(&PgWireBackendMessage::Authentication(Authentication::Ok))?;
    for (name, value) in announced(&settings, user) {
        wire.push(&PgWireBackendMessage::ParameterStatus(ParameterStatus::new(name, value)))?;
    }
    let key = BackendKeyData::new(registration.pid, SecretKey::I32(registration.secret));
    wire.push(&PgWireBackendMessage::BackendKeyData(key))?;
    let ready = ReadyForQuery::new(TransactionStatus::Idle);
    wire.push(&PgWireBackendMessage::ReadyForQuery(ready))?;
    let session = Session::new(shared.engine.clone(), identity);
    Ok(Started::Session(Box::new(session), registration))
}

/// Settings from the startup packet, also those inside `options` (`-c name=value`).
fn startup_settings(parameters: &BTreeMap<String, String>) -> Result<Settings, UserError> {
    let settings = Settings::default();
    let is_default =
        |name: &str, value: &str| parameters.get(name).is_some_and(|given| given == value);
    if is_default("user", "root") && is_default("database", "dev") {
        // What RisingWave's clients and scripts connect as.
        settings.set("value_forms", "risingwave")?;
    }
    for (name, value) in parameters {
        match name.as_str() {
            "user" | "database" | "replication" => {}
            "options" => {
                for option in value.split("-c").skip(1) {
                    if let Some((name, value)) = option.trim().split_once('=') {
                        settings.set(name.trim(), value.trim())?;
                    }
                }
            }
            name if name.starts_with("_pq_.") => {}
            name => {
                settings.set(name, value)?;
            }
        }
    }
    Ok(settings)
}

/// The settings that drivers want to know at once.
fn announced(settings: &Settings, user: &str) -> Vec<(String, String)> {
    let names = [
        ("application_name", "application_name"),
        ("client_encoding", "client_encoding"),
        ("DateStyle", "datestyle"),
        ("integer_datetimes", "integer_datetimes"),
        ("IntervalStyle", "intervalstyle"),
        ("server_encoding", "server_encoding"),
        ("server_version", "server_version"),
        ("standard_conforming_strings", "standard_conforming_strings"),
        ("TimeZone", "timezone"),
    ];
    let known = names.iter().map(|(shown, name)| {
        ((*shown).to_owned(), settings.get(name).expect("announced settings are known"))
    });
    let fixed = [
        ("is_superuser".to_owned(), "on".to_owned()),
        ("session_authorization".to_owned(), user.to_owned()),
    ];
    known.chain(fixed).collect()
}
