//! The protocol: one connection from its first byte to its last.
//!
//! ```text
//! startup ─▶ loop { read a message ─▶ simple query | one step of the extended protocol ─▶ answer } ─▶
//! farewell
//! ```
//!
//! A statement runs as a future that is never dropped half way: whoever wants it to end raises its
//! token and waits. While it runs the connection sends its notices and watches for a vanished client.

mod connection;
mod copy;
mod drive;
mod extended;
mod simple;
mod startup;

pub(crate) use connection::serve_client;
pub(crate) use startup::await_startup;
