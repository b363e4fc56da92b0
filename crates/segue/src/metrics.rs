//! Metrics for Prometheus: a small HTTP server that answers GET /metrics with what the server knows at that moment.
//!
//! Off unless an address is given. It has its own bound of connections and deadlines, so that a broken scraper costs
//! nothing.

mod text;

use std::sync::Arc;
use std::time::Duration;

use segue_engine::Engine;
use segue_serve::Activity;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Scrapers that are answered at the same time.
const CONNECTIONS_MAX: usize = 16;
/// How long a request may take, from its first byte to its answer.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long the head of a request may be.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// After accept fails it is tried again this much later.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// What is measured.
#[derive(Clone)]
pub(crate) struct Measured {
    pub(crate) engine: Engine,
    pub(crate) activity: Arc<Activity>,
}

/// Answers scrapers until `stop` is raised.
pub(crate) async fn serve(listener: TcpListener, measured: Measured, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = Arc::clone(&places).acquire_owned().await.expect("it is never closed");
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let measured = measured.clone();
                tokio::spawn(async move {
                    let answered = tokio::time::timeout(DEADLINE, answer(stream, &measured)).await;
                    if let Ok(Err(error)) = answered {
                        tracing::debug!(%error, "a scraper went away");
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a scraper");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

async fn answer(mut stream: TcpStream, measured: &Measured) -> std::io::Result<()> {
    let head = read_head(&mut stream).await?;
    let mut words = head.split_whitespace();
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let (status, body) = match (method, path.split('?').next()) {
        ("GET" | "HEAD", Some("/metrics")) => match text::render(measured).await {
            Some(body) => ("200 OK", body),
            None => ("503 Service Unavailable", "the server is shutting down\n".to_owned()),
        },
        ("GET" | "HEAD", _) => ("404 Not Found", "see /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "only GET\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    if method != "HEAD" {
        stream.write_all(body.as_bytes()).await?;
    }
    stream.shutdown().await
}

/// The request up to its empty line, or what has come when that is too much.
async fn read_head(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        let count = stream.read(&mut piece).await?;
        if count == 0 {
            break;
        }
        head.extend_from_slice(&piece[..count]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
