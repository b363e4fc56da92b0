//! *State blobs*: pieces of operator state on their way to and from the store, which does not look inside.

use crate::OperatorId;

/// State of one operator's vnode group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateBlob {
    /// Object id << 16 | place of the operator in the object's dataflow.
    pub operator: OperatorId,
    /// 0 to 15.
    pub group: u8,
    pub kind: BlobKind,
    pub bytes: Vec<u8>,
}

/// What a blob does to those stored before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobKind {
    /// It replaces everything that is stored for its operator and group.
    Base,
    /// It comes after everything that is stored for its operator and group.
    Delta,
}
