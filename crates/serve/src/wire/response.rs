//! ErrorResponse and NoticeResponse from a [`UserError`] or a notice's text.

use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::{ErrorResponse, NoticeResponse};
use segue_types::UserError;

/// How bad an error is for its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The statement fails.
    Error,
    /// The connection ends.
    Fatal,
}

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
        }
    }
}

/// The message that tells the client of an error.
pub(crate) fn error_response(severity: Severity, error: &UserError) -> PgWireBackendMessage {
    let mut fields = vec![
        (b'S', severity.as_str().to_owned()),
        (b'V', severity.as_str().to_owned()),
        (b'C', error.state.to_string()),
        (b'M', error.message.clone()),
    ];
    fields.extend(error.detail.clone().map(|detail| (b'D', detail)));
    fields.extend(error.hint.clone().map(|hint| (b'H', hint)));
    fields.extend(error.offset.map(|offset| (b'P', offset.to_string())));
    PgWireBackendMessage::ErrorResponse(ErrorResponse::new(fields))
}

/// The message that tells the client of something that is not an error.
pub(crate) fn notice_response(text: String) -> PgWireBackendMessage {
    PgWireBackendMessage::NoticeResponse(NoticeResponse::new(vec![
        (b'S', "NOTICE".to_owned()),
        (b'V', "NOTICE".to_owned()),
        (b'C', "00000".to_owned()),
        (b'M', text),
    ]))
}
