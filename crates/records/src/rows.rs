//! Rows of the projected schema: decoded values and INCLUDE columns side by side.
//!
//! Invariant: a record appends exactly one row to every column, or nothing at all.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use segue_connect::{Changes, ConnectError, ReadConfig};

use crate::includes::IncludeColumn;
use crate::keying::Keying;
use crate::record::Record;
use crate::values::Values;

/// Where records come from.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The connector's name, for errors.
    pub connector: &'a str,
    /// What INCLUDE PARTITION shows.
    pub partition: &'a str,
}

/// Collects rows.
pub struct Records {
    schema: SchemaRef,
    values: Values,
    /// The INCLUDE columns of the projection.
    includes: Vec<IncludeColumn>,
    /// Where each column of the projection comes from.
    places: Vec<Place>,
    keying: Keying,
    bytes: usize,
}

#[derive(Clone, Copy)]
enum Place {
    Value(usize),
    Include(usize),
}

impl Records {
    /// Checks that the configuration can be decoded, and makes an empty collection for a partition.
    pub fn new(
        config: &ReadConfig,
        projection: &[usize],
        origin: Origin<'_>,
    ) -> Result<Records, ConnectError> {
        let declared = config.declared_columns;
        let value_columns: Vec<usize> =
            projection.iter().copied().filter(|column| *column < declared).collect();
        let mut includes = Vec::new();
        let mut places = Vec::with_capacity(projection.len());
        let mut seen_values = 0;
        for column in projection {
            if *column < declared {
                places.push(Place::Value(seen_values));
                seen_values += 1;
            } else {
                let include = &config.includes[column - declared];
                let field = config.schema.field(*column);
                places.push(Place::Include(includes.len()));
                includes.push(IncludeColumn::new(include, field, &config.stage, origin)?);
            }
        }
        let values = Values::new(config, origin.connector, &value_columns)?;
        let keying = Keying::new(config, &value_columns)?;
        let schema = config.schema.project(projection).expect("the projection lies in the schema");
        Ok(Records { schema: Arc::new(schema), values, includes, places, keying, bytes: 0 })
    }

    /// Rows so far.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the records behind the rows.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends the row of a record, or says why it has none.
    #[inline]
    pub fn push(&mut self, record: &impl Record) -> Result<(), String> {
        let (key, payload) = (record.key(), record.payload());
        match &mut self.keying {
            Keying::Plain => {
                let payload = payload.ok_or("the record has no value")?;
                self.values.decode(payload)?;
            }
            Keying::Upsert(upsert) => upsert.push(&mut self.values, key, payload)?,
        }
        for include in &mut self.includes {
            include.push(record);
        }
        self.bytes += key.map_or(0, <[u8]>::len) + payload.map_or(0, <[u8]>::len);
        Ok(())
    }

    /// Takes all rows out.
    pub fn finish(&mut self) -> Changes {
        let rows = self.len();
        let values = self.values.finish();
        let includes: Vec<ArrayRef> = self.includes.iter_mut().map(IncludeColumn::finish).collect();
        let columns = self.places.iter().map(|place| match place {
            Place::Value(at) => Arc::clone(&values[*at]),
            Place::Include(at) => Arc::clone(&includes[*at]),
        });
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, columns.collect(), &options)
            .expect("each column was made for its field");
        self.bytes = 0;
        Changes { rows: batch, ops: self.keying.take_ops(rows) }
    }
}
