//! The open read and the readers of its splits.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::{DataType, Field, SchemaRef};
use async_trait::async_trait;
use segue_connect::{
    Changes, ConnectError, Enumeration, HasData, IncludeKind, Latest, Ops, ReadConfig,
    ReadDefinition, ReadEvent, Rows, SplitReader, StageReader,
};
use segue_types::{Position, SplitId};

use crate::generator::RowNumbers;
use crate::options::DatagenOptions;
use crate::pace::Pace;
use crate::{fields, number_of, position};

/// Rows of one delivery.
const BATCH_ROWS: u64 = 8192;
/// A paced split delivers no more often than this.
const TICK: Duration = Duration::from_millis(10);

/// What fills a projected column.
#[derive(Clone, Debug)]
enum Origin {
    Generated(fields::Column),
    Included(IncludeKind),
}

/// What all splits of a read have in common.
#[derive(Debug)]
struct Plan {
    schema: SchemaRef,
    origins: Vec<Origin>,
    stage: String,
    splits: u64,
    pace: Pace,
}

/// An open read of a datagen stage.
#[derive(Debug)]
pub(crate) struct DatagenStage {
    plan: Arc<Plan>,
    definition: ReadDefinition,
}

impl DatagenStage {
    pub(crate) fn open(
        config: &ReadConfig,
        options: &DatagenOptions,
        definition: &ReadDefinition,
        projection: &[usize],
    ) -> Result<DatagenStage, ConnectError> {
        let origin = |index: &usize| match index.checked_sub(config.declared_columns) {
            None => Origin::Generated(options.fields.columns[*index].clone()),
            Some(include) => Origin::Included(config.includes[include].kind.clone()),
        };
        let schema = config.schema.project(projection).expect("projections lie in the schema");
        let plan = Plan {
            schema: Arc::new(schema),
            origins: projection.iter().map(origin).collect(),
            stage: config.stage.clone(),
            splits: options.splits,
            pace: Pace::of(definition)?,
        };
        Ok(DatagenStage { plan: Arc::new(plan), definition: definition.clone() })
    }

    /// The split's number.
    fn split(&self, split: &SplitId) -> Result<u64, ConnectError> {
        let number = split.as_str().parse().ok().filter(|number| *number < self.plan.splits);
        number.ok_or_else(|| ConnectError::Missing { what: format!("split \"{split}\"") })
    }

    fn bound(&self, split: &SplitId) -> Result<Option<u64>, ConnectError> {
        let definition = self.definition.splits.iter().find(|known| known.id == *split);
        let bound = definition.and_then(|definition| definition.bound.as_ref());
        bound.map(|bound| number_of(split, bound)).transpose()
    }
}

#[async_trait]
impl StageReader for DatagenStage {
    async fn discover(&self) -> Result<Enumeration, ConnectError> {
        let splits = self.definition.splits.clone();
        Ok(Enumeration { splits, sealed: self.definition.sealed })
    }

    async fn read(
        &self,
        split: &SplitId,
        from: &Position,
        until: Option<&Position>,
    ) -> Result<Box<dyn SplitReader>, ConnectError> {
        let until = until.map(|until| number_of(split, until)).transpose()?;
        Ok(Box::new(DatagenReader {
            plan: Arc::clone(&self.plan),
            split: self.split(split)?,
            row: number_of(split, from)?,
            end: until.or(self.bound(split)?),
        }))
    }

    async fn latest(&self, split: &SplitId) -> Result<Option<Latest>, ConnectError> {
        let now = self.plan.pace.rows_now(self.split(split)?, self.plan.splits);
        let rows = [now, self.bound(split)?].into_iter().flatten().min();
        Ok(rows.map(|rows| position(rows).into()))
    }

    async fn has_data(&self, split: &SplitId, from: &Position) -> Result<HasData, ConnectError> {
        let from = number_of(split, from)?;
        let latest = self.latest(split).await?;
        let latest = latest.map(|latest| number_of(split, &latest.position)).transpose()?;
        Ok(if latest.is_none_or(|latest| latest > from) { HasData::Yes } else { HasData::No })
    }

    async fn acknowledge(&self, _positions: &[(SplitId, Position)]) -> Result<(), ConnectError> {
        Ok(())
    }
}

/// Generates the rows of one split.
#[derive(Debug)]
struct DatagenReader {
    plan: Arc<Plan>,
    split: u64,
    /// How many rows of the split came before.
    row: u64,
    end: Option<u64>,
}

impl DatagenReader {
    fn batch(&self, len: usize) -> RecordBatch {
        let plan = &self.plan;
        let numbers =
            RowNumbers { first: self.row * plan.splits + self.split, stride: plan.splits, len };
        let columns =
            plan.origins.iter().zip(plan.schema.fields()).map(|(origin, field)| match origin {
                Origin::Generated(column) => {
                    column.generator.generate(field, column.seed, plan.pace.began_us(), numbers)
                }
                Origin::Included(kind) => self.include(kind, field, len),
            });
        let options = RecordBatchOptions::new().with_row_count(Some(len));
        let columns = columns.collect();
        RecordBatch::try_new_with_options(Arc::clone(&plan.schema), columns, &options)
            .expect("generators make the declared types")
    }

    fn include(&self, kind: &IncludeKind, field: &Field, len: usize) -> ArrayRef {
        let rows = self.row..self.row + len as u64;
        match (kind, field.data_type()) {
            (IncludeKind::Stage, _) => {
                Arc::new(StringArray::from_iter_values(rows.map(|_| self.plan.stage.as_str())))
            }
            (IncludeKind::Offset, DataType::Int64) => {
                Arc::new(Int64Array::from_iter_values(rows.map(|row| row as i64)))
            }
            (IncludeKind::Offset, _) => {
                Arc::new(StringArray::from_iter_values(rows.map(|row| row.to_string())))
            }
            (_, _) => {
                let split = self.split.to_string();
                Arc::new(StringArray::from_iter_values(rows.map(|_| split.as_str())))
            }
        }
    }
}

#[async_trait]
impl SplitReader for DatagenReader {
    async fn next(&mut self) -> Result<ReadEvent, ConnectError> {
        let plan = Arc::clone(&self.plan);
        loop {
            if let Some(end) = self.end
                && self.row >= end
            {
                return Ok(ReadEvent::Done { at: position(end) });
            }
            let there = plan.pace.rows_now(self.split, plan.splits).unwrap_or(u64::MAX);
            let there = there.min(self.end.unwrap_or(u64::MAX));
            let len = there.saturating_sub(self.row).min(BATCH_ROWS);
            if len > 0 {
                let rows = self.batch(len as usize);
                self.row += len;
                let bytes = rows.get_array_memory_size();
                let changes = Changes { rows, ops: Ops::Insert };
                let next = position(self.row);
                return Ok(ReadEvent::Rows(Rows { changes, next, rejected: Vec::new(), bytes }));
            }
            let wait = plan.pace.time_until(self.row, self.split, plan.splits);
            tokio::time::sleep(wait.max(TICK)).await;
        }
    }
}
