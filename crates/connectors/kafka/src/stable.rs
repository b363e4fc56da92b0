//! Open transactions: what they hide from a reader of committed records is said, for nobody waits for it.
//!
//! Word defined here: *stable end*, a partition's last stable offset: the end of what a committed reader sees.

use std::collections::BTreeMap;

use segue_connect::ConnectError;

use crate::link::{Ask, Link};

/// The end of a partition for a committed reader, and the log's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StableEnd {
    pub(crate) stable: i64,
    high: i64,
}

impl StableEnd {
    /// What an open transaction hides, in words; `what` names the topic.
    pub(crate) fn remark(self, what: &str, partition: i32) -> Option<String> {
        let StableEnd { stable, high } = self;
        (stable < high).then(|| {
            format!(
                "partition {partition} of {what} has an open transaction: what is there now ends at its last \
                 stable offset {stable}, and not at the high watermark {high}"
            )
        })
    }
}

/// The ends of partitions. `committed` and `uncommitted` are clients of those isolations.
pub(crate) fn stable_ends(
    committed: &Link,
    uncommitted: &Link,
    partitions: &[i32],
) -> Result<BTreeMap<i32, StableEnd>, ConnectError> {
    let high = uncommitted.edges(partitions, Ask::End)?;
    // Asked afterwards: a record that came in between moves both ends.
    let stable = committed.edges(partitions, Ask::End)?;
    let end = |(partition, stable): (i32, i64)| {
        let high = high.get(&partition).copied().unwrap_or(stable);
        (partition, StableEnd { stable, high })
    };
    Ok(stable.into_iter().map(end).collect())
}

#[cfg(test)]
mod tests {
    use super::StableEnd;

    #[test]
    fn only_what_is_hidden_is_remarked_on() {
        assert_eq!(StableEnd { stable: 5, high: 5 }.remark("topic \"t\"", 0), None);
        // The stable end is asked later, and may have passed what the high watermark was.
        assert_eq!(StableEnd { stable: 6, high: 5 }.remark("topic \"t\"", 0), None);
        let remark = StableEnd { stable: 2, high: 4 }.remark("topic \"t\"", 3).expect("hidden");
        for part in ["partition 3", "topic \"t\"", "last stable offset 2", "high watermark 4"] {
            assert!(remark.contains(part), "{remark}");
        }
    }
}
