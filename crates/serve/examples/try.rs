//! A server over the in-memory backend.
#[tokio::main]
async fn main() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:4599").await.expect("a free port");
    let token = tokio_util::sync::CancellationToken::new();
    segue_serve::serve(listener, segue_serve::Engine::memory(), segue_serve::ServeConfig::default(), token).await;
}
