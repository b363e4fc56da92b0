//! A TCP proxy between a client and a server of a test: it cuts connections at a chosen byte, refuses new
//! ones, stalls, and counts.
//!
//! Words defined here: *cut* (a reset after so many bytes from the server), *stall* (connections stay open
//! and nothing moves), *sever* (reset whatever is open now).
//! Invariant: a cut connection has delivered at most the given number of bytes to the client (a reset
//! overtakes what is still in flight), and never ends in an orderly way that could be taken for the end of
//! the data.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Whether and where connections are cut, in bytes from the server counted per connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Never,
    Once(u64),
    Always(u64),
}

impl Cut {
    fn limit(self) -> u64 {
        match self {
            Cut::Never => u64::MAX,
            Cut::Once(bytes) | Cut::Always(bytes) => bytes,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    Flowing,
    /// New connections are reset at once; open ones go on.
    Refusing,
    Stalled,
}

#[derive(Clone, Copy, Debug)]
struct Orders {
    traffic: Traffic,
    cut: Cut,
    /// Grows each time all open connections are to be reset.
    severed: u64,
}

#[derive(Debug, Default)]
struct Counters {
    to_client: AtomicU64,
    to_server: AtomicU64,
    connections: AtomicU64,
}

#[derive(Debug)]
struct Shared {
    upstream_port: u16,
    orders: watch::Sender<Orders>,
    counters: Counters,
}

/// A running proxy on a free port of the loopback interface. Dropping it closes every connection.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

/// Why a connection ended other than by both sides closing it.
struct Reset;

impl Proxy {
    /// Starts to forward to `upstream_port` on 127.0.0.1. The upstream need not be there yet.
    ///
    /// # Panics
    /// If no port can be bound.
    pub async fn start(upstream_port: u16) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port exists");
        let port = listener.local_addr().expect("a bound listener has an address").port();
        let (orders, _) =
            watch::channel(Orders { traffic: Traffic::Flowing, cut: Cut::Never, severed: 0 });
        let shared = Arc::new(Shared { upstream_port, orders, counters: Counters::default() });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Proxy { port, shared, accepting }
    }

    /// The port that clients connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Resets the next connection that has received `bytes` from the server, and no other.
    pub fn cut_once_after(&self, bytes: u64) {
        self.shared.orders.send_modify(|orders| orders.cut = Cut::Once(bytes));
    }

    /// Resets each connection that has received `bytes` from the server.
    pub fn cut_always_after(&self, bytes: u64) {
        self.shared.orders.send_modify(|orders| orders.cut = Cut::Always(bytes));
    }

    /// Resets every open connection now.
    pub fn sever(&self) {
        self.shared.orders.send_modify(|orders| orders.severed += 1);
    }

    /// Resets new connections at once.
    pub fn refuse(&self) {
        self.shared.orders.send_modify(|orders| orders.traffic = Traffic::Refusing);
    }

    /// Keeps connections open and moves no more bytes, in either direction.
    pub fn stall(&self) {
        self.shared.orders.send_modify(|orders| orders.traffic = Traffic::Stalled);
    }

    /// Back to plain forwarding; what was stalled flows on.
    pub fn restore(&self) {
        self.shared.orders.send_modify(|orders| {
            orders.traffic = Traffic::Flowing;
            orders.cut = Cut::Never;
        });
    }

    /// Bytes handed to clients so far, over all connections.
    pub fn bytes_to_client(&self) -> u64 {
        self.shared.counters.to_client.load(Ordering::Relaxed)
    }

    /// Bytes handed to the server so far, over all connections.
    pub fn bytes_to_server(&self) -> u64 {
        self.shared.counters.to_server.load(Ordering::Relaxed)
    }

    /// Connections accepted so far, those refused included.
    pub fn connections(&self) -> u64 {
        self.shared.counters.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else { continue };
                shared.counters.connections.fetch_add(1, Ordering::Relaxed);
                open.spawn(forward(client, Arc::clone(&shared)));
            }
            Some(_) = open.join_next() => {}
        }
    }
}

/// One connection, from its acceptance to its end.
async fn forward(mut client: TcpStream, shared: Arc<Shared>) {
    let refusing = shared.orders.borrow().traffic == Traffic::Refusing;
    let upstream = ("127.0.0.1", shared.upstream_port);
    let (false, Ok(mut server)) = (refusing, TcpStream::connect(upstream).await) else {
        let _ = client.set_zero_linger();
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let counters = &shared.counters;
    let outcome = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let up = pump(from_client, to_server, &shared, &counters.to_server, |_| u64::MAX);
        let down = pump(from_server, to_client, &shared, &counters.to_client, Cut::limit);
        tokio::try_join!(up, down)
    };
    if outcome.is_err() {
        let _ = (client.set_zero_linger(), server.set_zero_linger());
    }
}

/// Moves bytes until the sender closes, or the connection is to be reset.
async fn pump(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    shared: &Shared,
    moved: &AtomicU64,
    limit_of: fn(Cut) -> u64,
) -> Result<(), Reset> {
    let mut orders = shared.orders.subscribe();
    let severed = orders.borrow().severed;
    let mut buffer = vec![0; 64 * 1024];
    let mut sent = 0_u64;
    loop {
        let read = tokio::select! {
            read = from.read(&mut buffer) => read.map_err(|_| Reset)?,
            _ = orders.wait_for(|now| now.severed != severed) => return Err(Reset),
        };
        if read == 0 {
            let _ = to.shutdown().await;
            return Ok(());
        }
        let now = *orders
            .wait_for(|now| now.severed != severed || now.traffic != Traffic::Stalled)
            .await
            .map_err(|_| Reset)?;
        if now.severed != severed {
            return Err(Reset);
        }
        let limit = limit_of(now.cut);
        let allowed = limit.saturating_sub(sent).min(read as u64);
        let kept = usize::try_from(allowed).expect("not more than was read");
        to.write_all(&buffer[..kept]).await.map_err(|_| Reset)?;
        sent += allowed;
        moved.fetch_add(allowed, Ordering::Relaxed);
        if sent >= limit {
            if matches!(now.cut, Cut::Once(_)) {
                shared.orders.send_modify(|orders| orders.cut = Cut::Never);
            }
            return Err(Reset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Proxy;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    /// Answers each connection with 1,000,000 bytes, then closes.
    async fn generous_server() -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let _ = stream.write_all(&vec![7; 1_000_000]).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        port
    }

    async fn received(port: u16) -> (usize, bool) {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the proxy listens");
        let (mut total, mut buffer) = (0, vec![0; 8192]);
        loop {
            match stream.read(&mut buffer).await {
                Ok(0) => return (total, true),
                Ok(read) => total += read,
                Err(_) => return (total, false),
            }
        }
    }

    #[tokio::test]
    async fn a_cut_falls_once_and_is_a_reset_and_not_an_end() {
        let proxy = Proxy::start(generous_server().await).await;
        proxy.cut_once_after(123_457);
        let (total, orderly) = received(proxy.port()).await;
        assert!(total <= 123_457 && !orderly, "{total} bytes, orderly: {orderly}");
        assert_eq!(proxy.bytes_to_client(), 123_457);
        assert_eq!(received(proxy.port()).await, (1_000_000, true));
    }

    #[tokio::test]
    async fn a_refused_client_is_served_after_restore() {
        let proxy = Proxy::start(generous_server().await).await;
        proxy.refuse();
        assert_eq!(received(proxy.port()).await, (0, false));
        proxy.cut_always_after(10);
        proxy.restore();
        assert_eq!(received(proxy.port()).await, (1_000_000, true));
        assert_eq!(proxy.connections(), 2);
    }

    #[tokio::test]
    async fn a_stalled_connection_stays_open_and_flows_on_and_can_be_severed() {
        let proxy = Proxy::start(generous_server().await).await;
        proxy.stall();
        let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).await.expect("accepted");
        let mut byte = [0];
        assert_eq!(proxy.bytes_to_client(), 0);
        proxy.restore();
        stream.read_exact(&mut byte).await.expect("it flows again");
        proxy.stall();
        proxy.sever();
        let mut rest = Vec::new();
        assert!(stream.read_to_end(&mut rest).await.is_err(), "severed after {} bytes", rest.len());
    }
}
