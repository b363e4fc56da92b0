//! The reading of one partition: a thread that decodes straight from librdkafka's buffers, and the
//! receiving end that the engine polls.
//!
//! Invariants: nothing at or beyond the bound is delivered; a read with a bound ends at the first sign
//! that the bound was passed (a record at or behind it, or the partition's end), because the last offset
//! before it may never be delivered (a transaction's marker, aborted, compacted away).

mod batch;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rdkafka::error::RDKafkaErrorCode as Code;
use segue_connect::{ConnectError, ReadEvent, SplitReader};
use segue_records::Records;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::link::{Ask, Link};
use crate::reader::{OpensLatch, Queue, Shared};
use crate::sentinel::RECENT;
use crate::settings::Purpose;
use crate::splits::{position_of, split_of};
use batch::{Batch, Taken};

/// Deliveries that wait for the engine.
const QUEUE_EVENTS: usize = 2;
/// How long to wait for more once there are rows.
const LINGER: Duration = Duration::from_millis(2);
/// How long rows are kept back while more keep coming.
const AGE_MAX: Duration = Duration::from_millis(20);
/// How long to wait for a first row; also how late a dropped reader is noticed.
const IDLE: Duration = Duration::from_millis(50);
/// How long the partition's end may lie before the bound before the log is suspected to have lost its tail.
const SHORT_DOUBT: Duration = Duration::from_secs(5);

/// What to read of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) from: i64,
    /// Exclusive.
    pub(crate) until: Option<i64>,
}

/// The engine's end.
pub(crate) enum PartitionReader {
    /// There is nothing in the range.
    Done {
        at: i64,
    },
    Reading {
        events: Receiver<Result<ReadEvent, ConnectError>>,
    },
}

impl PartitionReader {
    /// The reader of an empty range.
    pub(crate) fn done(range: Range) -> PartitionReader {
        PartitionReader::Done { at: range.until.expect("only a range with an end can be empty") }
    }
}

#[async_trait]
impl SplitReader for PartitionReader {
    async fn next(&mut self) -> Result<ReadEvent, ConnectError> {
        match self {
            PartitionReader::Done { at } => Ok(ReadEvent::Done { at: position_of(*at) }),
            PartitionReader::Reading { events } => events.recv().await.unwrap_or_else(|| {
                Err(ConnectError::Unsupported("the reading thread has died".to_owned()))
            }),
        }
    }
}

/// Why a partition is read no further.
enum End {
    /// Nobody listens any more.
    Abandoned,
    Complete {
        at: i64,
    },
    Failed(ConnectError),
}

/// The thread's end.
pub(crate) struct Reading {
    shared: Arc<Shared>,
    queue: Queue,
    batch: Batch,
    partition: i32,
    until: Option<i64>,
    /// The position that was delivered last.
    told: i64,
    /// Since when the partition's end has been before the bound.
    short_since: Option<Instant>,
    events: Sender<Result<ReadEvent, ConnectError>>,
}

impl Reading {
    /// Starts the thread of an assigned partition.
    pub(crate) fn start(
        shared: Arc<Shared>,
        queue: Queue,
        records: Records,
        partition: i32,
        range: Range,
        ended: OpensLatch,
    ) -> PartitionReader {
        let (sender, events) = channel(QUEUE_EVENTS);
        let batch = Batch::new(records, partition, range, shared.config.on_error);
        let reading = Reading {
            shared,
            queue,
            batch,
            partition,
            until: range.until,
            told: range.from,
            short_since: None,
            events: sender,
        };
        std::thread::Builder::new()
            .name(format!("kafka-{partition}"))
            .spawn(move || {
                reading.run();
                drop(ended);
            })
            .expect("the system has threads");
        PartitionReader::Reading { events }
    }

    fn run(mut self) {
        let end = loop {
            if let Err(end) = self.turn() {
                break end;
            }
        };
        let last = match end {
            End::Abandoned => None,
            End::Complete { at } => Some(Ok(ReadEvent::Done { at: position_of(at) })),
            End::Failed(error) => Some(Err(error)),
        };
        // Given back before the end is told, so that whoever hears of it can read the partition again at
        // once.
        self.shared.unassign(self.partition).ok();
        if let Some(last) = last {
            self.events.blocking_send(last).ok();
        }
    }

    fn turn(&mut self) -> Result<(), End> {
        let wait = if self.batch.is_empty() { IDLE } else { LINGER };
        if !self.queue.poll(wait) {
            return if self.batch.is_empty() { self.idle() } else { self.flush() };
        }
        self.accept()?;
        if self.batch.age() >= AGE_MAX { self.flush() } else { Ok(()) }
    }

    fn accept(&mut self) -> Result<(), End> {
        while let Some(taken) = self.take() {
            match taken {
                Taken::Record if self.batch.is_full() => self.flush()?,
                Taken::Record => {}
                Taken::Bound { at } => {
                    self.flush()?;
                    return Err(self.complete(at));
                }
                Taken::EndOfPartition { at } => self.end_of_partition(at)?,
                Taken::Malformed(error) => {
                    self.flush()?;
                    return Err(End::Failed(error));
                }
                Taken::Trouble(code) => self.trouble(code)?,
            }
        }
        Ok(())
    }

    #[inline]
    fn take(&mut self) -> Option<Taken> {
        let message = self.queue.next()?;
        Some(self.batch.take(&message))
    }

    /// Everything before `at` was delivered, also what nobody ever sees.
    fn end_of_partition(&mut self, at: i64) -> Result<(), End> {
        self.batch.pass(at);
        match self.until {
            Some(until) if at >= until => {
                self.batch.cut(until);
                self.flush()?;
                return Err(self.complete(until));
            }
            Some(_) => {
                self.short_since.get_or_insert_with(Instant::now);
            }
            None => {}
        }
        if !self.batch.is_empty() {
            return self.flush();
        }
        let next = self.batch.next();
        if next > self.told {
            self.send(ReadEvent::Progress { next: position_of(next) })?;
            self.told = next;
        }
        Ok(())
    }

    fn complete(&self, at: i64) -> End {
        match self.confirm() {
            Ok(()) => End::Complete { at },
            Err(end) => end,
        }
    }

    fn flush(&mut self) -> Result<(), End> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.told = self.batch.next();
        let rows = self.batch.finish();
        self.send(ReadEvent::Rows(rows))
    }

    fn send(&self, event: ReadEvent) -> Result<(), End> {
        self.confirm()?;
        self.events.blocking_send(Ok(event)).map_err(|_| End::Abandoned)
    }

    /// Makes sure that what was fetched until now came from the pinned topic. Waits while the cluster is
    /// silent, but not for ever.
    fn confirm(&self) -> Result<(), End> {
        loop {
            match self.shared.sentinel.confirm(&self.shared.questions, RECENT) {
                Ok(()) => return Ok(()),
                Err(error) if !error.is_transient() => return Err(End::Failed(error)),
                Err(_) => self.listened_to()?,
            }
            std::thread::park_timeout(IDLE);
        }
    }

    fn listened_to(&self) -> Result<(), End> {
        if self.events.is_closed() {
            return Err(End::Abandoned);
        }
        match self.shared.sentinel.trouble() {
            Some(error) => Err(End::Failed(error)),
            None => Ok(()),
        }
    }

    fn idle(&mut self) -> Result<(), End> {
        self.listened_to()?;
        let (Some(until), Some(since)) = (self.until, self.short_since) else { return Ok(()) };
        if since.elapsed() < SHORT_DOUBT {
            return Ok(());
        }
        self.short_since = None;
        match self.log_end() {
            Ok(end) if end < until => Err(End::Failed(self.truncated(until, end))),
            // An open transaction, or a broker that lags: wait on.
            Ok(_) => {
                self.short_since = Some(Instant::now());
                Ok(())
            }
            Err(error) => Err(End::Failed(error)),
        }
    }

    /// An error in the place of a record.
    fn trouble(&mut self, code: Code) -> Result<(), End> {
        match code {
            Code::AutoOffsetReset | Code::OffsetOutOfRange => {
                self.flush()?;
                self.out_of_range()
            }
            Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::UnknownPartition => {
                match self.shared.sentinel.confirm(&self.shared.questions, Duration::ZERO) {
                    Err(error) if !error.is_transient() => Err(End::Failed(error)),
                    _ => Ok(()),
                }
            }
            code => match self.shared.link.failure(code) {
                // librdkafka tries again by itself.
                error if error.is_transient() => Ok(()),
                error => Err(End::Failed(error)),
            },
        }
    }

    /// The broker has nothing at our position: says what became of it, or asks again if it has by now.
    fn out_of_range(&mut self) -> Result<(), End> {
        self.confirm()?;
        let next = self.batch.next();
        let first =
            self.shared.questions.edges(&[self.partition], Ask::First).map_err(End::Failed)?;
        let first = first[&self.partition];
        if next < first {
            return Err(End::Failed(ConnectError::Expired {
                what: self.shared.link.what(),
                split: split_of(self.partition),
                position: position_of(next),
                available: position_of(first),
            }));
        }
        let end = self.log_end().map_err(End::Failed)?;
        if next > end {
            return Err(End::Failed(self.truncated(next, end)));
        }
        self.shared.unassign(self.partition).map_err(End::Failed)?;
        self.shared.assign(self.partition, next).map_err(End::Failed)
    }

    fn truncated(&self, position: i64, end: i64) -> ConnectError {
        ConnectError::Truncated {
            what: self.shared.link.what(),
            split: split_of(self.partition),
            position: position_of(position),
            end: position_of(end),
        }
    }

    /// The end of the log, with what is not committed yet.
    fn log_end(&self) -> Result<i64, ConnectError> {
        let link = Link::new(&self.shared.settings, Purpose::UncommittedQuestions)?;
        Ok(link.edges(&[self.partition], Ask::End)?[&self.partition])
    }
}
