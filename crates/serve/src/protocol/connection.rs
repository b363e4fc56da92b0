//! The loop of one connection, and how it ends.

use std::sync::Arc;

use pgwire::messages::response::{ReadyForQuery, TransactionStatus};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use segue_types::{SqlState, UserError};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::startup::{Started, start};
use crate::activity::Activity;
use crate::server::Shared;
use crate::session::{Session, Transaction};
use crate::wire::{Registration, Severity, Wire, WireError, error_response};

/// How a connection ends, when it is not the client's farewell.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ending {
    #[error(transparent)]
    Wire(#[from] WireError),
    /// Told to the client before the connection closes.
    #[error("{0}")]
    Fatal(UserError),
}

/// One connected client.
pub(crate) struct Client {
    pub(crate) wire: Wire,
    pub(crate) session: Session,
    pub(crate) registration: Registration,
    pub(super) activity: Arc<Activity>,
    pub(crate) shutdown: CancellationToken,
    pub(super) sync: Sync,
}

/// Where the extended protocol stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sync {
    Reading,
    /// An error was sent; messages are discarded up to the next Sync.
    Skipping,
}

/// Serves a socket until it closes.
pub(crate) async fn serve_client(stream: TcpStream, shared: Arc<Shared>) {
    // Answers are written whole; waiting to fill a packet would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not set TCP_NODELAY");
    }
    let mut wire = Wire::new(stream);
    match start(&mut wire, &shared).await {
        Ok(Started::Session(session, registration)) => {
            let shutdown = shared.shutdown.clone();
            let _open = shared.activity.session();
            let mut client = Client {
                wire,
                session: *session,
                registration,
                activity: Arc::clone(&shared.activity),
                shutdown,
                sync: Sync::Reading,
            };
            let ended = client.run().await;
            tracing::debug!(pid = client.registration.pid, ?ended, "connection closed");
            farewell(&mut client.wire, ended).await;
        }
        Ok(Started::Nothing) => wire.close().await,
        Err(ending) => farewell(&mut wire, Err(ending)).await,
    }
}

async fn farewell(wire: &mut Wire, ended: Result<(), Ending>) {
    let error = match ended {
        Ok(()) | Err(Ending::Wire(WireError::Io(_))) => None,
        Err(Ending::Wire(WireError::Protocol(reason))) => Some(protocol_violation(reason)),
        Err(Ending::Fatal(error)) => Some(error),
    };
    if let Some(error) = error {
        // A client that is gone cannot be told.
        let _ = wire.push(&error_response(Severity::Fatal, &error));
    }
    wire.close().await;
}

/// The error of a message that has no place here.
pub(super) fn protocol_violation(message: impl Into<String>) -> UserError {
    UserError::new(SqlState::PROTOCOL_VIOLATION, message)
}

/// The error that ends connections at shutdown.
pub(super) fn shutting_down() -> UserError {
    UserError::new(SqlState::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
}

impl Client {
    async fn run(&mut self) -> Result<(), Ending> {
        loop {
            match self.next_message().await? {
                None | Some(PgWireFrontendMessage::Terminate(_)) => return Ok(()),
                Some(message) => self.answer(message).await?,
            }
        }
    }

    /// The next message. Answers are sent before the client is waited for, and no sooner: what it has sent
    /// together is answered together.
    async fn next_message(&mut self) -> Result<Option<PgWireFrontendMessage>, Ending> {
        if self.shutdown.is_cancelled() {
            return Err(Ending::Fatal(shutting_down()));
        }
        if let Some(message) = self.wire.arrived()? {
            self.wire.flush_if_full().await?;
            return Ok(Some(message));
        }
        self.wire.flush().await?;
        tokio::select! {
            biased;
            () = self.shutdown.cancelled() => Err(Ending::Fatal(shutting_down())),
            message = self.wire.read() => Ok(message?),
        }
    }

    async fn answer(&mut self, message: PgWireFrontendMessage) -> Result<(), Ending> {
        match message {
            PgWireFrontendMessage::Query(query) => {
                self.sync = Sync::Reading;
                self.simple_query(&query.query).await
            }
            PgWireFrontendMessage::Sync(_) => {
                self.sync = Sync::Reading;
                self.ready()
            }
            // What is left of a COPY that failed.
            PgWireFrontendMessage::CopyData(_)
            | PgWireFrontendMessage::CopyDone(_)
            | PgWireFrontendMessage::CopyFail(_) => Ok(()),
            _ if self.sync == Sync::Skipping => Ok(()),
            // The client wants the answers so far, though it has sent more.
            PgWireFrontendMessage::Flush(_) => Ok(self.wire.flush().await?),
            message if message.is_extended_query() => self.extended(message).await,
            _ => Err(Ending::Fatal(protocol_violation("unexpected message"))),
        }
    }

    /// Tells the client that the next statement may come.
    pub(super) fn ready(&mut self) -> Result<(), Ending> {
        let status = match self.session.transaction {
            Transaction::Idle => TransactionStatus::Idle,
            Transaction::Open { .. } => TransactionStatus::Transaction,
            Transaction::Failed => TransactionStatus::Error,
        };
        self.push(&PgWireBackendMessage::ReadyForQuery(ReadyForQuery::new(status)))
    }

    pub(super) fn push(&mut self, message: &PgWireBackendMessage) -> Result<(), Ending> {
        Ok(self.wire.push(message)?)
    }

    /// Tells the client that its statement failed.
    pub(super) fn fail(&mut self, error: &UserError) -> Result<(), Ending> {
        self.session.failed();
        self.activity.failed();
        self.push(&error_response(Severity::Error, error))
    }
}
