//! Changes by key come to rest: a view over the whole source, for one statement and in memory.
//!
//! Invariant: what is given is what `CREATE MATERIALIZED VIEW v AS SELECT * FROM source` would show, because the
//! same dataflow makes it.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use segue_catalog::Object;
use segue_flow::{Conflict, Dataflow, DataflowSpec, InputKind, StepInput, Workers};
use segue_types::{SqlState, UserError};
use tokio::sync::mpsc;

use super::{Delivery, Scanned, Wanted};

/// How many rows one step takes at least, while there are more to come.
const STEP_ROWS: usize = 32 * 1024;

/// The rows as they are by now.
pub(super) struct Gatherer {
    source: String,
    dataflow: Dataflow,
    /// Where the wanted columns are among those that are read.
    columns: Vec<usize>,
    memory_bytes_max: usize,
    rejected: usize,
}

impl Gatherer {
    pub(super) fn new(object: &Object, read: &[usize], wanted: &Wanted) -> Gatherer {
        let fields = read.iter().map(|column| object.schema.field(*column).clone());
        let nullable = fields.map(|field| field.with_nullable(true)).collect::<Vec<_>>();
        let place = |column: &usize| read.binary_search(column).expect("it is read");
        let key = object.key.iter().map(place).collect();
        let (schema, kind) = (Arc::new(Schema::new(nullable)), InputKind::Changelog);
        let spec = DataflowSpec::table(schema, key, Conflict::Overwrite, kind);
        Gatherer {
            source: object.name.clone(),
            dataflow: Dataflow::new(object.id, spec, Workers::ONE),
            columns: wanted.columns.iter().map(place).collect(),
            memory_bytes_max: wanted.memory_bytes_max,
            rejected: 0,
        }
    }

    /// Takes everything in.
    pub(super) async fn gather(
        mut self,
        mut deliveries: mpsc::Receiver<Delivery>,
    ) -> Result<Gatherer, UserError> {
        let mut waiting = Vec::new();
        let mut rows = 0;
        while let Some(Delivery { changes, rejected }) = deliveries.recv().await {
            self.rejected += rejected;
            rows += changes.rows.num_rows();
            waiting.push((0, StepInput::Changes(changes)));
            if rows >= STEP_ROWS {
                self.step(std::mem::take(&mut waiting))?;
                rows = 0;
            }
        }
        self.step(waiting)?;
        Ok(self)
    }

    fn step(&mut self, inputs: Vec<(usize, StepInput)>) -> Result<(), UserError> {
        let stepped = self.dataflow.step(inputs);
        stepped.map_err(|error| UserError::internal(error.to_string()))?;
        let state = self.dataflow.operators();
        let bytes: u64 = state.iter().map(|operator| operator.state_bytes).sum();
        if bytes <= self.memory_bytes_max as u64 {
            return Ok(());
        }
        let message = format!("source \"{}\" has more rows than a query may hold", self.source);
        let limit = self.memory_bytes_max >> 20;
        Err(UserError::new(SqlState::OUT_OF_MEMORY, message)
            .with_detail(format!(
                "The newest row of each key is needed; they take over {limit} MB."
            ))
            .with_hint("Raise source_scan_memory_mb, or select from a materialized view of it."))
    }

    /// Gives the rows that are left.
    pub(super) async fn give(
        mut self,
        rows: &mpsc::Sender<Result<Scanned, UserError>>,
    ) -> Result<(), UserError> {
        let version = self.dataflow.version();
        let mut rejected = self.rejected;
        for batch in version.batches() {
            let batch = batch.project(&self.columns).expect("these columns were read");
            let scanned = Scanned { rows: batch, rejected: std::mem::take(&mut rejected) };
            if rows.send(Ok(scanned)).await.is_err() {
                return Ok(());
            }
        }
        if rejected > 0 {
            let none = RecordBatch::new_empty(Arc::clone(version.schema()));
            let none = none.project(&self.columns).expect("these columns were read");
            drop(rows.send(Ok(Scanned { rows: none, rejected })).await);
        }
        Ok(())
    }
}
