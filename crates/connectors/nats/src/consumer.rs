//! A consumer on the server: it sends messages in the order of the stream from a sequence on, as many as were
//! asked for, and counts what it sends, so that a message that was lost on its way is noticed.
//!
//! Invariant: a consumer never waits for more than [`MESSAGES_MAX`] messages that were asked for.

use std::time::Duration;

use async_nats::{Message, StatusCode, Subscriber};
use futures::{FutureExt as _, StreamExt as _};
use segue_connect::ConnectError;
use serde_json::json;

use crate::link::{CONSUMER_KEPT, Link, nanoseconds};

/// How many messages are asked for at once, at the most.
const MESSAGES_MAX: u64 = 4096;
/// How many bytes one request may bring; a larger message is asked for alone.
const BYTES_MAX: u64 = 8 << 20;
/// How long the server keeps a request; it is then asked again.
const REQUEST_KEPT: Duration = Duration::from_secs(20);

/// What the server sent.
pub(crate) enum Sent {
    Message(Box<Message>),
    /// Word about a request; nothing was lost.
    Word,
    /// The consumer is gone or answers no more.
    Over,
}

pub(crate) struct Consumer {
    name: String,
    stream: String,
    inbox: String,
    messages: Subscriber,
    /// Messages that were asked for and have not come.
    awaited: u64,
    /// Whether a message has come since the last request.
    served: bool,
    /// Whether the next message is larger than a request may bring.
    oversized: bool,
    /// How often the connection had been lost when it was made.
    losses: u64,
    /// Messages that have come.
    counted: u64,
}

impl Consumer {
    /// Makes a consumer of our subjects from `from` on.
    pub(crate) async fn create(
        link: &Link,
        stream: &str,
        from: u64,
    ) -> Result<Consumer, ConnectError> {
        let losses = link.losses();
        let inbox = link.client.new_inbox();
        let messages = link.client.subscribe(inbox.clone()).await.map_err(|error| {
            ConnectError::Unreachable { system: link.settings.system(), reason: error.to_string() }
        })?;
        let mut config = json!({
            "deliver_policy": "by_start_sequence", "opt_start_seq": from, "ack_policy": "none",
            "replay_policy": "instant", "mem_storage": true, "num_replicas": 1,
            "inactive_threshold": nanoseconds(CONSUMER_KEPT),
        });
        match link.settings.subjects.names() {
            [one] => config["filter_subject"] = one.clone().into(),
            several => config["filter_subjects"] = several.into(),
        }
        let made = link.create_consumer(stream, &config).await?;
        Ok(Consumer {
            name: made.name,
            stream: stream.to_owned(),
            inbox,
            messages,
            awaited: 0,
            served: true,
            oversized: false,
            losses,
            counted: 0,
        })
    }

    /// Whether a message may have been lost with the connection.
    pub(crate) fn is_doubtful(&self, link: &Link) -> bool {
        link.losses() != self.losses
    }

    /// Counts a message; whether it is the one after the last.
    pub(crate) fn counts(&mut self, delivery: u64) -> bool {
        self.counted += 1;
        delivery == self.counted
    }

    /// Asks for more, if few are awaited.
    pub(crate) async fn ask(&mut self, link: &Link) -> Result<(), ConnectError> {
        if self.awaited > MESSAGES_MAX / 2 || (self.oversized && self.awaited > 0) {
            return Ok(());
        }
        let kept = nanoseconds(REQUEST_KEPT);
        let (batch, request) = if self.oversized {
            (1, json!({ "batch": 1, "expires": kept }))
        } else {
            let batch = MESSAGES_MAX - self.awaited;
            (batch, json!({ "batch": batch, "max_bytes": BYTES_MAX, "expires": kept }))
        };
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", self.stream, self.name);
        let payload = request.to_string().into();
        let asked = link.client.publish_with_reply(subject, self.inbox.clone(), payload).await;
        asked.map_err(|error| ConnectError::Unreachable {
            system: link.settings.system(),
            reason: error.to_string(),
        })?;
        self.awaited += batch;
        self.served = false;
        self.oversized = false;
        Ok(())
    }

    /// What comes next. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Sent {
        let message = self.messages.next().await;
        self.sort(message)
    }

    /// What has come already.
    pub(crate) fn next_now(&mut self) -> Option<Sent> {
        let message = self.messages.next().now_or_never()?;
        Some(self.sort(message))
    }

    fn sort(&mut self, message: Option<Message>) -> Sent {
        let Some(message) = message else { return Sent::Over };
        let Some(status) = message.status else {
            self.awaited = self.awaited.saturating_sub(1);
            self.served = true;
            return Sent::Message(Box::new(message));
        };
        let description = message.description.as_deref().unwrap_or_default();
        match status {
            StatusCode::IDLE_HEARTBEAT => Sent::Word,
            StatusCode::TIMEOUT | StatusCode::NOT_FOUND => self.unasked(&message),
            StatusCode::REQUEST_TERMINATED if description.contains("MaxBytes") => {
                self.oversized = !self.served;
                self.unasked(&message)
            }
            StatusCode::REQUEST_TERMINATED if description.contains("Batch Completed") => {
                self.unasked(&message)
            }
            _ => {
                tracing::debug!(%status, description, "the consumer is over");
                Sent::Over
            }
        }
    }

    /// A request has ended; what it still owed is not awaited any more.
    fn unasked(&mut self, message: &Message) -> Sent {
        let owed =
            message.headers.as_ref().and_then(|headers| headers.get("Nats-Pending-Messages"));
        let owed = owed.and_then(|owed| owed.as_str().parse().ok());
        self.awaited = self.awaited.saturating_sub(owed.unwrap_or(self.awaited));
        Sent::Word
    }

    /// Takes leave of the server.
    pub(crate) async fn delete(self, link: &Link) {
        link.delete_consumer(&self.stream, &self.name).await;
    }
}
