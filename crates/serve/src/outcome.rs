//! What a statement gives back: a command tag, rows, or a turn of the COPY protocol.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::BytesMut;
use datafusion::common::DataFusionError;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use parking_lot::Mutex;
use segue_types::UserError;
use tokio_util::sync::CancellationToken;

use crate::encode::{Format, Rows, Style};
use crate::errors::{canceled, user_error};
use crate::statements::{CopyIn, CopyOut};

/// The result of a statement that has begun.
pub(crate) enum Outcome {
    /// It is done; the tag says what was done.
    Done(String),
    Rows(RowStream),
    CopyIn(Box<CopyIn>),
    CopyOut(CopyOut),
}

impl Outcome {
    /// A statement without rows.
    pub(crate) fn done(tag: impl Into<String>) -> Outcome {
        Outcome::Done(tag.into())
    }

    /// Rows that are all there.
    pub(crate) fn batch(verb: &'static str, batch: RecordBatch) -> Outcome {
        Outcome::Rows(RowStream::of_batch(verb, batch))
    }
}

/// Rows on their way to a client, batch by batch.
pub(crate) struct RowStream {
    pub(crate) schema: SchemaRef,
    /// Of the command tag: `SELECT`, `FETCH`, `SHOW`, `EXPLAIN`.
    verb: &'static str,
    /// In a lock only so that a session that keeps cursors can be shared; it is never contended.
    batches: Mutex<BoxStream<'static, Result<RecordBatch, UserError>>>,
    /// Where the text of the running batch stands; what comes before it has been sent.
    pending: Option<(RecordBatch, usize)>,
    sent: u64,
}

/// How a portion of rows ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Portion {
    /// There may be more.
    Suspended,
    Complete,
}

impl RowStream {
    /// The rows of a query; errors are told as errors of `text`.
    pub(crate) fn of_query(
        schema: SchemaRef,
        batches: BoxStream<'static, Result<RecordBatch, DataFusionError>>,
        text: Arc<str>,
    ) -> RowStream {
        let batches = batches.map(move |batch| batch.map_err(|error| user_error(&error, &text)));
        RowStream {
            schema,
            verb: "SELECT",
            batches: Mutex::new(batches.boxed()),
            pending: None,
            sent: 0,
        }
    }

    /// The same rows as those of another kind of statement.
    pub(crate) fn with_verb(self, verb: &'static str) -> RowStream {
        RowStream { verb, ..self }
    }

    /// Rows that are all there.
    pub(crate) fn of_batch(verb: &'static str, batch: RecordBatch) -> RowStream {
        let schema = batch.schema();
        let batches = Mutex::new(stream::once(async move { Ok(batch) }).boxed());
        RowStream { schema, verb, batches, pending: None, sent: 0 }
    }

    /// The next batch, unless the statement is cancelled first.
    pub(crate) async fn next(
        &mut self,
        cancel: &CancellationToken,
    ) -> Result<Option<RecordBatch>, UserError> {
        if let Some((batch, from)) = self.pending.take() {
            return Ok(Some(batch.slice(from, batch.num_rows() - from)));
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(canceled()),
            batch = self.batches.get_mut().next() => batch.transpose(),
        }
    }

    /// Takes up to `rows` rows as one batch, for FETCH; `None` takes all.
    pub(crate) async fn take(
        &mut self,
        rows: Option<usize>,
        cancel: &CancellationToken,
    ) -> Result<Vec<RecordBatch>, UserError> {
        let mut taken = Vec::new();
        let mut left = rows.unwrap_or(usize::MAX);
        while left > 0 {
            let Some(batch) = self.next(cancel).await? else { break };
            let count = batch.num_rows().min(left);
            if count < batch.num_rows() {
                self.pending = Some((batch.clone(), count));
            }
            left -= count;
            taken.push(batch.slice(0, count));
        }
        Ok(taken)
    }

    /// The tag of the whole, once it is complete.
    pub(crate) fn tag(&self) -> String {
        match self.verb {
            "SELECT" | "FETCH" | "INSERT 0" | "UPDATE" | "DELETE" => {
                format!("{} {}", self.verb, self.sent)
            }
            verb => verb.to_owned(),
        }
    }

    /// Encodes up to `rows_max` rows (0: all) of one batch into `out`; `None` at the end of the stream.
    pub(crate) async fn encode(
        &mut self,
        encoding: &Encoding<'_>,
        rows_max: usize,
        out: &mut BytesMut,
    ) -> Result<Option<usize>, UserError> {
        let Some(batch) = self.next(encoding.cancel).await? else { return Ok(None) };
        let rows = Rows::new(&batch, encoding.formats)?;
        let limit = if rows_max == 0 { usize::MAX } else { rows_max };
        let count = rows.count().min(limit).min(ROWS_PER_TURN);
        for row in 0..count {
            rows.write(row, encoding.style, out);
        }
        if count < rows.count() {
            self.pending = Some((batch, count));
        }
        self.sent += count as u64;
        Ok(Some(count))
    }
}

/// Rows that are encoded between two looks at the socket.
const ROWS_PER_TURN: usize = 1024;

/// How rows are to be written.
pub(crate) struct Encoding<'a> {
    pub(crate) formats: &'a [Format],
    pub(crate) style: &'a Style,
    pub(crate) cancel: &'a CancellationToken,
}
