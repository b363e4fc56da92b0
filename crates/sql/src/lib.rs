//! Text → statements: Segue's own DDL around PostgreSQL's grammar as sqlparser reads it.
//!
//! A statement that is ours becomes a variant of [`Statement`]; every other one stays sqlparser's tree, untouched
//! and never printed and parsed again. The queries and expressions inside our own statements keep the text they
//! were written in ([`Foreign`]).
//!
//! Words defined here: *statement*, *name*, *offset*.
//! Invariant: `parse(&statement.to_string())` gives the same statement back, for every statement of our own.
//!
//! ```
//! let statements = segue_sql::parse("CREATE MATERIALIZED VIEW v AS SELECT 1 AS one; FLUSH").unwrap();
//! assert_eq!(statements[0].to_string(), "CREATE MATERIALIZED VIEW v AS SELECT 1 AS one");
//! assert_eq!(statements[1], segue_sql::Statement::Flush);
//! ```

mod display;
mod error;
mod input;
mod name;
mod parser;
mod redact;
mod rename;
mod statement;
mod text;

pub use error::ParseError;
pub use input::{
    Column, Columns, FormatClause, Include, Input, Nullability, Read, Rows, Stage, StartAt, StopAt,
    Watermark, WeakHandoff, WithOption,
};
pub use name::{Literal, Name};
pub use parser::{
    Parsed, STACK_BYTES, parse, parse_data_type, parse_expression, parse_query, parse_spanned,
    parse_type,
};
pub use redact::{REDACTED, redact_url};
pub use statement::{
    Action, Alter, AlterJob, CancelJob, ConflictAction, CreateIndex, CreateSink, CreateSource,
    CreateTable, CreateView, Describe, Drop, DropBehavior, DropIndex, Emission, Explain,
    ExplainMode, Explained, Foreign, JobAction, Mutability, ObjectKind, OnExisting, OnMissing,
    Parallelism, RateLimit, Rename, Show, Shown, SinkTable, Statement, Wait,
};
pub use text::{Lines, Offset};
