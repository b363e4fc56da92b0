//! What an operator did and holds, for `segue.operators` and the memory limit.

use segue_types::OperatorId;

/// Counters of one operator since it was made or restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorStats {
    pub operator: OperatorId,
    pub name: &'static str,
    pub rows_in: u64,
    pub rows_out: u64,
    /// Groups, or rows, held.
    pub state_rows: u64,
    /// About how much memory they take.
    pub state_bytes: u64,
    /// Rows for which an expression failed and gave NULL.
    pub expression_errors: u64,
    /// Rows that came when their window was closed, and were dropped.
    pub late_rows: u64,
}
