//! The commands of Pulsar's binary protocol that are used here, by their published field numbers.

/// One command of either side; the field that belongs to `kind` is set.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BaseCommand {
    #[prost(int32, required, tag = "1")]
    pub(crate) kind: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) connect: Option<Connect>,
    #[prost(message, optional, tag = "3")]
    pub(crate) connected: Option<Connected>,
    #[prost(message, optional, tag = "4")]
    pub(crate) subscribe: Option<Subscribe>,
    #[prost(message, optional, tag = "9")]
    pub(crate) message: Option<Delivery>,
    #[prost(message, optional, tag = "10")]
    pub(crate) ack: Option<Ack>,
    #[prost(message, optional, tag = "11")]
    pub(crate) flow: Option<Flow>,
    #[prost(message, optional, tag = "12")]
    pub(crate) unsubscribe: Option<OfConsumer>,
    #[prost(message, optional, tag = "13")]
    pub(crate) success: Option<Success>,
    #[prost(message, optional, tag = "14")]
    pub(crate) error: Option<Refusal>,
    #[prost(message, optional, tag = "16")]
    pub(crate) close_consumer: Option<OfConsumer>,
    #[prost(message, optional, tag = "18")]
    pub(crate) ping: Option<Empty>,
    #[prost(message, optional, tag = "19")]
    pub(crate) pong: Option<Empty>,
    #[prost(message, optional, tag = "21")]
    pub(crate) partitions: Option<OfTopic>,
    #[prost(message, optional, tag = "22")]
    pub(crate) partitions_response: Option<PartitionsResponse>,
    #[prost(message, optional, tag = "23")]
    pub(crate) lookup: Option<OfTopic>,
    #[prost(message, optional, tag = "24")]
    pub(crate) lookup_response: Option<LookupResponse>,
    #[prost(message, optional, tag = "28")]
    pub(crate) seek: Option<Seek>,
    #[prost(message, optional, tag = "29")]
    pub(crate) last_message: Option<OfConsumer>,
    #[prost(message, optional, tag = "30")]
    pub(crate) last_message_response: Option<LastMessageResponse>,
}

/// The values of [`BaseCommand::kind`].
pub(crate) mod kind {
    pub(crate) const CONNECT: i32 = 2;
    pub(crate) const SUBSCRIBE: i32 = 4;
    pub(crate) const ACK: i32 = 10;
    pub(crate) const FLOW: i32 = 11;
    pub(crate) const UNSUBSCRIBE: i32 = 12;
    pub(crate) const CLOSE_CONSUMER: i32 = 16;
    pub(crate) const PING: i32 = 18;
    pub(crate) const PONG: i32 = 19;
    pub(crate) const PARTITIONS: i32 = 21;
    pub(crate) const LOOKUP: i32 = 23;
    pub(crate) const REACHED_END: i32 = 27;
    pub(crate) const SEEK: i32 = 28;
    pub(crate) const LAST_MESSAGE: i32 = 29;
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Empty {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Connect {
    #[prost(string, required, tag = "1")]
    pub(crate) client_version: String,
    #[prost(int32, optional, tag = "4")]
    pub(crate) protocol_version: Option<i32>,
    /// The broker that a proxy is to connect to.
    #[prost(string, optional, tag = "6")]
    pub(crate) broker: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Connected {
    #[prost(string, required, tag = "1")]
    pub(crate) server_version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct MessageId {
    #[prost(uint64, required, tag = "1")]
    pub(crate) ledger: u64,
    #[prost(uint64, required, tag = "2")]
    pub(crate) entry: u64,
    #[prost(int32, optional, tag = "4")]
    pub(crate) batch_index: Option<i32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct KeyValue {
    #[prost(string, required, tag = "1")]
    pub(crate) key: String,
    #[prost(string, required, tag = "2")]
    pub(crate) value: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Subscribe {
    #[prost(string, required, tag = "1")]
    pub(crate) topic: String,
    #[prost(string, required, tag = "2")]
    pub(crate) subscription: String,
    /// 0 exclusive, 2 failover.
    #[prost(int32, required, tag = "3")]
    pub(crate) sub_type: i32,
    #[prost(uint64, required, tag = "4")]
    pub(crate) consumer: u64,
    #[prost(uint64, required, tag = "5")]
    pub(crate) request: u64,
    #[prost(bool, optional, tag = "8")]
    pub(crate) durable: Option<bool>,
    #[prost(message, optional, tag = "9")]
    pub(crate) start: Option<MessageId>,
    /// 0 latest, 1 earliest.
    #[prost(int32, optional, tag = "13")]
    pub(crate) initial_position: Option<i32>,
    #[prost(bool, optional, tag = "15")]
    pub(crate) create_topic: Option<bool>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Delivery {
    #[prost(uint64, required, tag = "1")]
    pub(crate) consumer: u64,
    #[prost(message, required, tag = "2")]
    pub(crate) id: MessageId,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Ack {
    #[prost(uint64, required, tag = "1")]
    pub(crate) consumer: u64,
    /// 1 cumulative.
    #[prost(int32, required, tag = "2")]
    pub(crate) ack_type: i32,
    #[prost(message, repeated, tag = "3")]
    pub(crate) ids: Vec<MessageId>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Flow {
    #[prost(uint64, required, tag = "1")]
    pub(crate) consumer: u64,
    #[prost(uint32, required, tag = "2")]
    pub(crate) permits: u32,
}

/// A request about a consumer.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OfConsumer {
    #[prost(uint64, required, tag = "1")]
    pub(crate) consumer: u64,
    #[prost(uint64, required, tag = "2")]
    pub(crate) request: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Success {
    #[prost(uint64, required, tag = "1")]
    pub(crate) request: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Refusal {
    #[prost(uint64, required, tag = "1")]
    pub(crate) request: u64,
    #[prost(int32, required, tag = "2")]
    pub(crate) error: i32,
    #[prost(string, required, tag = "3")]
    pub(crate) message: String,
}

/// A request about a topic.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OfTopic {
    #[prost(string, required, tag = "1")]
    pub(crate) topic: String,
    #[prost(uint64, required, tag = "2")]
    pub(crate) request: u64,
    /// Of a lookup: the broker that is asked has been named by another.
    #[prost(bool, optional, tag = "3")]
    pub(crate) authoritative: Option<bool>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PartitionsResponse {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) partitions: Option<u32>,
    #[prost(uint64, required, tag = "2")]
    pub(crate) request: u64,
    #[prost(int32, optional, tag = "4")]
    pub(crate) error: Option<i32>,
    #[prost(string, optional, tag = "5")]
    pub(crate) message: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct LookupResponse {
    #[prost(string, optional, tag = "1")]
    pub(crate) broker: Option<String>,
    /// 0 redirect, 1 connect, 2 failed.
    #[prost(int32, optional, tag = "3")]
    pub(crate) response: Option<i32>,
    #[prost(uint64, required, tag = "4")]
    pub(crate) request: u64,
    #[prost(bool, optional, tag = "5")]
    pub(crate) authoritative: Option<bool>,
    #[prost(int32, optional, tag = "6")]
    pub(crate) error: Option<i32>,
    #[prost(string, optional, tag = "7")]
    pub(crate) message: Option<String>,
    #[prost(bool, optional, tag = "8")]
    pub(crate) through_proxy: Option<bool>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Seek {
    #[prost(uint64, required, tag = "1")]
    pub(crate) consumer: u64,
    #[prost(uint64, required, tag = "2")]
    pub(crate) request: u64,
    #[prost(uint64, optional, tag = "4")]
    pub(crate) publish_time_ms: Option<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct LastMessageResponse {
    #[prost(message, required, tag = "1")]
    pub(crate) last: MessageId,
    #[prost(uint64, required, tag = "2")]
    pub(crate) request: u64,
    /// What lies before the consumer's first message.
    #[prost(message, optional, tag = "3")]
    pub(crate) mark_delete: Option<MessageId>,
}

/// What stands before an entry's payload.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct EntryMetadata {
    #[prost(uint64, required, tag = "3")]
    pub(crate) publish_time_ms: u64,
    #[prost(message, repeated, tag = "4")]
    pub(crate) properties: Vec<KeyValue>,
    #[prost(string, optional, tag = "6")]
    pub(crate) key: Option<String>,
    /// 0 none, 1 LZ4, 2 zlib, 3 zstd, 4 snappy.
    #[prost(int32, optional, tag = "8")]
    pub(crate) compression: Option<i32>,
    #[prost(uint32, optional, tag = "9")]
    pub(crate) uncompressed_size: Option<u32>,
    /// Set in a batch, also in one of a single message.
    #[prost(int32, optional, tag = "11")]
    pub(crate) batch_len: Option<i32>,
    #[prost(uint64, optional, tag = "12")]
    pub(crate) event_time_ms: Option<u64>,
    #[prost(string, optional, tag = "14")]
    pub(crate) encryption: Option<String>,
    #[prost(bool, optional, tag = "17")]
    pub(crate) key_is_base64: Option<bool>,
    #[prost(bool, optional, tag = "25")]
    pub(crate) null_value: Option<bool>,
    #[prost(int32, optional, tag = "27")]
    pub(crate) chunks: Option<i32>,
}

/// What stands before each message of a batch.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BatchedMetadata {
    #[prost(message, repeated, tag = "1")]
    pub(crate) properties: Vec<KeyValue>,
    #[prost(string, optional, tag = "2")]
    pub(crate) key: Option<String>,
    #[prost(int32, required, tag = "3")]
    pub(crate) payload_len: i32,
    #[prost(bool, optional, tag = "4")]
    pub(crate) compacted_out: Option<bool>,
    #[prost(uint64, optional, tag = "5")]
    pub(crate) event_time_ms: Option<u64>,
    #[prost(bool, optional, tag = "6")]
    pub(crate) key_is_base64: Option<bool>,
    #[prost(bool, optional, tag = "9")]
    pub(crate) null_value: Option<bool>,
}
