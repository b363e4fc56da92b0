//! JSON records, read by a scanner of our own straight into columns, projecting while parsing.
//!
//! No tree, no allocation per row: field names are compared with those of the records before,
//! unwanted values are skipped (but checked), wanted ones are parsed where they lie.

mod decoder;
mod escape;
pub(crate) mod jsonb;
mod options;
mod scanner;
mod shape;
mod value;

pub use decoder::JsonDecoder;
pub use jsonb::normalise_jsonb;
pub use options::JsonOptions;
