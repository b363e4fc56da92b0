//! A client of one server or cluster, and the questions that are put to it. Every call ends within a deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event};
use chrono::{DateTime, SecondsFormat, Utc};
use segue_connect::ConnectError;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::{Answer, ApiError, ConsumerInfo, StoredMessage, StreamInfo, StreamNames};
use crate::settings::Settings;

/// How long a question may take.
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);
/// How long the farewell to a consumer may take.
const FAREWELL_DEADLINE: Duration = Duration::from_secs(2);
/// How long a lost connection is left alone before it is made again.
const RECONNECT_MAX: Duration = Duration::from_millis(500);
/// How long the server keeps a consumer that asks for nothing, should nobody be left to delete it.
pub(crate) const CONSUMER_KEPT: Duration = Duration::from_secs(30);

/// A client of the stream's server.
pub(crate) struct Link {
    pub(crate) client: Client,
    pub(crate) settings: Settings,
    /// How often the connection has been lost.
    losses: Arc<AtomicU64>,
}

impl Link {
    pub(crate) async fn connect(settings: Settings) -> Result<Link, ConnectError> {
        let losses = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&losses);
        let mut options = ConnectOptions::new()
            .name("segue")
            .connection_timeout(ANSWER_DEADLINE)
            .request_timeout(Some(ANSWER_DEADLINE))
            .reconnect_delay_callback(|attempts| {
                let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
                Duration::from_millis(20).saturating_mul(attempts).min(RECONNECT_MAX)
            })
            .event_callback(move |event| {
                if matches!(event, Event::Disconnected) {
                    counted.fetch_add(1, Ordering::Release);
                }
                tracing::debug!(%event, "nats");
                async {}
            });
        if let Some(login) = &settings.login {
            options = options.user_and_password(login.user.clone(), login.password.clone());
        }
        let connected = options.connect(settings.servers.as_slice()).await;
        match connected {
            Ok(client) => Ok(Link { client, settings, losses }),
            Err(error) => {
                let (system, reason) = (settings.system(), error.to_string());
                Err(match error.kind() {
                    ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                        ConnectError::Denied { system, reason }
                    }
                    _ => ConnectError::Unreachable { system, reason },
                })
            }
        }
    }

    /// Changes whenever messages may have been lost on their way.
    pub(crate) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Acquire)
    }

    /// The name of the stream: as given, or the one that has the subjects.
    pub(crate) async fn stream_name(&self) -> Result<String, ConnectError> {
        if let Some(stream) = &self.settings.stream {
            return Ok(stream.clone());
        }
        let mut names: Vec<String> = Vec::new();
        for subject in self.settings.subjects.names() {
            let found: StreamNames =
                self.ask("STREAM.NAMES", &json!({ "subject": subject }), "").await?;
            names.extend(found.streams.unwrap_or_default());
        }
        names.sort();
        names.dedup();
        let subjects = self.settings.subjects.names().join(", ");
        match names.as_slice() {
            [one] => Ok(one.clone()),
            [] => {
                Err(ConnectError::Missing { what: format!("a stream with subject \"{subjects}\"") })
            }
            several => Err(ConnectError::Unsupported(format!(
                "several streams have subject \"{subjects}\": {}; name one with the option \"stream\"",
                several.join(", ")
            ))),
        }
    }

    pub(crate) async fn stream(&self, name: &str) -> Result<StreamInfo, ConnectError> {
        self.ask(&format!("STREAM.INFO.{name}"), &json!({}), name).await
    }

    /// The sequence of the first message at or after `from` that a reader of our subjects sees.
    pub(crate) async fn next_message(
        &self,
        name: &str,
        from: u64,
    ) -> Result<Option<u64>, ConnectError> {
        let mut first: Option<u64> = None;
        for subject in self.settings.subjects.names() {
            let request = json!({ "seq": from, "next_by_subj": subject });
            let answer = self.request(&format!("STREAM.MSG.GET.{name}"), &request).await?;
            let answer: Answer<StoredMessage> = self.parse(&answer)?;
            match answer {
                Answer { error: Some(error), .. } if error.err_code == ApiError::NO_MESSAGE => {}
                Answer { error: Some(error), .. } => return Err(self.refusal(&error, name)),
                Answer { body: Some(found), .. } => {
                    first = Some(first.map_or(found.message.seq, |at| at.min(found.message.seq)));
                }
                Answer { .. } => return Err(self.nonsense()),
            }
        }
        Ok(first)
    }

    /// The first sequence whose message is at least as young as `unix_ms`; the end where there is none. The
    /// server works it out for a consumer, which is made for this question alone.
    pub(crate) async fn sequence_at(&self, name: &str, unix_ms: i64) -> Result<u64, ConnectError> {
        let config = json!({
            "deliver_policy": "by_start_time", "opt_start_time": rfc3339(unix_ms),
            "ack_policy": "none", "mem_storage": true, "num_replicas": 1,
            "inactive_threshold": nanoseconds(CONSUMER_KEPT),
        });
        let consumer = self.create_consumer(name, &config).await?;
        self.delete_consumer(name, &consumer.name).await;
        Ok(consumer.delivered.stream_seq + 1)
    }

    pub(crate) async fn create_consumer(
        &self,
        stream: &str,
        config: &Value,
    ) -> Result<ConsumerInfo, ConnectError> {
        let name = self.client.new_inbox().replace('.', "-");
        let mut config = config.clone();
        config["name"] = name.clone().into();
        let request = json!({ "stream_name": stream, "config": config, "action": "create" });
        self.ask(&format!("CONSUMER.CREATE.{stream}.{name}"), &request, stream).await
    }

    /// Deletes a consumer; should that fail, the server does it after [`CONSUMER_KEPT`].
    pub(crate) async fn delete_consumer(&self, stream: &str, consumer: &str) {
        let subject = format!("CONSUMER.DELETE.{stream}.{consumer}");
        let request = json!({});
        let request = self.request(&subject, &request);
        if tokio::time::timeout(FAREWELL_DEADLINE, request).await.is_err() {
            tracing::debug!(stream, consumer, "the consumer is left to its end");
        }
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        what: &str,
        request: &Value,
        stream: &str,
    ) -> Result<T, ConnectError> {
        let answer: Answer<T> = self.parse(&self.request(what, request).await?)?;
        match answer {
            Answer { error: Some(error), .. } => Err(self.refusal(&error, stream)),
            Answer { body: Some(body), .. } => Ok(body),
            Answer { .. } => Err(self.nonsense()),
        }
    }

    async fn request(&self, what: &str, request: &Value) -> Result<bytes::Bytes, ConnectError> {
        let subject = format!("$JS.API.{what}");
        let answer = self.client.request(subject, request.to_string().into()).await;
        let answer = answer.map_err(|error| {
            let system = self.settings.system();
            let reason = match error.kind() {
                RequestErrorKind::TimedOut => "no answer in time".to_owned(),
                RequestErrorKind::NoResponders => "JetStream does not answer".to_owned(),
                _ => error.to_string(),
            };
            ConnectError::Unreachable { system, reason }
        })?;
        Ok(answer.payload)
    }

    fn parse<T: DeserializeOwned>(&self, answer: &[u8]) -> Result<T, ConnectError> {
        serde_json::from_slice(answer).map_err(|_| self.nonsense())
    }

    fn nonsense(&self) -> ConnectError {
        ConnectError::Unsupported(format!("{} gave an unknown answer", self.settings.system()))
    }

    fn refusal(&self, error: &ApiError, stream: &str) -> ConnectError {
        let (system, reason) = (self.settings.system(), error.description.clone());
        match error {
            ApiError { err_code: ApiError::NO_STREAM, .. } => {
                ConnectError::Missing { what: what(stream) }
            }
            ApiError { code: 503, .. } => ConnectError::Unreachable { system, reason },
            _ => ConnectError::Denied { system, reason },
        }
    }
}

/// A stream, for errors.
pub(crate) fn what(stream: &str) -> String {
    format!("stream \"{stream}\"")
}

pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("short durations")
}

/// Milliseconds since 1970 as the API takes a time. Streams are younger than 1970.
fn rfc3339(unix_ms: i64) -> String {
    let time = DateTime::from_timestamp_millis(unix_ms.max(0)).unwrap_or(DateTime::<Utc>::MAX_UTC);
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}
