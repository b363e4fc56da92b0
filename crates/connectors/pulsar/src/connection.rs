//! One connection to a broker, used by one task: commands go out, the answer to each is awaited, and messages that
//! come meanwhile wait in a queue.
//!
//! Frame: `length, length of command, command, [magic, checksum, length of metadata, metadata, payload]`.
//! Invariant: no more messages come than were asked for, so the queue has a bound; a frame has one too.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message as _;
use segue_connect::ConnectError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::settings::Settings;
use crate::wire::{BaseCommand, Connect, Empty, EntryMetadata, MessageId, OfTopic, kind};

/// How long a question may take.
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);
/// The version of the protocol that is spoken.
const PROTOCOL: i32 = 19;
const MAGIC: u16 = 0x0e01;
/// A message may have 5 MiB unless a broker was told otherwise.
const FRAME_BYTES_MAX: usize = 256 << 20;
const READ_BYTES: usize = 256 << 10;
/// How often a lookup may be sent on.
const HOPS_MAX: usize = 10;

/// Errors of the protocol that are told apart.
const AUTHENTICATION: i32 = 3;
const AUTHORIZATION: i32 = 4;
const TOPIC_NOT_FOUND: i32 = 11;
const METADATA: i32 = 1;
const UNSUPPORTED_VERSION: i32 = 10;
const TOPIC_TERMINATED: i32 = 15;
const INVALID_TOPIC_NAME: i32 = 17;
const INCOMPATIBLE_SCHEMA: i32 = 18;
const NOT_ALLOWED: i32 = 22;
/// What no other try will change. All else may pass: a broker that has just started gives several answers while it
/// recovers the ledgers that were open before.
const FINAL: &[i32] = &[
    AUTHENTICATION,
    AUTHORIZATION,
    UNSUPPORTED_VERSION,
    TOPIC_TERMINATED,
    INVALID_TOPIC_NAME,
    INCOMPATIBLE_SCHEMA,
    NOT_ALLOWED,
];

/// An entry of the log as it was delivered.
pub(crate) struct Entry {
    pub(crate) id: MessageId,
    pub(crate) metadata: EntryMetadata,
    pub(crate) payload: Bytes,
}

/// What a broker sends without being asked.
pub(crate) enum Sent {
    Entry(Entry),
    /// The broker has closed the consumer: the topic moves, or a seek was done.
    Closed,
    /// Nothing will be added to the topic any more.
    ReachedEnd,
}

pub(crate) struct Connection {
    stream: TcpStream,
    received: BytesMut,
    waiting: VecDeque<Sent>,
    last_request: u64,
    /// Where it goes to.
    address: String,
    system: String,
    what: String,
}

impl Connection {
    /// Connects to the broker that serves `topic`.
    pub(crate) async fn to_broker_of(
        settings: &Settings,
        topic: &str,
    ) -> Result<Connection, ConnectError> {
        let service = &settings.service.0;
        let mut connection = Connection::open(settings, service, None).await?;
        let mut authoritative = false;
        for _ in 0..HOPS_MAX {
            let found = connection.lookup(topic, authoritative).await?;
            let broker = found.broker.as_deref().and_then(crate::settings::Address::parse);
            let Some(broker) = broker else { return Err(connection.nonsense()) };
            authoritative = found.authoritative.unwrap_or(false);
            match (found.response, found.through_proxy) {
                (Some(1), Some(true)) => {
                    return Connection::open(settings, service, Some(broker.0)).await;
                }
                (Some(1), _) if broker.0 == connection.address => return Ok(connection),
                (Some(1), _) => return Connection::open(settings, &broker.0, None).await,
                (Some(0), _) => connection = Connection::open(settings, &broker.0, None).await?,
                _ => return Err(connection.nonsense()),
            }
        }
        Err(connection.unreachable("the brokers send each other's lookups around"))
    }

    /// Connects, in person or through a proxy.
    pub(crate) async fn open(
        settings: &Settings,
        address: &str,
        broker: Option<String>,
    ) -> Result<Connection, ConnectError> {
        let system = settings.system();
        let unreachable =
            |reason: String| ConnectError::Unreachable { system: system.clone(), reason };
        let stream = tokio::time::timeout(ANSWER_DEADLINE, TcpStream::connect(address)).await;
        let stream = stream
            .map_err(|_| unreachable("no answer in time".to_owned()))?
            .map_err(|error| unreachable(error.to_string()))?;
        stream.set_nodelay(true).ok();
        let mut connection = Connection {
            stream,
            received: BytesMut::with_capacity(READ_BYTES),
            waiting: VecDeque::new(),
            last_request: 0,
            address: address.to_owned(),
            system,
            what: settings.what(),
        };
        let connect = Connect {
            client_version: "segue".to_owned(),
            protocol_version: Some(PROTOCOL),
            broker: broker.map(|broker| format!("pulsar://{broker}")),
        };
        let command =
            BaseCommand { kind: kind::CONNECT, connect: Some(connect), ..BaseCommand::default() };
        connection.ask(command, |answer| answer.connected.clone()).await?;
        Ok(connection)
    }

    async fn lookup(
        &mut self,
        topic: &str,
        authoritative: bool,
    ) -> Result<crate::wire::LookupResponse, ConnectError> {
        let request = self.next_request();
        let lookup =
            OfTopic { topic: topic.to_owned(), request, authoritative: Some(authoritative) };
        let command =
            BaseCommand { kind: kind::LOOKUP, lookup: Some(lookup), ..BaseCommand::default() };
        let found = self.ask(command, |answer| answer.lookup_response.clone()).await?;
        match found.response {
            Some(0 | 1) => Ok(found),
            _ => Err(self.refusal(
                found.error.unwrap_or_default(),
                found.message.as_deref().unwrap_or_default(),
            )),
        }
    }

    /// How many partitions a topic has; 0 for one that is not partitioned.
    pub(crate) async fn partitions(&mut self, topic: &str) -> Result<u32, ConnectError> {
        let request = self.next_request();
        let of = OfTopic { topic: topic.to_owned(), request, authoritative: None };
        let command =
            BaseCommand { kind: kind::PARTITIONS, partitions: Some(of), ..BaseCommand::default() };
        let found = self.ask(command, |answer| answer.partitions_response.clone()).await?;
        match found.partitions {
            Some(partitions) if found.error.is_none() => Ok(partitions),
            _ => Err(self.refusal(
                found.error.unwrap_or_default(),
                found.message.as_deref().unwrap_or_default(),
            )),
        }
    }

    pub(crate) fn next_request(&mut self) -> u64 {
        self.last_request += 1;
        self.last_request
    }

    /// Sends a command and waits for the answer that `pick` finds. One question is under way at a time.
    pub(crate) async fn ask<T>(
        &mut self,
        command: BaseCommand,
        pick: impl Fn(&BaseCommand) -> Option<T>,
    ) -> Result<T, ConnectError> {
        let deadline = tokio::time::Instant::now() + ANSWER_DEADLINE;
        let answer = tokio::time::timeout_at(deadline, async {
            self.send(&command).await?;
            loop {
                let (answer, rest) = self.frame().await?;
                if let Some(error) = &answer.error {
                    return Err(self.refusal(error.error, &error.message));
                }
                if let Some(picked) = pick(&answer) {
                    return Ok(picked);
                }
                if let Some(sent) = self.sort(answer, rest)? {
                    self.waiting.push_back(sent);
                }
            }
        });
        answer.await.unwrap_or_else(|_| Err(self.unreachable("no answer in time")))
    }

    /// What the broker sends next. Cancel-safe: nothing is taken before it is whole.
    pub(crate) async fn next(&mut self) -> Result<Sent, ConnectError> {
        loop {
            if let Some(sent) = self.next_now()? {
                return Ok(sent);
            }
            self.fill().await?;
        }
    }

    /// What has come already.
    pub(crate) fn next_now(&mut self) -> Result<Option<Sent>, ConnectError> {
        if let Some(sent) = self.waiting.pop_front() {
            return Ok(Some(sent));
        }
        while let Some((command, rest)) = self.take_frame()? {
            if command.kind == kind::PING {
                self.pong()?;
            } else if let Some(sent) = self.sort(command, rest)? {
                return Ok(Some(sent));
            }
        }
        Ok(None)
    }

    /// Answers without waiting: should the socket be full, the broker asks again.
    fn pong(&self) -> Result<(), ConnectError> {
        let pong = BaseCommand { kind: kind::PONG, pong: Some(Empty {}), ..BaseCommand::default() };
        let frame = encoded(&pong);
        match self.stream.try_write(&frame) {
            Ok(sent) if sent < frame.len() => Err(self.unreachable("the connection is stuck")),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn sort(&self, command: BaseCommand, rest: Bytes) -> Result<Option<Sent>, ConnectError> {
        if let Some(delivery) = command.message {
            let (metadata, payload) = self.entry(rest)?;
            return Ok(Some(Sent::Entry(Entry { id: delivery.id, metadata, payload })));
        }
        Ok(match command.kind {
            kind::CLOSE_CONSUMER => Some(Sent::Closed),
            kind::REACHED_END => Some(Sent::ReachedEnd),
            _ => None,
        })
    }

    fn entry(&self, mut rest: Bytes) -> Result<(EntryMetadata, Bytes), ConnectError> {
        if rest.len() >= 6 && rest[..2] == MAGIC.to_be_bytes() {
            rest.advance(6);
        }
        if rest.len() < 4 {
            return Err(self.nonsense());
        }
        let len = rest.get_u32() as usize;
        if rest.len() < len {
            return Err(self.nonsense());
        }
        let metadata = EntryMetadata::decode(rest.split_to(len));
        Ok((metadata.map_err(|_| self.nonsense())?, rest))
    }

    pub(crate) async fn send(&mut self, command: &BaseCommand) -> Result<(), ConnectError> {
        let sent = self.stream.write_all(&encoded(command)).await;
        sent.map_err(|error| self.unreachable(&error.to_string()))
    }

    async fn frame(&mut self) -> Result<(BaseCommand, Bytes), ConnectError> {
        loop {
            match self.take_frame()? {
                Some((command, _)) if command.kind == kind::PING => self.pong()?,
                Some(frame) => return Ok(frame),
                None => self.fill().await?,
            }
        }
    }

    fn take_frame(&mut self) -> Result<Option<(BaseCommand, Bytes)>, ConnectError> {
        let Some(header) = self.received.first_chunk::<4>() else { return Ok(None) };
        let len = u32::from_be_bytes(*header) as usize;
        if !(4..=FRAME_BYTES_MAX).contains(&len) {
            return Err(self.nonsense());
        }
        if self.received.len() < 4 + len {
            self.received.reserve(4 + len - self.received.len());
            return Ok(None);
        }
        let mut frame = self.received.split_to(4 + len).freeze();
        frame.advance(4);
        let command_len = frame.get_u32() as usize;
        if frame.len() < command_len {
            return Err(self.nonsense());
        }
        let command = BaseCommand::decode(frame.split_to(command_len));
        Ok(Some((command.map_err(|_| self.nonsense())?, frame)))
    }

    async fn fill(&mut self) -> Result<(), ConnectError> {
        self.received.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.received).await {
            Ok(0) => Err(self.unreachable("the broker closed the connection")),
            Ok(_) => Ok(()),
            Err(error) => Err(self.unreachable(&error.to_string())),
        }
    }

    pub(crate) fn unreachable(&self, reason: &str) -> ConnectError {
        ConnectError::Unreachable { system: self.system.clone(), reason: reason.to_owned() }
    }

    fn nonsense(&self) -> ConnectError {
        ConnectError::Unsupported(format!("{} gave an unknown answer", self.system))
    }

    fn refusal(&self, error: i32, message: &str) -> ConnectError {
        let (system, reason) = (self.system.clone(), first_line(message));
        match error {
            TOPIC_NOT_FOUND => ConnectError::Missing { what: self.what.clone() },
            METADATA if reason.contains("does not exist") || reason.contains("not found") => {
                ConnectError::Missing { what: self.what.clone() }
            }
            error if FINAL.contains(&error) => ConnectError::Denied { system, reason },
            _ => ConnectError::Unreachable { system, reason },
        }
    }
}

fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().to_owned()
}

fn encoded(command: &BaseCommand) -> Bytes {
    let len = command.encoded_len();
    let short = |len: usize| u32::try_from(len).expect("commands are short");
    let mut frame = BytesMut::with_capacity(8 + len);
    frame.put_u32(short(len + 4));
    frame.put_u32(short(len));
    command.encode(&mut frame).expect("the buffer grows");
    frame.freeze()
}
