//! `concat`, `concat_ws` and `array_to_string`: values as PostgreSQL's output functions write them, NULLs left out.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;
use segue_types::SqlType;

use super::{general, text};

/// All of them.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let is: general::Returns = |_| Ok(general::typed(&SqlType::Text));
    vec![
        general::function("concat", at_least::<1>, is, |columns, _| {
            Ok(Arc::new(joined(&shown(columns)?, None)))
        }),
        general::function("concat_ws", at_least::<2>, is, |columns, _| {
            let texts = shown(columns)?;
            let (separators, texts) = texts.split_first().expect("the signature says so");
            Ok(Arc::new(joined(texts, Some(separators))))
        }),
        general::function("array_to_string", list_and_texts, is, |columns, _| {
            Ok(Arc::new(listed(columns)?))
        }),
    ]
}

fn at_least<const LEAST: usize>(given: &[DataType]) -> Option<Vec<DataType>> {
    (given.len() >= LEAST).then(|| given.to_vec())
}

fn list_and_texts(given: &[DataType]) -> Option<Vec<DataType>> {
    let (list, texts) = given.split_first()?;
    let list = match list {
        DataType::List(_) => list.clone(),
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            DataType::List(Arc::clone(item))
        }
        _ => return None,
    };
    let fits = matches!(texts.len(), 1 | 2);
    fits.then(|| [list].into_iter().chain(vec![DataType::Utf8; texts.len()]).collect())
}

/// The items of each list, also of lists in it, with a delimiter between them; NULLs as the third argument says.
fn listed(columns: &[ArrayRef]) -> Result<StringArray> {
    let flat = super::items::flattened(&columns[0])?;
    let list = flat.as_list::<i32>();
    let items = text::members(list.values())?;
    let delimiters = columns[1].as_string::<i32>();
    let nulls = columns.get(2).map(|column| column.as_string::<i32>());
    let row = |row: usize| {
        let range = list.value_offsets()[row] as usize..list.value_offsets()[row + 1] as usize;
        let null = nulls.filter(|nulls| nulls.is_valid(row)).map(|nulls| nulls.value(row));
        let shown = |item| if items.is_valid(item) { Some(items.value(item)) } else { null };
        range.filter_map(shown).collect::<Vec<_>>().join(delimiters.value(row))
    };
    let valid = |row| list.is_valid(row) && delimiters.is_valid(row);
    Ok((0..list.len()).map(|at| valid(at).then(|| row(at))).collect())
}

fn shown(columns: &[ArrayRef]) -> Result<Vec<StringArray>> {
    columns.iter().map(text::members).collect()
}

/// The texts of each row, with a separator between them. Without a text of its own a separator makes the row NULL.
fn joined(texts: &[StringArray], separators: Option<&StringArray>) -> StringArray {
    let rows = texts.first().map_or(0, Array::len);
    let mut out = StringBuilder::new();
    let mut whole = String::new();
    for row in 0..rows {
        if separators.is_some_and(|separators| separators.is_null(row)) {
            out.append_null();
            continue;
        }
        let separator = separators.map_or("", |separators| separators.value(row));
        whole.clear();
        let mut first = true;
        for text in texts.iter().filter(|text| text.is_valid(row)) {
            if !first {
                whole.push_str(separator);
            }
            whole.push_str(text.value(row));
            first = false;
        }
        out.append_value(&whole);
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use arrow::array::StringArray;

    use super::joined;

    #[test]
    fn nulls_are_left_out_with_their_separator() {
        let columns = [
            StringArray::from(vec![Some("a"), None, Some("a")]),
            StringArray::from(vec![None, None, Some("b")]),
        ];
        let separators = StringArray::from(vec![Some(","), Some(","), None]);
        let all = |joined: StringArray| {
            joined.iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
        };
        let of = |text: &str| Some(text.to_owned());
        assert_eq!(all(joined(&columns, None)), [of("a"), of(""), of("ab")]);
        assert_eq!(all(joined(&columns, Some(&separators))), [of("a"), of(""), None]);
    }
}
