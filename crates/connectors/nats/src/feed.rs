//! The task of one read: asks a consumer for messages, decodes them, and settles by questions what no message
//! tells: that the end was reached, that what was passed over was not lost.
//!
//! Invariants: nothing at or beyond the bound is delivered; rows go out only when what was passed over before
//! them is known not to have expired; after any doubt a new consumer starts at the next position.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::Message;
use segue_connect::{ConnectError, OnError, ReadDefinition, ReadEvent};
use segue_records::{Batch, Records};
use tokio::sync::mpsc::Sender;

use crate::consumer::{Consumer, Sent};
use crate::handoff::present;
use crate::link::{Link, what};
use crate::message::{Place, Placed};
use crate::pin::{must_be_kept, must_lie_within};
use crate::sequence::{position_of, split};

/// How long to wait for more once there are rows.
const LINGER: Duration = Duration::from_millis(2);
/// How long rows are kept back while more keep coming.
const AGE_MAX: Duration = Duration::from_millis(20);
/// How long silence lasts before the stream is asked about it; each time without an answer twice as long.
const SILENCE_MIN: Duration = Duration::from_millis(20);
const SILENCE_MAX: Duration = Duration::from_millis(500);
/// How long a message may be on the stream and not come before the consumer is made anew.
const DELIVERY_MAX: Duration = Duration::from_secs(3);

/// How long a server may deny that the stream exists before it is believed: it may be coming up, or the stream may be
/// about to be made again, which is another error.
const ABSENCE_DOUBT: Duration = Duration::from_secs(3);

/// What to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) from: u64,
    /// Exclusive.
    pub(crate) until: Option<u64>,
}

/// Why reading stops.
enum End {
    /// Nobody listens any more.
    Abandoned,
    Complete {
        at: u64,
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

pub(crate) struct Feed {
    link: Arc<Link>,
    definition: Arc<ReadDefinition>,
    stream: String,
    batch: Batch,
    next: u64,
    until: Option<u64>,
    /// The position that was delivered last.
    told: u64,
    /// The first sequence that was passed over since the last delivery.
    gap: Option<u64>,
    /// Since when a message is on the stream that does not come.
    overdue: Option<Instant>,
    /// Since when the stream has been missing.
    absent: Option<Instant>,
    silence: Duration,
    events: Sender<Result<ReadEvent, ConnectError>>,
}

impl Feed {
    pub(crate) fn new(
        link: Arc<Link>,
        definition: Arc<ReadDefinition>,
        stream: String,
        records: Records,
        on_error: OnError,
        range: Range,
        events: Sender<Result<ReadEvent, ConnectError>>,
    ) -> Feed {
        Feed {
            link,
            definition,
            stream,
            batch: Batch::new(records, on_error),
            next: range.from,
            until: range.until,
            told: range.from,
            gap: None,
            overdue: None,
            absent: None,
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
                End::Complete { at } => break Ok(ReadEvent::Done { at: position_of(at) }),
                End::Failed(ConnectError::Missing { .. }) if self.may_come_back() => {
                    self.pause().await;
                }
                End::Failed(error) => break Err(error),
            }
        };
        self.events.send(last).await.ok();
    }

    fn may_come_back(&mut self) -> bool {
        let since = *self.absent.get_or_insert_with(Instant::now);
        since.elapsed() < ABSENCE_DOUBT && !self.events.is_closed()
    }

    /// So that a server that ends every consumer at once is not asked for ever more of them.
    async fn pause(&mut self) {
        tokio::time::sleep(self.silence).await;
        self.silence = (self.silence * 2).min(SILENCE_MAX);
    }

    /// Reads through one consumer, and takes it away.
    async fn consume(&mut self) -> End {
        let mut consumer = match self.start().await {
            Ok(consumer) => consumer,
            Err(end) => return end,
        };
        let end = loop {
            if let Err(end) = self.turn(&mut consumer).await {
                break end;
            }
        };
        // Before the end is told, so that whoever hears of it finds nothing left behind.
        consumer.delete(&self.link).await;
        end
    }

    async fn start(&mut self) -> Result<Consumer, End> {
        let info = present(&self.link, &self.definition).await?;
        (self.overdue, self.absent) = (None, None);
        must_lie_within(self.next, &info)?;
        let consumer = Consumer::create(&self.link, &self.stream, self.next).await?;
        // A consumer starts at the first message that is left: it must not have been left behind meanwhile.
        let info = present(&self.link, &self.definition).await?;
        match must_be_kept(self.next, &info, info.state.first()) {
            Ok(()) => Ok(consumer),
            Err(error) => {
                consumer.delete(&self.link).await;
                Err(End::Failed(error))
            }
        }
    }

    async fn turn(&mut self, consumer: &mut Consumer) -> Result<(), End> {
        consumer.ask(&self.link).await?;
        let wait = if self.batch.is_empty() { self.silence } else { LINGER };
        let sent = tokio::select! {
            sent = consumer.next() => Some(sent),
            () = tokio::time::sleep(wait) => None,
            () = self.events.closed() => return Err(End::Abandoned),
        };
        match sent {
            None if consumer.is_doubtful(&self.link) => Err(End::Anew),
            None if self.batch.is_empty() => self.settle().await,
            None => self.flush().await,
            Some(sent) => self.accept(consumer, sent).await,
        }
    }

    /// Takes what has come, without waiting.
    async fn accept(&mut self, consumer: &mut Consumer, first: Sent) -> Result<(), End> {
        let mut sent = Some(first);
        while let Some(now) = sent {
            match now {
                Sent::Word => consumer.ask(&self.link).await?,
                Sent::Over => return Err(End::Anew),
                Sent::Message(message) => {
                    let left = self.take(consumer, &message).await?;
                    if left == 0 || self.batch.is_full() || self.batch.age() >= AGE_MAX {
                        self.flush().await?;
                        consumer.ask(&self.link).await?;
                    }
                }
            }
            sent = consumer.next_now();
        }
        Ok(())
    }

    /// Adds a message. How many more the stream has.
    async fn take(&mut self, consumer: &mut Consumer, message: &Message) -> Result<u64, End> {
        let place = message.reply.as_deref().and_then(Place::parse);
        let Some(place) = place.filter(|place| consumer.counts(place.delivery)) else {
            return Err(End::Anew);
        };
        (self.silence, self.overdue) = (SILENCE_MIN, None);
        let at = place.sequence;
        if at < self.next {
            // It had been deleted when the stream was asked, and was on its way already.
            return Ok(place.pending);
        }
        if at > self.next {
            self.gap.get_or_insert(self.next);
        }
        if let Some(until) = self.until.filter(|until| at >= *until) {
            return Err(self.complete(until).await);
        }
        let placed = Placed { message, place, settings: &self.link.settings };
        if let Err(reason) = self.batch.push(&placed, || position_of(at)) {
            self.next = at;
            self.flush().await?;
            let (split, position) = (split(), position_of(at));
            return Err(End::Failed(ConnectError::Malformed { split, position, reason }));
        }
        self.next = at + 1;
        match self.until {
            Some(until) if self.next >= until => Err(self.complete(until).await),
            _ => Ok(place.pending),
        }
    }

    async fn complete(&mut self, at: u64) -> End {
        self.next = at;
        match self.flush().await {
            Ok(()) => End::Complete { at },
            Err(end) => end,
        }
    }

    /// Delivers the rows, and the position at which reading goes on.
    async fn flush(&mut self) -> Result<(), End> {
        if let Some(gap) = self.gap {
            let info = present(&self.link, &self.definition).await?;
            must_be_kept(gap, &info, info.state.first())?;
            self.gap = None;
        }
        let next = position_of(self.next);
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
    async fn settle(&mut self) -> Result<(), End> {
        self.silence = (self.silence * 2).min(SILENCE_MAX);
        // In this order: what is added in between lies at or behind the end that was seen.
        let info = present(&self.link, &self.definition).await?;
        must_be_kept(self.next, &info, info.state.first())?;
        let end = info.state.end();
        if self.next > end {
            must_lie_within(self.next, &info)?;
        }
        let waiting = self.link.next_message(&self.stream, self.next).await?;
        let passed = waiting.map_or(end, |at| at.min(end));
        if let Some(until) = self.until {
            if passed >= until {
                return Err(self.complete(until).await);
            }
            if end < until {
                return Err(End::Failed(self.truncated(until, end)));
            }
        }
        self.next = self.next.max(passed);
        self.flush().await?;
        match waiting {
            None => self.overdue = None,
            Some(_) => {
                let since = *self.overdue.get_or_insert_with(Instant::now);
                if since.elapsed() >= DELIVERY_MAX {
                    return Err(End::Anew);
                }
            }
        }
        Ok(())
    }

    fn truncated(&self, position: u64, end: u64) -> ConnectError {
        ConnectError::Truncated {
            what: what(&self.stream),
            split: split(),
            position: position_of(position),
            end: position_of(end),
        }
    }
}
