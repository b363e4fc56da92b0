//! Functions of dates, times and intervals that DataFusion does not have, or has with fewer units.

mod age;
mod make;
mod truncate;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;
use segue_types::SqlType;

use super::general;

/// All of them.
pub(super) fn functions() -> Vec<ScalarUDF> {
    [truncate::functions(), make::functions(), age::functions()].concat()
}

const DAY_US: i64 = 86_400_000_000;

fn interval(_: &[FieldRef]) -> Result<FieldRef> {
    Ok(general::typed(&SqlType::Interval))
}

fn timestamp() -> DataType {
    SqlType::Timestamp.arrow_type()
}

fn instant() -> DataType {
    SqlType::Timestamptz.arrow_type()
}
