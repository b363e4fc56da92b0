//! Relations as text, row by row, for comparison.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use segue_flow::Dataflow;

/// Rows as text and how often each is there.
pub type Rows = BTreeMap<String, i64>;

/// The rows of some batches, numbers cut to three digits after the point: engines differ in how many they compute.
pub fn rounded(batches: impl IntoIterator<Item = RecordBatch>) -> Rows {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Rows::new();
    for batch in batches {
        let columns = batch.columns().iter();
        let columns = columns.map(|column| ArrayFormatter::try_new(column, &options));
        let columns = columns.collect::<Result<Vec<_>, _>>().expect("all types print");
        for row in 0..batch.num_rows() {
            let values = columns.iter().map(|column| plain(&column.value(row).to_string()));
            *rows.entry(values.collect::<Vec<_>>().join(" | ")).or_insert(0) += 1;
        }
    }
    rows
}

fn plain(value: &str) -> String {
    match value.parse::<f64>() {
        Ok(number) if value.contains('.') => format!("{number:.3}").replace("-0.000", "0.000"),
        _ => value.to_owned(),
    }
}

/// What a view holds.
pub fn held(dataflow: &mut Dataflow) -> Rows {
    rounded(dataflow.version().batches().collect::<Vec<_>>())
}
