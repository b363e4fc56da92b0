//! A consumer of one partition: it is sent messages from a place on, as many as it asks for.
//!
//! A consumer without a durable subscription leaves nothing on the broker when its connection ends. The broker moves a
//! start that has gone to the first message that is left, and sends an entry of a batch whole; what it says it
//! starts from is therefore looked at, and what lies before the start is left out by the reader.

use segue_connect::ConnectError;

use crate::connection::{Connection, Sent};
use crate::place::{Place, earliest};
use crate::settings::Settings;
use crate::wire::{
    BaseCommand, Flow, LastMessageResponse, MessageId, OfConsumer, Seek, Subscribe, kind,
};

/// The one consumer of a connection.
const CONSUMER: u64 = 1;
/// How many messages are asked for at once.
const PERMITS: u32 = 1000;
const EXCLUSIVE: i32 = 0;

/// How a consumer subscribes.
pub(crate) enum Subscription<'a> {
    /// From `start` on, and forgotten when the connection ends.
    Passing { start: MessageId },
    /// Under a name; kept until it is removed.
    Durable { name: &'a str },
}

pub(crate) struct Consumer {
    connection: Connection,
    /// Messages that were asked for and have not come.
    awaited: u32,
}

/// What a consumer may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Where it starts.
    pub(crate) start: Place,
    /// Where the next message will be, at the least.
    pub(crate) end: Place,
}

impl Consumer {
    pub(crate) async fn subscribe(
        settings: &Settings,
        topic: &str,
        subscription: Subscription<'_>,
    ) -> Result<Consumer, ConnectError> {
        let mut connection = Connection::to_broker_of(settings, topic).await?;
        let request = connection.next_request();
        let (name, start) = match subscription {
            Subscription::Passing { start } => (passing_name(), Some(start)),
            Subscription::Durable { name } => (name.to_owned(), None),
        };
        let subscribe = Subscribe {
            topic: topic.to_owned(),
            subscription: name,
            sub_type: EXCLUSIVE,
            consumer: CONSUMER,
            request,
            durable: Some(start.is_none()),
            initial_position: Some(i32::from(start.is_none())),
            start,
            create_topic: Some(false),
        };
        let command = BaseCommand {
            kind: kind::SUBSCRIBE,
            subscribe: Some(subscribe),
            ..BaseCommand::default()
        };
        connection.ask(command, |answer| answer.success.clone()).await?;
        Ok(Consumer { connection, awaited: 0 })
    }

    /// Where the consumer starts, and where the topic ends now.
    pub(crate) async fn extent(&mut self) -> Result<Extent, ConnectError> {
        let found = self.last_message().await?;
        let start = found.mark_delete.as_ref().and_then(Place::after);
        let start = start.ok_or_else(|| {
            ConnectError::Unsupported("the broker does not say where a consumer starts".to_owned())
        })?;
        // Of an empty topic the broker may know no last message at all.
        let end = Place::after(&found.last).unwrap_or(start);
        Ok(Extent { start, end })
    }

    async fn last_message(&mut self) -> Result<LastMessageResponse, ConnectError> {
        let request = self.connection.next_request();
        let of = OfConsumer { consumer: CONSUMER, request };
        let command = BaseCommand {
            kind: kind::LAST_MESSAGE,
            last_message: Some(of),
            ..BaseCommand::default()
        };
        self.connection.ask(command, |answer| answer.last_message_response.clone()).await
    }

    /// Moves the subscription to the first message that was published at or after a time. The broker then
    /// closes the consumer.
    pub(crate) async fn seek(&mut self, unix_ms: i64) -> Result<(), ConnectError> {
        let request = self.connection.next_request();
        let publish_time_ms = Some(u64::try_from(unix_ms).unwrap_or(0));
        let seek = Seek { consumer: CONSUMER, request, publish_time_ms };
        let command = BaseCommand { kind: kind::SEEK, seek: Some(seek), ..BaseCommand::default() };
        self.connection.ask(command, |answer| answer.success.clone()).await.map(drop)
    }

    /// Removes the durable subscription.
    pub(crate) async fn unsubscribe(mut self) -> Result<(), ConnectError> {
        let request = self.connection.next_request();
        let of = OfConsumer { consumer: CONSUMER, request };
        let command = BaseCommand {
            kind: kind::UNSUBSCRIBE,
            unsubscribe: Some(of),
            ..BaseCommand::default()
        };
        self.connection.ask(command, |answer| answer.success.clone()).await.map(drop)
    }

    /// Acknowledges everything up to `id`.
    pub(crate) async fn acknowledge(&mut self, id: MessageId) -> Result<(), ConnectError> {
        let ack = crate::wire::Ack { consumer: CONSUMER, ack_type: 1, ids: vec![id] };
        let command = BaseCommand { kind: kind::ACK, ack: Some(ack), ..BaseCommand::default() };
        self.connection.send(&command).await
    }

    /// Asks for more, if few are awaited.
    pub(crate) async fn ask(&mut self) -> Result<(), ConnectError> {
        if self.awaited > PERMITS / 2 {
            return Ok(());
        }
        let permits = PERMITS - self.awaited;
        let flow = Flow { consumer: CONSUMER, permits };
        let command = BaseCommand { kind: kind::FLOW, flow: Some(flow), ..BaseCommand::default() };
        self.connection.send(&command).await?;
        self.awaited += permits;
        Ok(())
    }

    /// What comes next. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Sent, ConnectError> {
        let sent = self.connection.next().await?;
        Ok(self.counted(sent))
    }

    /// What has come already.
    pub(crate) fn next_now(&mut self) -> Result<Option<Sent>, ConnectError> {
        let sent = self.connection.next_now()?;
        Ok(sent.map(|sent| self.counted(sent)))
    }

    fn counted(&mut self, sent: Sent) -> Sent {
        if let Sent::Entry(entry) = &sent {
            // A batch may have more messages than were asked for.
            let messages = entry.metadata.batch_len.unwrap_or(1).max(1).unsigned_abs();
            self.awaited = self.awaited.saturating_sub(messages);
        }
        sent
    }
}

/// What a topic holds now.
pub(crate) async fn extent(settings: &Settings, topic: &str) -> Result<Extent, ConnectError> {
    let start = Subscription::Passing { start: earliest() };
    Consumer::subscribe(settings, topic, start).await?.extent().await
}

/// The place of the first message that was published at or after a time. The broker works it out for a
/// subscription that is made for this question alone.
pub(crate) async fn place_at(
    settings: &Settings,
    topic: &str,
    unix_ms: i64,
) -> Result<Place, ConnectError> {
    let name = passing_name();
    let subscribe = || Consumer::subscribe(settings, topic, Subscription::Durable { name: &name });
    subscribe().await?.seek(unix_ms).await?;
    let mut consumer = subscribe().await?;
    let found = consumer.extent().await;
    consumer.unsubscribe().await?;
    Ok(found?.start)
}

/// A name that no other subscription has.
fn passing_name() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{SystemTime, UNIX_EPOCH};
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let (process, number) = (std::process::id(), TAKEN.fetch_add(1, Ordering::Relaxed));
    format!("segue-{since:x}-{process:x}-{number:x}")
}
