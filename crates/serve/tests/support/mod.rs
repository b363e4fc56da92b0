//! A server of its own for each test: a real engine over a fresh directory, served on a free port.

use std::time::Duration;

use segue_connect::Registry;
use segue_engine::{Engine, EngineConfig};
use segue_serve::{ServeConfig, serve};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};
use tokio_util::sync::CancellationToken;

/// Longer than anything here takes; a test that hangs fails by it.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// A running server.
pub struct Server {
    pub port: u16,
    pub stop: CancellationToken,
    serving: JoinHandle<()>,
    engine: Engine,
    _data: TempDir,
}

impl Server {
    pub async fn start(config: ServeConfig) -> Server {
        let data = tempfile::tempdir().expect("a temporary directory");
        let stop = CancellationToken::new();
        let engine_config = EngineConfig {
            data_dir: data.path().to_owned(),
            stop: stop.clone(),
            memory: segue_engine::MemoryLimits::NONE,
            workers: std::num::NonZeroUsize::MIN,
        };
        let engine = Engine::start(engine_config, Registry::default()).await.expect("it starts");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let serving = tokio::spawn(serve(listener, engine.clone(), config, stop.clone()));
        Server { port, stop, serving, engine, _data: data }
    }

    pub async fn connect(&self) -> Client {
        self.try_connect().await.expect("a connection")
    }

    pub async fn try_connect(&self) -> Result<Client, tokio_postgres::Error> {
        let text = format!("host=127.0.0.1 port={} user=dev dbname=dev", self.port);
        let (client, connection) = tokio_postgres::connect(&text, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// Stops and waits until every connection and the engine have ended.
    pub async fn finish(self) {
        self.stop.cancel();
        tokio::time::timeout(DEADLINE, self.serving).await.expect("in time").expect("no panic");
        self.engine.shutdown().await;
    }
}
