//! Batches of the projected schema: the declared columns from the decoder, the INCLUDE columns
//! from here.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use segue_connect::{Changes, IncludeKind, Ops, ReadConfig, RowFormat};
use segue_formats::{Column, append};

/// Where a projected column comes from.
#[derive(Clone, Copy, Debug)]
enum Origin {
    Declared(usize),
    Included(usize),
}

/// Which columns a read delivers.
#[derive(Clone, Debug)]
pub(crate) struct Projection {
    schema: SchemaRef,
    /// The declared columns that are wanted, as indexes into the declared schema.
    pub(crate) declared: Vec<usize>,
    included: Vec<(IncludeKind, usize)>,
    origins: Vec<Origin>,
    rows: RowFormat,
    stage: String,
}

impl Projection {
    pub(crate) fn new(config: &ReadConfig, projection: &[usize]) -> Projection {
        let schema = config.schema.project(projection).expect("projections lie in the schema");
        let (mut declared, mut included) = (Vec::new(), Vec::new());
        let mut origins = Vec::with_capacity(projection.len());
        for (place, index) in projection.iter().enumerate() {
            match index.checked_sub(config.declared_columns) {
                None => {
                    origins.push(Origin::Declared(declared.len()));
                    declared.push(*index);
                }
                Some(include) => {
                    origins.push(Origin::Included(included.len()));
                    included.push((config.includes[include].kind.clone(), place));
                }
            }
        }
        let rows = config.format.rows;
        let stage = config.stage.clone();
        Projection { schema: Arc::new(schema), declared, included, origins, rows, stage }
    }

    /// Empty builders of the INCLUDE columns.
    pub(crate) fn includes(&self, path: &str) -> Includes {
        let column = |(kind, place): &(IncludeKind, usize)| {
            let field = self.schema.field(*place);
            let column = Column::new(field).expect("INCLUDE columns have SQL types");
            (kind.clone(), column)
        };
        Includes {
            path: path.to_owned(),
            stage: self.stage.clone(),
            columns: self.included.iter().map(column).collect(),
        }
    }

    /// The rows with all their columns.
    pub(crate) fn changes(&self, declared: &RecordBatch, includes: &mut Includes) -> Changes {
        let mut included = Vec::with_capacity(includes.columns.len());
        for ((_, column), (_, place)) in includes.columns.iter_mut().zip(&self.included) {
            included.push(column.finish(self.schema.field(*place)));
        }
        let arrays = self.origins.iter().map(|origin| match origin {
            Origin::Declared(index) => Arc::clone(declared.column(*index)),
            Origin::Included(index) => Arc::clone(&included[*index]),
        });
        let options = RecordBatchOptions::new().with_row_count(Some(declared.num_rows()));
        let rows =
            RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays.collect(), &options)
                .expect("decoder and INCLUDE columns have the projected types and one length");
        let ops = match self.rows {
            RowFormat::Plain => Ops::Insert,
            RowFormat::Upsert => Ops::Put,
        };
        Changes { rows, ops }
    }
}

/// The INCLUDE columns of one file's rows.
#[derive(Debug)]
pub(crate) struct Includes {
    path: String,
    stage: String,
    columns: Vec<(IncludeKind, Column)>,
}

impl Includes {
    /// Appends the values of one row. A payload that its column cannot hold is NULL.
    #[inline]
    pub(crate) fn append(&mut self, number: u64, payload: &[u8]) {
        for (kind, column) in &mut self.columns {
            let rows = column.len();
            let appended = match kind {
                IncludeKind::File => append(column, &self.path),
                IncludeKind::Stage => append(column, &self.stage),
                IncludeKind::Offset => append(column, &number.to_string()),
                _ => append(column, &String::from_utf8_lossy(payload)),
            };
            if appended.is_err() {
                column.truncate(rows);
                column.append_null();
            }
        }
    }
}
