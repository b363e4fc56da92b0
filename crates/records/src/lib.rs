//! Records of a log → rows of the projected schema: what every log's connector does with a key, a value and
//! what the log keeps beside them.
//!
//! ```text
//! impl Record ──Batch::push──▶ Records { values by formats, INCLUDE columns } ──Batch::finish──▶ Rows
//! ```
//!
//! Words defined here: *record* (a key, a value and what lies beside them), *keying* (what a record does to
//! the relation). Invariant: a record becomes exactly one row of every column, or a rejected record.

mod batch;
mod includes;
mod keying;
mod record;
mod rows;
mod values;

pub use batch::Batch;
pub use record::Record;
pub use rows::{Origin, Records};
