//! Bytes → Arrow: one decoder per format, record by record, into typed column builders.
//!
//! ```text
//! record ──decode──▶ a row in the ColumnSet ──finish──▶ RecordBatch
//!              └───▶ a DecodeError, and nothing changed
//! ```
//!
//! Words defined here: *column* (builder of one array), *record* (one JSON object, CSV record,
//! COPY line). Invariant: a record becomes exactly one row or leaves its decoder exactly as it
//! was, so a malformed record never costs its neighbours anything.

mod columns;
mod copy;
mod csv;
mod error;
mod json;
mod text;

pub use columns::{Column, ColumnSet};
pub use copy::{CopyDecoder, CopyError, CopyTextOptions};
pub use csv::{CsvDecoder, CsvOptions, Header, RecordEnd, record_end};
pub use error::{DecodeError, ValueError};
pub use json::{JsonDecoder, JsonOptions, normalise_jsonb};
pub use text::{EpochUnit, append, append_literal};
