//! Why a step or a restore could not be done. After any of these the dataflow must be dropped.

use datafusion::error::DataFusionError;

/// A step that failed. Part of it may have been applied, so the dataflow is of no further use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// The input took back a row that was never there, or more often than it came.
    #[error("more rows were removed from {place} than it held")]
    NegativeMultiplicity { place: String },
    /// A second row under a key that promises one.
    #[error("two rows have the same key in {place}")]
    DuplicateKey { place: String },
    /// A removal reached an input that was planned as append-only.
    #[error("a row was removed from an append-only input of {place}")]
    NotAppendOnly { place: String },
    /// An op that this input cannot take: only a keyed input can put and remove by key.
    #[error("{place} cannot take rows by key")]
    NotKeyed { place: String },
    /// The batch is not of the input's schema.
    #[error("{place} got rows of another schema: {reason}")]
    Schema { place: String, reason: String },
    /// An Arrow kernel or expression failed for a reason that is no row's fault.
    #[error("could not compute {place}: {source}")]
    Compute { place: String, source: DataFusionError },
    /// State that had left memory could not be read back.
    #[error(transparent)]
    State(#[from] RestoreError),
}

/// Stored state that cannot be taken over.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// Not written by this operator, or damaged.
    #[error("state blob of operator {operator:#x}, group {group}: {reason}")]
    Blob { operator: u64, group: u8, reason: String },
    /// Nobody could read it.
    #[error("could not read state back: {reason}")]
    Unread { reason: String },
    /// The relation could not be rebuilt from the state that it follows from.
    #[error("could not rebuild the relation from its operator: {reason}")]
    Rebuild { reason: String },
}
