//! Free ports for servers that tests start.

use std::net::TcpListener;

/// A TCP port of the loopback interface that nothing listened on a moment ago.
///
/// # Panics
/// If the machine has no free port.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port exists");
    listener.local_addr().expect("a bound listener has an address").port()
}
