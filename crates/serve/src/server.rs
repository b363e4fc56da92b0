//! The listener: accepts clients up to a limit, and sees every connection off at shutdown.

use std::sync::Arc;

use segue_types::{SqlState, UserError};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::activity::Activity;
use crate::backend::Engine;
use crate::protocol::serve_client;
use crate::wire::{CancelRegistry, Severity, Wire, error_response};

/// How the server serves.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    /// Clients at the same time; one more is told 53300.
    pub max_connections: usize,
    /// Where it is counted what clients do.
    pub activity: Arc<Activity>,
}

impl Default for ServeConfig {
    fn default() -> ServeConfig {
        ServeConfig { max_connections: 1000, activity: Arc::default() }
    }
}

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) cancels: Arc<CancelRegistry>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) shutdown: CancellationToken,
}

/// After accept fails (too many open files, say) it is tried again this much later.
const ACCEPT_RETRY: std::time::Duration = std::time::Duration::from_millis(100);
/// Connections that are being refused at the same time.
const REFUSALS_MAX: usize = 64;

/// Serves clients until `shutdown` is raised and the last connection has ended.
pub async fn serve(
    listener: TcpListener,
    engine: Engine,
    config: ServeConfig,
    shutdown: CancellationToken,
) {
    let shared = Arc::new(Shared {
        engine,
        cancels: Arc::new(CancelRegistry::default()),
        activity: config.activity,
        shutdown: shutdown.clone(),
    });
    let places = Arc::new(Semaphore::new(config.max_connections));
    let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
    let mut clients = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some(ended) = clients.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a connection's task failed");
                }
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(ACCEPT_RETRY).await;
                continue;
            }
        };
        let shared = Arc::clone(&shared);
        match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => {
                clients.spawn(occupied(stream, shared, place));
            }
            // A cancel request needs no place: it would be refused just when it is needed most.
            Err(_) => {
                if let Ok(turn) = Arc::clone(&refusals).try_acquire_owned() {
                    clients.spawn(refuse(stream, shared, turn));
                }
            }
        }
    }
    drop(listener);
    while let Some(ended) = clients.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a connection's task failed");
        }
    }
}

async fn occupied(stream: TcpStream, shared: Arc<Shared>, _place: OwnedSemaphorePermit) {
    serve_client(stream, shared).await;
}

/// Hears a client out far enough to tell it that there is no place, or to carry out its cancel request.
async fn refuse(stream: TcpStream, shared: Arc<Shared>, _turn: OwnedSemaphorePermit) {
    let mut wire = Wire::new(stream);
    if crate::protocol::await_startup(&mut wire, &shared).await {
        let error =
            UserError::new(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already");
        // A client that is gone need not be told.
        let _ = wire.push(&error_response(Severity::Fatal, &error));
    }
    wire.close().await;
}
