//! The delta engine: relations kept up to date from changes. Synchronous, vectorised, without I/O or clock; threads
//! only share the work within an operator, and never tell in a result.
//!
//! Words: a *delta* is rows with signed weights; a *step* is one run over what arrived; a *seal* returns what to
//! store since the last one; a *version* is an immutable snapshot of a relation.
//! The law: after every step, the sum of the output deltas is what a batch engine answers over the sum of the inputs.
//!
//! ```text
//! Changes / Delta → inputs → operators in topological order → consolidated Delta → relation → RelationVersion
//!                                        ↕ seal: SealedBlob, encode → StateBlob → restore, per (operator, vnode group)
//! ```

mod aggregate;
mod arrangement;
mod blob;
mod consolidate;
mod dataflow;
mod delta;
mod error;
mod expression;
mod key;
mod mark;
mod operators;
mod program;
mod rows;
mod spec;
mod stats;
mod workers;

pub use aggregate::{is_groupable, is_ordered};
pub use blob::SealedBlob;
pub use dataflow::{Dataflow, StepInput, place_of};
pub use delta::Delta;
pub use error::{RestoreError, StepError};
pub use expression::{SeveralRows, value_of};
pub use key::{GROUPS, KEY_CODEC_VERSION, VNODES, group_of, hash_rows, vnode_of};
pub use mark::{Mark, mark_schema};
pub use program::Program;
pub use rows::RelationVersion;
pub use segue_types::{BlobKind, Changes, Ops, StateBlob};
pub use spec::{
    AggregateFunction, AggregateSpec, ColumnWatermark, Conflict, DataflowSpec, End, InputKind,
    InputSpec, JoinKind, JoinSpec, Node, NullKeys, Nulls, OperatorSpec, PartitionedInput,
    Resolution, RowNumbers, Shown, SortColumn, TopNSpec,
};
pub use stats::{Clock, OperatorStats};
pub use workers::{RestRound, Rested, StateSource, Workers};
