//! `pg_size_pretty` and `pg_typeof`.

use arrow::array::Array;
use arrow::datatypes::{DataType, Field};
use datafusion::logical_expr::ScalarUDF;
use segue_types::{SqlType, sql_type_of};

use super::simple::{function, integers, text_column};

/// Both.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let pretty = function("pg_size_pretty", DataType::Utf8, |columns, _| {
        Ok(text_column(integers(columns, 0).into_iter().map(|bytes| bytes.map(pretty))))
    });
    let type_of = function("pg_typeof", DataType::Utf8, |columns, rows| {
        let name = columns.first().map(|column| {
            let field = Field::new("", column.data_type().clone(), true);
            match sql_type_of(&field) {
                Some(SqlType::Numeric { .. }) => "numeric".to_owned(),
                Some(SqlType::Timestamp) => "timestamp without time zone".to_owned(),
                Some(SqlType::Timestamptz) => "timestamp with time zone".to_owned(),
                Some(SqlType::Time) => "time without time zone".to_owned(),
                Some(SqlType::Struct(_)) => "record".to_owned(),
                Some(ty) => ty.to_string(),
                None => "unknown".to_owned(),
            }
        });
        Ok(text_column(std::iter::repeat_n(name, rows)))
    });
    vec![pretty, type_of]
}

/// A size as PostgreSQL prints it: a larger unit is taken once ten thousand of the smaller one are reached.
fn pretty(bytes: i64) -> String {
    let mut size = bytes;
    for unit in ["bytes", "kB", "MB", "GB", "TB"] {
        if size.abs() < 10 * 1024 || unit == "TB" {
            return format!("{size} {unit}");
        }
        size = (size + 512 * size.signum()) / 1024;
    }
    format!("{size} TB")
}

#[cfg(test)]
mod tests {
    use super::pretty;

    #[test]
    fn sizes_are_printed_as_postgres_prints_them() {
        assert_eq!(pretty(10_239), "10239 bytes");
        assert_eq!(pretty(10_240), "10 kB");
        assert_eq!(pretty(1_234_567_890), "1177 MB");
    }
}
