//! What an operator did and holds, for `segue.operators` and the memory limit.

use std::time::Duration;

use segue_types::OperatorId;

/// Tells how long it has been since some moment. The engine has one; a dataflow that was given none measures nothing.
pub type Clock = fn() -> Duration;

/// Counters of one operator since it was made or restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorStats {
    pub operator: OperatorId,
    pub name: &'static str,
    pub rows_in: u64,
    pub rows_out: u64,
    /// How long its steps took, by the dataflow's clock.
    pub busy: Duration,
    /// How many workers shared them.
    pub workers: usize,
    /// Groups, or rows, held.
    pub state_rows: u64,
    /// About how much memory they take.
    pub state_bytes: u64,
    /// How much more they would take if nothing had left memory.
    pub resting_bytes: u64,
    /// Rows for which an expression failed and gave NULL.
    pub expression_errors: u64,
    /// Rows that came when their window was closed, and were dropped.
    pub late_rows: u64,
}
