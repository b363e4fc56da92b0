//! What DataFusion's batch engine answers, and multisets of rows to compare by.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use segue_flow::Delta;
use tokio::runtime::Runtime;

use crate::rows::{Live, schema};

pub struct Oracle {
    runtime: Runtime,
}

impl Oracle {
    pub fn new() -> Oracle {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        Oracle { runtime }
    }

    /// The answer of `sql` over table `i` with these rows.
    pub fn answer(&self, sql: &str, live: &Live) -> RowCounts {
        let context =
            SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
        let table = MemTable::try_new(schema(), vec![vec![live.batch()]]).expect("one schema");
        context.register_table("i", Arc::new(table)).expect("a new name");
        let batches = self.runtime.block_on(async { context.sql(sql).await?.collect().await });
        RowCounts::of_batches(batches.unwrap_or_else(|error| panic!("{sql}: {error}")).into_iter())
    }
}

/// Rows as text, and how often each is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    rows: BTreeMap<String, i64>,
}

impl RowCounts {
    pub fn of_batches(batches: impl Iterator<Item = RecordBatch>) -> RowCounts {
        let mut counts = RowCounts::default();
        counts.add(&batches.map(Delta::inserts).collect::<Vec<_>>());
        counts
    }

    pub fn add(&mut self, deltas: &[Delta]) {
        let options = FormatOptions::default().with_null("NULL");
        for delta in deltas {
            let columns = delta.rows().columns().iter();
            let columns = columns.map(|column| ArrayFormatter::try_new(column, &options));
            let columns = columns.collect::<Result<Vec<_>, _>>().expect("all types print");
            for row in 0..delta.len() {
                let values = columns.iter().map(|column| match column.value(row).to_string() {
                    zero if zero == "-0.0" => "0.0".to_owned(),
                    value => value,
                });
                let count = self.rows.entry(values.collect::<Vec<_>>().join(" | ")).or_insert(0);
                *count += delta.weight(row);
            }
        }
        self.rows.retain(|_, count| *count != 0);
    }

    pub fn total(&self) -> usize {
        self.rows
            .values()
            .map(|count| usize::try_from(*count).expect("no row is there less than never"))
            .sum()
    }

    pub fn is_within(&self, other: &RowCounts) -> bool {
        self.rows.iter().all(|(row, count)| other.rows.get(row).is_some_and(|there| there >= count))
    }
}
