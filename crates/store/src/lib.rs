//! The durable half of Segue: one redb file, one write transaction per epoch, and the files of captures.
//!
//! ```text
//! <data-dir>/segue.lock                                        held while a server runs
//! <data-dir>/segue.redb                                        everything that is written with an epoch
//! <data-dir>/captures/<object>/<stage>/<attempt>/<n>.arrow     results of bounded queries
//! ```
//!
//! [`Store::commit`] writes all of an epoch or nothing of it; [`Store::load`] and
//! [`Store::state_blobs`] give it back. docs/format.md has the tables, keys and records. Calls block:
//! the engine makes them from a thread of their own.
//!
//! Words defined here: *commit*, *record*, *state blob*, *base*, *delta*, *manifest*, *attempt*, *crash
//! point*.
//! Invariants: no other crate knows redb; what a load accepts is what a commit wrote, checksum by
//! checksum; after a commit that failed nothing more is written, since nobody can say which side of it
//! the file is on.

mod apply;
mod blob;
pub mod capture;
mod commit;
#[doc(hidden)]
pub mod crash;
mod error;
mod load;
mod lock;
mod record;
mod store;
mod tables;

pub use commit::{Checkpoint, Commit, DeadLetter};
pub use error::{CloseError, CommitError, Corruption, LoadError, OpenError};
pub use load::Stored;
pub use segue_types::{BlobKind, StateBlob};
pub use store::Store;

/// The format of the data directory that this version writes.
pub const FORMAT: u16 = 1;
/// How many dead letters are kept; older ones are dropped and counted.
pub const DEAD_LETTERS_MAX: u64 = 4096;
/// How many rows `segue.checkpoints` has.
pub const CHECKPOINTS_MAX: u64 = 1024;
