//! The front end: PostgreSQL's protocol, statements, SELECT, `pg_catalog` and the system relations.
//!
//! ```text
//! protocol: bytes ↔ messages ─▶ statements: one file per kind ─▶ plan: DataFusion over one version ─▶ encode
//!                                  └─▶ engine: DDL, writes        └─▶ catalog: what clients ask about
//! ```
//!
//! Words defined here: *session*, *portal*, *cursor*, *setting*, *reading* (what one statement reads).
//! Invariants: a query reads one published version from its first row to its last; a statement's future
//! is never dropped half way; an error that a client sees has passed through
//! [`segue_types::UserError`].

mod activity;
mod backend;
mod catalog;
mod encode;
mod errors;
mod functions;
mod outcome;
mod pg_type;
mod plan;
mod prepared;
mod protocol;
mod server;
mod session;
mod settings;
mod statements;
mod values;
mod wire;

pub use activity::{Activity, Counts};
pub use server::{ServeConfig, serve};
