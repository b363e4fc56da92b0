//! What a test does to a NATS server: streams, messages, a look at what is left behind. The JetStream API is
//! JSON over request and reply.

use std::time::Duration;

use async_nats::{Client, ConnectOptions, HeaderMap, Subscriber};
use futures::StreamExt as _;
use serde_json::{Value, json};

/// Messages on their way at once.
const UNDER_WAY_MAX: usize = 512;
/// How long a stream may take to store a message.
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);

/// A client of one server.
#[derive(Clone)]
pub struct NatsClient {
    client: Client,
}

/// A message to be published.
#[derive(Clone, Debug, Default)]
pub struct Publish<'a> {
    pub subject: &'a str,
    pub payload: String,
    pub headers: &'a [(&'a str, &'a str)],
}

impl NatsClient {
    /// Connects to a server that may be just about to listen.
    ///
    /// # Panics
    /// If it does not let us in.
    pub async fn connect(url: &str, user: Option<(&str, &str)>) -> NatsClient {
        let options = ConnectOptions::new().connection_timeout(Duration::from_secs(10));
        let options = match user {
            Some((user, password)) => {
                options.user_and_password(user.to_owned(), password.to_owned())
            }
            None => options,
        };
        let client = options.retry_on_initial_connect().connect(url).await;
        NatsClient { client: client.expect("the address is valid") }
    }

    /// Creates a stream of these subjects; `more` holds further members of its configuration.
    ///
    /// # Panics
    /// If the server refuses.
    pub async fn create_stream(&self, name: &str, subjects: &[&str], more: Value) {
        let mut config = json!({
            "name": name, "subjects": subjects, "storage": "file", "retention": "limits",
            "num_replicas": 1, "duplicate_window": 0,
        });
        let more = more.as_object().cloned().unwrap_or_default();
        config.as_object_mut().expect("made as an object").extend(more);
        self.api(&format!("STREAM.CREATE.{name}"), &config).await;
    }

    pub async fn delete_stream(&self, name: &str) {
        self.api(&format!("STREAM.DELETE.{name}"), &json!({})).await;
    }

    /// Removes everything; `more` may say `filter`, `seq` or `keep`.
    pub async fn purge(&self, name: &str, more: Value) {
        self.api(&format!("STREAM.PURGE.{name}"), &more).await;
    }

    pub async fn delete_message(&self, name: &str, sequence: u64) {
        self.api(&format!("STREAM.MSG.DELETE.{name}"), &json!({ "seq": sequence })).await;
    }

    /// How many consumers the stream has: what readers have left behind.
    ///
    /// # Panics
    /// If there is no such stream.
    pub async fn consumers(&self, name: &str) -> u64 {
        let info = self.api(&format!("STREAM.INFO.{name}"), &json!({})).await;
        info["state"]["consumer_count"].as_u64().expect("the state counts consumers")
    }

    /// The time of a message, in milliseconds since 1970.
    ///
    /// # Panics
    /// If there is no such message.
    pub async fn time_ms(&self, name: &str, sequence: u64) -> i64 {
        let found = self.api(&format!("STREAM.MSG.GET.{name}"), &json!({ "seq": sequence })).await;
        let time = found["message"]["time"].as_str().expect("a message has a time");
        let time = chrono::DateTime::parse_from_rfc3339(time).expect("as RFC 3339 has it");
        time.timestamp_millis()
    }

    /// Publishes in this order, and waits until each message is stored.
    ///
    /// # Panics
    /// If a message is not stored.
    pub async fn publish_all<'a>(&self, messages: impl IntoIterator<Item = Publish<'a>>) {
        let inbox = self.client.new_inbox();
        let mut replies = self.client.subscribe(inbox.clone()).await.expect("the client runs");
        let mut under_way = 0;
        for message in messages {
            self.send(message, &inbox).await;
            under_way += 1;
            if under_way == UNDER_WAY_MAX {
                stored(&mut replies, under_way / 2).await;
                under_way -= under_way / 2;
            }
        }
        stored(&mut replies, under_way).await;
    }

    async fn send(&self, message: Publish<'_>, inbox: &str) {
        let mut headers = HeaderMap::new();
        for (name, value) in message.headers {
            headers.append(*name, *value);
        }
        let (subject, reply) = (message.subject.to_owned(), inbox.to_owned());
        let payload = message.payload.into();
        let sent = if headers.is_empty() {
            self.client.publish_with_reply(subject, reply, payload).await
        } else {
            self.client.publish_with_reply_and_headers(subject, reply, headers, payload).await
        };
        sent.expect("the client runs");
    }

    /// A request of the JetStream API.
    ///
    /// # Panics
    /// If the server answers with an error.
    pub async fn api(&self, what: &str, request: &Value) -> Value {
        let subject = format!("$JS.API.{what}");
        let reply = self.client.request(subject, request.to_string().into()).await;
        let reply = reply.unwrap_or_else(|error| panic!("{what}: {error}"));
        let answer: Value = serde_json::from_slice(&reply.payload).expect("the answer is JSON");
        assert!(answer["error"].is_null(), "{what}: {answer}");
        answer
    }
}

/// Waits until `count` messages are stored.
async fn stored(replies: &mut Subscriber, count: usize) {
    for _ in 0..count {
        let reply = tokio::time::timeout(ANSWER_DEADLINE, replies.next()).await;
        let reply = reply.expect("the stream answers").expect("the client runs");
        assert!(reply.status.is_none(), "no stream has the subject: {:?}", reply.status);
        let stored: Value = serde_json::from_slice(&reply.payload).expect("the answer is JSON");
        assert!(stored["error"].is_null(), "{stored}");
    }
}
