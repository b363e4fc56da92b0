//! Open transactions: what they hide from a reader of committed records is said, for nobody waits for it.

use segue_connect::ConnectError;

use crate::link::{Ask, Link};

/// Logs which of the partitions have records behind their last stable offset. `committed` and `uncommitted`
/// are clients of those isolations.
pub(crate) fn tell_hidden(
    committed: &Link,
    uncommitted: &Link,
    partitions: &[i32],
) -> Result<(), ConnectError> {
    let high = uncommitted.edges(partitions, Ask::End)?;
    // Asked afterwards: a record that came in between moves both ends.
    let stable = committed.edges(partitions, Ask::End)?;
    for (partition, stable) in stable {
        if let Some(high) = high.get(&partition).filter(|high| stable < **high) {
            tracing::warn!(
                "{} has an open transaction: records of partition {partition} from offset {stable} to \
                 {high} are not waited for",
                committed.what()
            );
        }
    }
    Ok(())
}
