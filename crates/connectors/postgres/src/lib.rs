//! The `postgres` connector: a bounded query (or whole table) of a PostgreSQL database, captured as Arrow.
//!
//! ```text
//! options ──▶ Settings ──session──▶ plan (columns by name, casts) ──▶ capture (one snapshot)
//!                                                                        └──COPY BINARY──▶ decode
//! ```
//!
//! Words defined here: *wire type* (what COPY sends for a column), *plan* (how each declared column is
//! obtained), *settings* (the options, checked).
//! Invariants: one capture is one REPEATABLE READ transaction, the handoff query included; a stream of
//! batches ends without an error only after the server's trailer and COMMIT; no text that leaves this crate
//! holds a password.

mod capture;
mod connector;
mod decode;
mod error;
mod options;
mod plan;
mod query;
mod session;
mod tls;

pub use connector::PostgresConnector;
