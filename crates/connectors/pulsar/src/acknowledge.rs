//! The durable subscription that keeps what is not durable here yet: told after each epoch how far that is.
//!
//! It receives nothing: a consumer that never asks for a message. Invariant: only entries that are durable whole are
//! acknowledged, so what a crash makes us read again is still there.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use segue_connect::ConnectError;

use crate::consumer::{Consumer, Subscription};
use crate::pin::partitions;
use crate::place::Place;
use crate::settings::Settings;
use crate::wire::MessageId;

/// How long a connection is used again. The broker asks after a quiet one from time to time, and nobody answers.
const IDLE_MAX: Duration = Duration::from_secs(20);

pub(crate) struct Acknowledger {
    name: String,
    /// The last entry that was acknowledged, by partition.
    told: Mutex<BTreeMap<u32, Place>>,
    sessions: tokio::sync::Mutex<BTreeMap<u32, (Consumer, Instant)>>,
}

impl Acknowledger {
    pub(crate) fn new(name: String) -> Acknowledger {
        Acknowledger { name, told: Mutex::default(), sessions: tokio::sync::Mutex::default() }
    }

    /// Whether an entry more is durable than was told.
    pub(crate) fn is_news(&self, partition: u32, next: Place) -> bool {
        let whole = Place::of_entry(next.ledger, next.entry);
        next.entry > 0 && self.told.lock().get(&partition).is_none_or(|told| *told < whole)
    }

    /// Acknowledges the entries before `next`.
    pub(crate) async fn tell(
        &self,
        settings: &Settings,
        partition: u32,
        topic: &str,
        next: Place,
    ) -> Result<(), ConnectError> {
        let id = MessageId { ledger: next.ledger, entry: next.entry - 1, batch_index: None };
        let mut sessions = self.sessions.lock().await;
        let session = sessions.remove(&partition).filter(|(_, used)| used.elapsed() < IDLE_MAX);
        let mut consumer = match session {
            Some((consumer, _)) => consumer,
            None => {
                let subscription = Subscription::Durable { name: &self.name };
                Consumer::subscribe(settings, topic, subscription).await?
            }
        };
        consumer.acknowledge(id).await?;
        sessions.insert(partition, (consumer, Instant::now()));
        self.told.lock().insert(partition, Place::of_entry(next.ledger, next.entry));
        Ok(())
    }
}

/// Removes the subscription from every partition that is still there.
pub(crate) async fn release(settings: &Settings, name: &str) -> Result<(), ConnectError> {
    for topic in partitions(settings).await?.values() {
        match Consumer::subscribe(settings, topic, Subscription::Durable { name }).await {
            Ok(consumer) => consumer.unsubscribe().await?,
            // It went with its topic.
            Err(ConnectError::Missing { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
