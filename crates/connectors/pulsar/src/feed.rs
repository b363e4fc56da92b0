//! The task of one partition: a consumer's entries, decoded, and the questions that settle what no message tells.
//!
//! Invariants: nothing before the start or at or beyond the bound is delivered; a step from one ledger to the next is
//! made only when the one that is left is known not to have been removed unread; after any doubt a new consumer
//! starts at the next place, which the broker's own memory of it would not.

use std::time::{Duration, Instant};

use segue_connect::{ConnectError, OnError, ReadEvent};
use segue_records::{Batch, Records};
use tokio::sync::mpsc::Sender;

use crate::connection::{Entry, Sent};
use crate::consumer::{Consumer, Extent, Subscription};
use crate::entry::{Message, messages};
use crate::place::{Place, split_of};
use crate::settings::Settings;

/// How long to wait for more once there are rows.
const LINGER: Duration = Duration::from_millis(2);
/// How long rows are kept back while more keep coming.
const AGE_MAX: Duration = Duration::from_millis(20);
/// How long silence lasts before the broker is asked about it; each time without news twice as long.
const SILENCE_MIN: Duration = Duration::from_millis(20);
const SILENCE_MAX: Duration = Duration::from_millis(500);
/// How long a message may be there and not come before the consumer is made anew, and how often that is tried.
const DELIVERY_MAX: Duration = Duration::from_secs(5);
const ATTEMPTS_MAX: u32 = 6;

/// What to read of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) from: Place,
    /// Exclusive.
    pub(crate) until: Option<Place>,
}

/// Why reading stops.
enum End {
    /// Nobody listens any more.
    Abandoned,
    Complete {
        at: Place,
    },
    Failed(ConnectError),
    /// The consumer is in doubt.
    Anew,
}

impl From<ConnectError> for End {
    fn from(error: ConnectError) -> End {
        End::Failed(error)
    }
}

/// Whose messages are read.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) settings: Settings,
    pub(crate) partition: u32,
    pub(crate) topic: String,
}

pub(crate) struct Feed {
    source: Source,
    batch: Batch,
    next: Place,
    until: Option<Place>,
    /// The position that was delivered last.
    told: Place,
    /// Since when a message is there that does not come, and how many consumers have waited for it.
    overdue: Option<Instant>,
    attempts: u32,
    silence: Duration,
    events: Sender<Result<ReadEvent, ConnectError>>,
}

impl Feed {
    pub(crate) fn new(
        source: Source,
        records: Records,
        on_error: OnError,
        range: Range,
        events: Sender<Result<ReadEvent, ConnectError>>,
    ) -> Feed {
        Feed {
            source,
            batch: Batch::new(records, on_error),
            next: range.from,
            until: range.until,
            told: range.from,
            overdue: None,
            attempts: 0,
            silence: SILENCE_MIN,
            events,
        }
    }

    /// Reads until the range is complete, the read fails, or nobody listens.
    pub(crate) async fn run(mut self) {
        let last = loop {
            match self.consume().await {
                End::Anew => self.pause().await,
                End::Abandoned => return,
                End::Complete { at } => break Ok(ReadEvent::Done { at: at.position() }),
                End::Failed(error) => break Err(error),
            }
        };
        self.events.send(last).await.ok();
    }

    async fn pause(&mut self) {
        tokio::time::sleep(self.silence).await;
        self.silence = (self.silence * 2).min(SILENCE_MAX);
    }

    async fn consume(&mut self) -> End {
        self.overdue = None;
        let mut consumer = match self.start().await {
            Ok(consumer) => consumer,
            Err(error) => return End::Failed(error),
        };
        loop {
            if let Err(end) = self.turn(&mut consumer).await {
                return end;
            }
        }
    }

    /// A consumer from the next place on, which must still be there.
    async fn start(&self) -> Result<Consumer, ConnectError> {
        let Source { settings, topic, .. } = &self.source;
        let start = Subscription::Passing { start: self.next.start() };
        let mut consumer = Consumer::subscribe(settings, topic, start).await?;
        let extent = consumer.extent().await?;
        self.must_be_kept(extent)?;
        if self.next.ledger == extent.end.ledger && self.next > extent.end {
            return Err(self.truncated(self.next, extent.end));
        }
        Ok(consumer)
    }

    /// The broker starts in another ledger only where ours is gone. Was it read to its end before? With a durable
    /// subscription it was, and where nothing follows nothing was lost; else nobody can tell.
    fn must_be_kept(&self, extent: Extent) -> Result<(), ConnectError> {
        let settings = &self.source.settings;
        let moved = extent.start.ledger > self.next.ledger;
        if !moved || settings.subscription.is_some() || extent.end <= extent.start {
            return Ok(());
        }
        Err(ConnectError::Expired {
            what: settings.what(),
            split: split_of(self.source.partition),
            position: self.next.position(),
            available: extent.start.position(),
        })
    }

    async fn turn(&mut self, consumer: &mut Consumer) -> Result<(), End> {
        consumer.ask().await?;
        let wait = if self.batch.is_empty() { self.silence } else { LINGER };
        let sent = tokio::select! {
            sent = consumer.next() => Some(sent?),
            () = tokio::time::sleep(wait) => None,
            () = self.events.closed() => return Err(End::Abandoned),
        };
        match sent {
            None if self.batch.is_empty() => self.settle(consumer).await,
            None => self.flush().await,
            Some(sent) => self.accept(consumer, sent).await,
        }
    }

    /// Takes what has come, without waiting.
    async fn accept(&mut self, consumer: &mut Consumer, first: Sent) -> Result<(), End> {
        let mut sent = Some(first);
        while let Some(now) = sent {
            match now {
                Sent::Entry(entry) => self.take(entry).await?,
                Sent::ReachedEnd => {}
                Sent::Closed => {
                    self.flush().await?;
                    return Err(End::Anew);
                }
            }
            if self.batch.age() >= AGE_MAX {
                self.flush().await?;
            }
            consumer.ask().await?;
            sent = consumer.next_now()?;
        }
        Ok(())
    }

    async fn take(&mut self, entry: Entry) -> Result<(), End> {
        (self.silence, self.overdue, self.attempts) = (SILENCE_MIN, None, 0);
        if entry.id.ledger > self.next.ledger {
            // A consumer that asks for the place that was left finds it, unless its ledger is gone.
            self.flush().await?;
            self.start().await?;
        }
        for message in messages(entry, self.source.settings.keyed) {
            // An entry comes whole, also where only its end was asked for.
            if message.place < self.next {
                continue;
            }
            if let Some(until) = self.until.filter(|until| message.place >= *until) {
                return Err(self.complete(until).await);
            }
            if let Err(reason) = self.push(&message) {
                self.next = message.place;
                self.flush().await?;
                let (split, position) = (split_of(self.source.partition), message.place.position());
                return Err(End::Failed(ConnectError::Malformed { split, position, reason }));
            }
            self.next = message.next;
            if self.batch.is_full() {
                self.flush().await?;
            }
        }
        match self.until {
            Some(until) if self.next >= until => Err(self.complete(until).await),
            _ => Ok(()),
        }
    }

    fn push(&mut self, message: &Message) -> Result<(), String> {
        let position = || message.place.position();
        match message.unreadable() {
            Some(reason) => self.batch.reject(message, position(), reason.to_owned()),
            None => self.batch.push(message, position),
        }
    }

    async fn complete(&mut self, at: Place) -> End {
        self.next = at;
        match self.flush().await {
            Ok(()) => End::Complete { at },
            Err(end) => end,
        }
    }

    /// Delivers the rows, and the position at which reading goes on.
    async fn flush(&mut self) -> Result<(), End> {
        let next = self.next.position();
        let event = if !self.batch.is_empty() {
            ReadEvent::Rows(self.batch.finish(next))
        } else if self.next > self.told {
            ReadEvent::Progress { next }
        } else {
            return Ok(());
        };
        self.told = self.next;
        self.events.send(Ok(event)).await.map_err(|_| End::Abandoned)
    }

    /// Nothing comes: finds out whether that is because there is nothing.
    async fn settle(&mut self, consumer: &mut Consumer) -> Result<(), End> {
        self.silence = (self.silence * 2).min(SILENCE_MAX);
        let end = consumer.extent().await?.end;
        if self.next >= end {
            self.overdue = None;
            return match self.until {
                Some(until) if until.ledger == end.ledger && until > end => {
                    Err(End::Failed(self.truncated(until, end)))
                }
                // A bound was an end once, and everything up to the end has come.
                Some(until) => Err(self.complete(until).await),
                None => self.flush().await,
            };
        }
        let since = *self.overdue.get_or_insert_with(Instant::now);
        if since.elapsed() < DELIVERY_MAX {
            return Ok(());
        }
        self.attempts += 1;
        if self.attempts >= ATTEMPTS_MAX {
            let reason = format!("the broker does not deliver what lies at {}", self.next);
            let system = self.source.settings.system();
            return Err(End::Failed(ConnectError::Unreachable { system, reason }));
        }
        Err(End::Anew)
    }

    fn truncated(&self, position: Place, end: Place) -> ConnectError {
        ConnectError::Truncated {
            what: self.source.settings.what(),
            split: split_of(self.source.partition),
            position: position.position(),
            end: end.position(),
        }
    }
}
