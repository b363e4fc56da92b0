//! `||` of lists, `array_cat`, `array_append`, `array_prepend`: items of any two types that have a common one, NULL as
//! a list of nothing; and `format`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{cast, interleave};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::{Expr, ScalarUDF};
use segue_types::{SqlState, SqlType};

use super::general::{self, failed};
use super::text;

/// The name under which rewritten queries call it.
pub(super) const CONCAT: &str = "list_cat";

/// All of them.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let joined: general::Returns = |fields| Ok(Arc::new(joined_field(fields)));
    let text: general::Returns = |_| Ok(general::typed(&SqlType::Text));
    let texts = |given: &[DataType]| (!given.is_empty()).then(|| given.to_vec());
    vec![
        concat_function(joined),
        general::function("format", texts, text, |columns, _| formatted(columns)),
    ]
}

/// `left || right`
pub(super) fn of(left: Expr, right: Expr) -> Expr {
    let joined: general::Returns = |fields| Ok(Arc::new(joined_field(fields)));
    let function = Arc::new(concat_function(joined));
    Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![left, right]))
}

fn concat_function(joined: general::Returns) -> ScalarUDF {
    general::function(CONCAT, lists, joined, |columns, fields| {
        joined_lists(&columns[0], &columns[1], &joined_field(fields))
    })
}

fn depth(ty: &DataType) -> usize {
    match ty {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            1 + depth(item.data_type())
        }
        _ => 0,
    }
}

fn innermost(ty: &DataType) -> &DataType {
    match ty {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            innermost(item.data_type())
        }
        other => other,
    }
}

fn nested(item: &DataType, depth: usize) -> DataType {
    (0..depth).fold(item.clone(), |ty, _| DataType::List(Arc::new(Field::new("item", ty, true))))
}

/// Both as lists of one type, or one of them as its item.
fn lists(given: &[DataType]) -> Option<Vec<DataType>> {
    let [left, right] = given else { return None };
    let (left_depth, right_depth) = (depth(left), depth(right));
    let most = left_depth.max(right_depth);
    if most == 0 || left_depth.abs_diff(right_depth) > 1 && !left.is_null() && !right.is_null() {
        return None;
    }
    let item = match (innermost(left), innermost(right)) {
        (left, right) if left == right => left.clone(),
        (left, right) => type_union_coercion(left, right)?,
    };
    let of = |ty: &DataType, depth: usize| match ty {
        // NULL alone is a list.
        DataType::Null => nested(&item, most),
        _ => nested(&item, depth),
    };
    Some(vec![of(left, left_depth), of(right, right_depth)])
}

fn joined_field(fields: &[FieldRef]) -> Field {
    let deeper = |a: &FieldRef, b: &FieldRef| depth(a.data_type()) >= depth(b.data_type());
    let list = if deeper(&fields[0], &fields[1]) { &fields[0] } else { &fields[1] };
    Field::new("list", list.data_type().clone(), true)
}

/// A list, or an item as a list of one.
fn as_list(column: &ArrayRef, to: &DataType) -> Result<ListArray> {
    let column = match depth(column.data_type()) == depth(to) {
        true => cast(column, to)?,
        false => {
            let DataType::List(item) = to else { unreachable!("the result is a list") };
            let items = cast(column, item.data_type())?;
            let lengths = std::iter::repeat_n(1, items.len());
            Arc::new(ListArray::new(
                Arc::clone(item),
                OffsetBuffer::from_lengths(lengths),
                items,
                None,
            ))
        }
    };
    Ok(column.as_list::<i32>().clone())
}

fn joined_lists(left: &ArrayRef, right: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    let to = field.data_type();
    // An item that is a list itself.
    let item_null = |column: &ArrayRef, row| {
        let given = depth(column.data_type());
        given > 0 && given < depth(to) && column.is_null(row)
    };
    let (lists, given) = ([as_list(left, to)?, as_list(right, to)?], [left, right]);
    let DataType::List(item) = to else { unreachable!("the result is a list") };
    let values = [lists[0].values().as_ref(), lists[1].values().as_ref()];
    let (mut picked, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..left.len() {
        let before = picked.len();
        let mut known = false;
        for (side, list) in lists.iter().enumerate() {
            // A list that is NULL adds nothing, an item that is NULL is one.
            if list.is_valid(row) && !item_null(given[side], row) {
                known = true;
                let offsets = list.value_offsets();
                picked.extend((offsets[row]..offsets[row + 1]).map(|at| (side, at as usize)));
            }
        }
        lengths.push(picked.len() - before);
        valid.push(known);
    }
    let items = match picked.is_empty() {
        true => arrow::array::new_empty_array(item.data_type()),
        false => interleave(&values, &picked)?,
    };
    let offsets = OffsetBuffer::from_lengths(lengths);
    let nulls = Some(NullBuffer::from(valid));
    Ok(Arc::new(ListArray::new(Arc::clone(item), offsets, items, nulls)))
}

fn formatted(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let texts = columns.iter().map(text::members).collect::<Result<Vec<_>>>()?;
    let (patterns, values) = texts.split_first().expect("there is a pattern");
    let rows = (0..patterns.len()).map(|row| {
        let value = |place: usize| {
            let column = values.get(place).ok_or_else(|| {
                failed(SqlState::INVALID_PARAMETER_VALUE, "too few arguments for format()")
            })?;
            Ok(column.is_valid(row).then(|| column.value(row)))
        };
        patterns.is_valid(row).then(|| filled(patterns.value(row), value)).transpose()
    });
    Ok(Arc::new(rows.collect::<Result<StringArray>>()?))
}

/// PostgreSQL's `%[place$][-][width]type`, where the type is `s`, `I` or `L`.
fn filled<'a>(pattern: &str, value: impl Fn(usize) -> Result<Option<&'a str>>) -> Result<String> {
    let mut out = String::new();
    let mut rest = pattern;
    let mut next = 0;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let end = after.find(|c: char| !c.is_ascii_digit() && !matches!(c, '$' | '-'));
        let unknown = || {
            let message = "unrecognized format() type specifier";
            failed(SqlState::INVALID_PARAMETER_VALUE, message)
        };
        let end = end.ok_or_else(unknown)?;
        let (options, kind) = after.split_at(end);
        let (place, width) = options
            .split_once('$')
            .map_or((None, options), |(place, width)| (place.parse::<usize>().ok(), width));
        let place = place.map_or(next, |place| place.saturating_sub(1));
        next = place + 1;
        let given = value(place)?;
        let shown = match (&kind[..1], given) {
            ("s", given) => given.unwrap_or_default().to_owned(),
            ("L", None) => "NULL".to_owned(),
            ("L", Some(text)) => format!("'{}'", text.replace('\'', "''")),
            ("I", Some(text)) => identifier(text),
            ("I", None) => {
                let message = "null values cannot be formatted as an SQL identifier";
                return Err(failed(SqlState::INVALID_PARAMETER_VALUE, message));
            }
            _ => return Err(unknown()),
        };
        let pad = width.trim_start_matches('-').parse::<usize>().unwrap_or(0);
        match width.starts_with('-') {
            true => out.push_str(&format!("{shown:<pad$}")),
            false => out.push_str(&format!("{shown:>pad$}")),
        }
        rest = &kind[1..];
    }
    out.push_str(rest);
    Ok(out)
}

fn identifier(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    match plain {
        true => text.to_owned(),
        false => format!("\"{}\"", text.replace('"', "\"\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::filled;

    #[test]
    fn patterns_are_filled_as_postgresql_fills_them() {
        let values = [Some("a"), Some("b c"), Some("it's"), None];
        let fill = |pattern| filled(pattern, |place| Ok(values[place])).expect("a pattern");
        assert_eq!(fill("%s %I %L %s%%"), "a \"b c\" 'it''s' %");
        assert_eq!(fill("%2$s %1$s|%1$3s|%1$-3s|"), "b c a|  a|a  |");
        assert!(filled("%d", |_| Ok(None)).is_err() && filled("%", |_| Ok(None)).is_err());
    }
}
