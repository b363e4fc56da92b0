//! From a configuration to a running server, and back.

use std::sync::Arc;

use segue_connect::{Connector, Registry};
use segue_connector_datagen::DatagenConnector;
use segue_connector_files::FilesConnector;
use segue_connector_kafka::KafkaConnector;
use segue_connector_nats::NatsConnector;
use segue_connector_postgres::PostgresConnector;
use segue_connector_pulsar::PulsarConnector;
use segue_engine::{Engine, EngineConfig, StartError};
use segue_serve::{Activity, ServeConfig};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::metrics::Measured;

#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("could not listen on {address}: {reason}")]
    Listen { address: std::net::SocketAddr, reason: std::io::Error },
    #[error("{0}")]
    Start(#[from] StartError),
    #[error("could not set up the runtime: {0}")]
    Runtime(std::io::Error),
    #[error("{0}")]
    Stopped(segue_types::UserError),
}

fn registry() -> Registry {
    let connectors: [Arc<dyn Connector>; 6] = [
        Arc::new(DatagenConnector),
        Arc::new(FilesConnector),
        Arc::new(KafkaConnector),
        Arc::new(NatsConnector),
        Arc::new(PostgresConnector),
        Arc::new(PulsarConnector),
    ];
    Registry::new(connectors)
}

/// Runs the server until SIGTERM or SIGINT; returns when the last epoch is durable.
pub(crate) fn serve(config: &Config) -> Result<(), RunError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("segue-io")
        .thread_stack_size(segue_sql::STACK_BYTES)
        .build()
        .map_err(RunError::Runtime)?;
    // On a thread of the runtime: views are planned while the engine starts, and the main thread's stack is small.
    let served = runtime.block_on(runtime.spawn(serve_until_stopped(config.clone())));
    served.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

async fn serve_until_stopped(config: Config) -> Result<(), RunError> {
    let stop = stop_on_signal().map_err(RunError::Runtime)?;
    let listener = TcpListener::bind(config.listen)
        .await
        .map_err(|reason| RunError::Listen { address: config.listen, reason })?;
    let address = listener.local_addr().map_err(RunError::Runtime)?;
    let metrics_listener = match config.metrics_listen {
        None => None,
        Some(address) => {
            let bound = TcpListener::bind(address).await;
            Some(bound.map_err(|reason| RunError::Listen { address, reason })?)
        }
    };
    let engine_config = EngineConfig {
        data_dir: config.data_dir.clone(),
        stop: stop.clone(),
        memory: config.memory,
        workers: config.workers,
    };
    let engine = Engine::start(engine_config, registry()).await?;

    println!("segue is ready: psql -h {} -p {}", address.ip(), address.port());
    let activity = Arc::new(Activity::default());
    if let Some(listener) = metrics_listener {
        let measured = Measured { engine: engine.clone(), activity: Arc::clone(&activity) };
        tokio::spawn(crate::metrics::serve(listener, measured, stop.clone()));
    }
    let serve_config = ServeConfig { max_connections: config.max_connections, activity };
    let serving = segue_serve::serve(listener, engine.clone(), serve_config, stop.clone());
    let failed = tokio::select! {
        () = serving => None,
        error = engine.failed() => Some(error),
    };
    stop.cancel();
    engine.shutdown().await;
    failed.map_or(Ok(()), |error| Err(RunError::Stopped(error)))
}

/// A token that the first SIGTERM or SIGINT cancels.
fn stop_on_signal() -> std::io::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let raised = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        raised.cancel();
    });
    Ok(stop)
}
