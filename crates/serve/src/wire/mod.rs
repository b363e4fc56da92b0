//! The wire: one client's socket with its input and output buffers, and the few messages that carry text.
//!
//! The messages themselves are pgwire's codecs; the loop that reads and answers them is ours
//! (`connection`), because a statement must be able to send notices, be cancelled and notice a vanished
//! client while it runs.
//! Invariant: the output buffer is flushed before the connection waits for the client.

mod cancel;
mod response;

use std::io;

use bytes::BytesMut;
use pgwire::error::PgWireError;
use pgwire::messages::{
    DecodeContext, PgWireBackendMessage, PgWireFrontendMessage, ProtocolVersion,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) use cancel::{CancelRegistry, Registration};
pub(crate) use response::{Severity, error_response, notice_response};

/// Rows are handed to the socket in pieces of about this size.
const FLUSH_BYTES: usize = 64 * 1024;
/// A client that sends more than this ahead of the answers is not read any further.
const AHEAD_BYTES_MAX: usize = 1024 * 1024;

/// Why a connection ended without the client's farewell.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    /// The client is gone.
    #[error("connection lost: {0}")]
    Io(#[from] io::Error),
    /// The client sent what is not the protocol.
    #[error("{0}")]
    Protocol(String),
}

impl From<PgWireError> for WireError {
    fn from(error: PgWireError) -> WireError {
        match error {
            PgWireError::IoError(error) => WireError::Io(error),
            other => WireError::Protocol(other.to_string()),
        }
    }
}

/// A client's socket.
pub(crate) struct Wire {
    stream: TcpStream,
    input: BytesMut,
    output: BytesMut,
    context: DecodeContext,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Wire {
        Wire {
            stream,
            input: BytesMut::with_capacity(8 * 1024),
            output: BytesMut::with_capacity(8 * 1024),
            context: DecodeContext::new(ProtocolVersion::PROTOCOL3_0),
        }
    }

    /// From now on the next message is the startup packet (or a cancel request) and no longer SSLRequest.
    pub(crate) fn expect_startup(&mut self) {
        self.context.awaiting_frontend_ssl = false;
    }

    /// From now on messages carry their type byte.
    pub(crate) fn expect_messages(&mut self) {
        self.context.awaiting_frontend_ssl = false;
        self.context.awaiting_frontend_startup = false;
    }

    /// The next message that has arrived already.
    pub(crate) fn arrived(&mut self) -> Result<Option<PgWireFrontendMessage>, WireError> {
        Ok(PgWireFrontendMessage::decode(&mut self.input, &self.context)?)
    }

    /// The next message; `None` when the client has closed. Cancel-safe: a dropped future loses no byte.
    pub(crate) async fn read(&mut self) -> Result<Option<PgWireFrontendMessage>, WireError> {
        loop {
            if let Some(message) = PgWireFrontendMessage::decode(&mut self.input, &self.context)? {
                return Ok(Some(message));
            }
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Ends when the client has closed its side. What it sends ahead is kept for [`Wire::read`].
    pub(crate) async fn closed(&mut self) {
        while self.input.len() < AHEAD_BYTES_MAX {
            match self.stream.read_buf(&mut self.input).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        std::future::pending::<()>().await;
    }

    /// Puts a message into the output buffer.
    pub(crate) fn push(&mut self, message: &PgWireBackendMessage) -> Result<(), WireError> {
        Ok(message.encode(&mut self.output)?)
    }

    /// The output buffer, for rows, which are encoded in place.
    pub(crate) fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// Sends what is buffered.
    pub(crate) async fn flush(&mut self) -> Result<(), WireError> {
        if !self.output.is_empty() {
            self.stream.write_all(&self.output).await?;
            self.output.clear();
        }
        Ok(())
    }

    /// Sends what is buffered once it is worth a system call.
    pub(crate) async fn flush_if_full(&mut self) -> Result<(), WireError> {
        if self.output.len() >= FLUSH_BYTES { self.flush().await } else { Ok(()) }
    }

    /// Sends what is buffered and closes.
    pub(crate) async fn close(&mut self) {
        if self.flush().await.is_ok() {
            // The peer may be gone already; then there is nobody to tell.
            let _ = self.stream.shutdown().await;
        }
    }
}
