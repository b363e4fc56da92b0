//! The answers of JetStream's API that are read here: JSON over request and reply.

use serde::Deserialize;

/// An answer, or the error in its place.
#[derive(Debug, Deserialize)]
pub(crate) struct Answer<T> {
    pub(crate) error: Option<ApiError>,
    #[serde(flatten)]
    pub(crate) body: Option<T>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ApiError {
    pub(crate) code: u16,
    #[serde(default)]
    pub(crate) err_code: u16,
    #[serde(default)]
    pub(crate) description: String,
}

impl ApiError {
    pub(crate) const NO_MESSAGE: u16 = 10037;
    pub(crate) const NO_STREAM: u16 = 10059;
}

#[derive(Debug, Deserialize)]
pub(crate) struct StreamNames {
    #[serde(default)]
    pub(crate) streams: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct StreamInfo {
    pub(crate) config: StreamConfig,
    /// When the stream was made, as the server writes it.
    pub(crate) created: String,
    pub(crate) state: StreamState,
}

#[derive(Debug, Deserialize)]
pub(crate) struct StreamConfig {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) retention: String,
    #[serde(default)]
    max_msgs: i64,
    #[serde(default)]
    max_bytes: i64,
    #[serde(default)]
    max_age: i64,
    #[serde(default)]
    max_msgs_per_subject: i64,
}

impl StreamConfig {
    /// Whether messages go only because newer ones of their subject replace them: compaction, not retention.
    pub(crate) fn only_compacts(&self) -> bool {
        let unlimited = self.max_msgs <= 0 && self.max_bytes <= 0 && self.max_age <= 0;
        unlimited && self.max_msgs_per_subject > 0
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct StreamState {
    first_seq: u64,
    last_seq: u64,
}

impl StreamState {
    /// The first sequence that may still be there.
    pub(crate) fn first(&self) -> u64 {
        self.first_seq.max(1)
    }

    /// The sequence that the next message will have.
    pub(crate) fn end(&self) -> u64 {
        self.last_seq + 1
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct StoredMessage {
    pub(crate) message: StoredSequence,
}

#[derive(Debug, Deserialize)]
pub(crate) struct StoredSequence {
    pub(crate) seq: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ConsumerInfo {
    pub(crate) name: String,
    pub(crate) delivered: Delivered,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Delivered {
    pub(crate) stream_seq: u64,
}

#[cfg(test)]
mod tests {
    use super::{Answer, StreamInfo, StreamNames};

    #[test]
    fn an_answer_is_told_from_an_error() {
        let text = r#"{"type":"x","error":{"code":404,"err_code":10059,"description":"no"}}"#;
        let answer: Answer<StreamInfo> = serde_json::from_str(text).expect("an answer");
        assert!(answer.body.is_none());
        assert_eq!(answer.error.expect("an error").err_code, 10059);
        let text = r#"{"config":{"name":"S","retention":"limits","max_msgs":-1,"max_bytes":-1,
            "max_age":0,"max_msgs_per_subject":1},"created":"c","state":{"first_seq":0,"last_seq":0}}"#;
        let answer: Answer<StreamInfo> = serde_json::from_str(text).expect("an answer");
        let info = answer.body.expect("no error");
        assert!(info.config.only_compacts());
        assert_eq!((info.state.first(), info.state.end()), (1, 1));
        let answer: Answer<StreamNames> =
            serde_json::from_str(r#"{"total":0,"streams":null}"#).expect("an answer");
        assert!(answer.body.expect("no error").streams.is_none());
    }
}
