//! One capture attempt: one snapshot, the handoff query and the rows from it, or an error for the whole.
//!
//! Invariant: the stream ends without an error only after the trailer of COPY and a successful COMMIT.

use std::collections::HashSet;
use std::pin::Pin;

use arrow::array::RecordBatch;
use futures::stream::{BoxStream, StreamExt, TryStreamExt, once, try_unfold};
use segue_connect::{Capture, ConnectError, ReadConfig, ReadDefinition};
use segue_types::{Position, SplitId, SqlState, UserError};
use tokio_postgres::CopyOutStream;

use crate::decode::Decoder;
use crate::error::Asked;
use crate::options::Settings;
use crate::plan::{Plan, prepared};
use crate::query::as_relation;
use crate::session::Session;

/// The first statement after it takes the snapshot; all others of the transaction share it.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// A successor has at most so many splits.
const SPLITS_MAX: usize = 100_000;

/// Starts the attempt: everything up to the first byte of the rows.
pub(crate) async fn start(
    settings: &Settings,
    config: &ReadConfig,
    definition: &ReadDefinition,
    handoff_query: Option<&str>,
) -> Result<Capture, ConnectError> {
    let mut session = Session::open(settings).await?;
    session.execute(BEGIN, Asked::Connection).await?;
    check_identity(&mut session, definition).await?;
    let handoff = match handoff_query {
        Some(query) => Some(handoff(&mut session, query).await?),
        None => None,
    };
    let plan = Plan::of(&mut session, &settings.query, config).await?;
    check_plan(&plan, settings, definition)?;
    let select = plan.select(&settings.query);
    let rows_estimated = estimate(&mut session, &select).await?;
    let decoder = Decoder::new(config, &plan).map_err(ConnectError::Config)?;
    let waiting = Waiting { session, select, decoder };
    let batches = once(waiting.run()).try_flatten().boxed();
    Ok(Capture { handoff, batches, rows_estimated })
}

pub(crate) async fn check_identity(
    session: &mut Session,
    definition: &ReadDefinition,
) -> Result<(), ConnectError> {
    let found = session.identity().await?;
    if found == definition.identity {
        return Ok(());
    }
    let what = format!("the database of {}", session.system());
    Err(ConnectError::Replaced { what, pinned: definition.identity.clone(), found })
}

fn check_plan(
    plan: &Plan,
    settings: &Settings,
    definition: &ReadDefinition,
) -> Result<(), ConnectError> {
    let pinned: Plan = serde_json::from_value(definition.private.clone()).map_err(|error| {
        ConnectError::Config(UserError::internal(format!("the pinned plan is unreadable: {error}")))
    })?;
    let changed = pinned.columns.iter().zip(&plan.columns).find(|(pinned, now)| pinned != now);
    match changed {
        Some((pinned, now)) => Err(ConnectError::Replaced {
            what: format!("column \"{}\" of the query at {}", pinned.name, settings.system),
            pinned: format!("type {}", pinned.source),
            found: format!("type {}", now.source),
        }),
        None => Ok(()),
    }
}

/// The answer of the handoff query: split → next position, as text.
async fn handoff(
    session: &mut Session,
    query: &str,
) -> Result<Vec<(SplitId, Position)>, ConnectError> {
    let refused = |state, text: String| {
        let hint = "Return one row per split: its name, and the next position to read.";
        Err(ConnectError::Config(UserError::new(state, text).with_hint(hint)))
    };
    let columns = prepared(session, query, Asked::HandoffQuery).await?.columns().len();
    if columns != 2 {
        let text = format!("the START AT QUERY returns {columns} columns and not 2");
        return refused(SqlState::DATATYPE_MISMATCH, text);
    }
    let select = format!(
        "SELECT split::text, position::text FROM {} AS q (split, position)",
        as_relation(query)
    );
    let rows = session.texts(&select, Asked::HandoffQuery).await?;
    if rows.len() > SPLITS_MAX {
        let text = format!("the START AT QUERY returns {} rows", rows.len());
        return refused(SqlState::PROGRAM_LIMIT_EXCEEDED, text);
    }
    let mut seen = HashSet::new();
    let mut ends = Vec::with_capacity(rows.len());
    for row in rows {
        let mut values = row.into_iter();
        let (Some(Some(split)), Some(Some(position))) = (values.next(), values.next()) else {
            let text = "the START AT QUERY returns a NULL".to_owned();
            return refused(SqlState::NOT_NULL_VIOLATION, text);
        };
        if !seen.insert(split.clone()) {
            let text = format!("the START AT QUERY returns split \"{split}\" twice");
            return refused(SqlState::CARDINALITY_VIOLATION, text);
        }
        ends.push((SplitId::new(split), Position::new(position)));
    }
    Ok(ends)
}

/// How many rows the server's planner expects.
pub(crate) async fn estimate(
    session: &mut Session,
    select: &str,
) -> Result<Option<u64>, ConnectError> {
    let rows = session.texts(&format!("EXPLAIN (FORMAT JSON) {select}"), Asked::Query).await?;
    let text = rows.into_iter().flatten().flatten().next().unwrap_or_default();
    let plan: Option<serde_json::Value> = serde_json::from_str(&text).ok();
    Ok(plan.and_then(|plan| plan.pointer("/0/Plan/Plan Rows")?.as_u64()))
}

/// A capture whose rows are yet to be asked for. The server answers COPY only when it has rows to send,
/// which may take as long as a sort: that wait belongs to the stream, where progress is shown.
struct Waiting {
    session: Session,
    select: String,
    decoder: Decoder,
}

impl Waiting {
    async fn run(mut self) -> Result<Batches, ConnectError> {
        let copy = format!("COPY ({}) TO STDOUT (FORMAT binary)", self.select);
        match self.session.client().copy_out(&copy).await {
            Ok(copy) => {
                let Waiting { session, decoder, .. } = self;
                Ok(batches(Running { session, copy: Box::pin(copy), decoder }))
            }
            Err(error) => Err(self.session.error(error, Asked::Query).await),
        }
    }
}

type Batches = BoxStream<'static, Result<RecordBatch, ConnectError>>;

/// A capture whose rows are on their way.
struct Running {
    session: Session,
    copy: Pin<Box<CopyOutStream>>,
    decoder: Decoder,
}

/// The batches. Nothing is read ahead of the consumer but what the driver and the sockets hold.
fn batches(running: Running) -> Batches {
    let next = |running: Option<Running>| async move {
        let Some(mut running) = running else { return Ok(None) };
        while running.fill().await? {
            if running.decoder.is_full() {
                return Ok(Some((running.take()?, Some(running))));
            }
        }
        running.end().await
    };
    try_unfold(Some(running), next).boxed()
}

impl Running {
    /// Decodes the next chunk. False after the last one.
    async fn fill(&mut self) -> Result<bool, ConnectError> {
        match self.copy.next().await {
            Some(Ok(chunk)) => {
                self.decoder.feed(&chunk).map_err(|error| ConnectError::Value(*error))?;
                Ok(true)
            }
            Some(Err(error)) => Err(self.session.error(error, Asked::Query).await),
            None => Ok(false),
        }
    }

    fn take(&mut self) -> Result<RecordBatch, ConnectError> {
        self.decoder.take().map_err(|error| ConnectError::Value(*error))
    }

    /// Ends the transaction, and only then gives out the last batch.
    async fn end(mut self) -> Result<Option<(RecordBatch, Option<Running>)>, ConnectError> {
        if !self.decoder.is_complete() {
            let reason = "the data ended without their trailer".to_owned();
            return Err(ConnectError::Unreachable {
                system: self.session.system().to_owned(),
                reason,
            });
        }
        self.session.execute("COMMIT", Asked::Query).await?;
        let last = if self.decoder.is_empty() { None } else { Some((self.take()?, None)) };
        self.session.close();
        Ok(last)
    }
}
