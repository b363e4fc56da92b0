//! The vocabulary that every other crate shares: ids, positions, epochs, row semantics, SQL types, errors.
//!
//! Words defined here: *split*, *position*, *epoch*, *generation*, *continuity*, *row semantics*, *change*.
//! Invariant: nothing here does I/O, reads a clock, or knows a connector.

mod blob;
mod change;
mod error;
mod ids;
mod nearest;
mod position;
mod semantics;
mod sql_type;

pub use blob::{BlobKind, StateBlob};
pub use change::{Changes, Ops};
pub use error::{SqlState, UserError};
pub use ids::{ConsumerId, Epoch, Generation, JobId, ObjectId, OperatorId, SplitId, StageIndex};
pub use nearest::nearest;
pub use position::{Position, PositionOrder};
pub use semantics::{Boundedness, Continuity, Op, RowSemantics};
pub use sql_type::{SqlType, sql_type_of};
