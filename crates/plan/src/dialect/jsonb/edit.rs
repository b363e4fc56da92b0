//! jsonb out of jsonb: `||`, `-`, `#-`, `@>`, `jsonb_set`, `jsonb_insert`, `jsonb_strip_nulls`, `jsonb_pretty`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, TypeSignature};
use segue_types::{SqlState, SqlType};

use super::super::general::{self, failed};
use super::super::simple;
use super::build::{Members, string};
use super::{item, member, members, parts, unquoted};

/// All of them.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let texts = |count| TypeSignature::Exact(vec![DataType::Utf8; count]);
    let (jsonb, boolean) = (SqlType::Jsonb, SqlType::Boolean);
    let returns: general::Returns = |_| Ok(general::typed(&SqlType::Jsonb));
    vec![
        simple::of_type("jsonb_concat", texts(2), &jsonb, |c| pairs(c, |a, b| Ok(concat(a, b)))),
        simple::of_type("jsonb_contains", texts(2), &boolean, |columns| {
            let both = columns[0].as_string::<i32>().iter().zip(columns[1].as_string::<i32>());
            let found = both.map(|(a, b)| a.zip(b).map(|(a, b)| contains(a, b)));
            Ok(Arc::new(found.collect::<BooleanArray>()))
        }),
        simple::of_type("jsonb_strip_nulls", texts(1), &jsonb, |c| each(c, stripped)),
        simple::of_type("jsonb_pretty", texts(1), &SqlType::Text, |c| {
            each(c, |document| pretty(document, 0))
        }),
        general::function("jsonb_delete", deletable, returns, delete),
        general::function("jsonb_delete_path", with_path, returns, delete_path),
        general::function("jsonb_set", with_value, returns, |c, _| placed(c, set)),
        general::function("jsonb_insert", with_value, returns, |c, _| placed(c, insert)),
    ]
}

fn each(columns: &[ArrayRef], change: fn(&str) -> String) -> Result<ArrayRef> {
    let documents = columns[0].as_string::<i32>().iter();
    Ok(Arc::new(documents.map(|document| document.map(change)).collect::<StringArray>()))
}

fn pairs(columns: &[ArrayRef], of: fn(&str, &str) -> Result<String>) -> Result<ArrayRef> {
    let both = columns[0].as_string::<i32>().iter().zip(columns[1].as_string::<i32>());
    let changed = both.map(|(a, b)| a.zip(b).map(|(a, b)| of(a, b)).transpose());
    Ok(Arc::new(changed.collect::<Result<StringArray>>()?))
}

fn array_of<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(", "))
}

pub(super) fn object(document: &str) -> Members {
    let mut object = Members::default();
    for (name, value) in members(document) {
        object.put(&unquoted(name), value.to_owned());
    }
    object
}

pub(super) fn concat(left: &str, right: &str) -> String {
    if left.starts_with('{') && right.starts_with('{') {
        let mut both = object(left);
        for (name, value) in members(right) {
            both.put(&unquoted(name), value.to_owned());
        }
        return both.document();
    }
    let items = |document| -> Vec<&str> {
        match str::starts_with(document, '[') {
            true => parts(document).collect(),
            false => vec![document],
        }
    };
    array_of(items(left).into_iter().chain(items(right)))
}

/// Whether the second document is in the first: `@>`.
pub(super) fn contains(whole: &str, part: &str) -> bool {
    match (kind(whole), kind(part)) {
        (b'{', b'{') => members(part).all(|(name, value)| {
            member(whole, &unquoted(name)).is_some_and(|found| within(found, value))
        }),
        (b'[', b'[') => parts(part).all(|item| parts(whole).any(|found| within(found, item))),
        // An array contains a scalar that is one of its items, though not inside other documents.
        (b'[', other) if other != b'{' => parts(whole).any(|found| same(found, part)),
        _ => same(whole, part),
    }
}

fn within(whole: &str, part: &str) -> bool {
    let nested = |document| matches!(kind(document), b'{' | b'[');
    match nested(whole) || nested(part) {
        true => kind(whole) == kind(part) && contains(whole, part),
        false => same(whole, part),
    }
}

fn kind(document: &str) -> u8 {
    match document.as_bytes()[0] {
        b'-' | b'0'..=b'9' => b'0',
        other => other,
    }
}

/// Scalars are equal, numbers also with other zeros behind the point.
fn same(left: &str, right: &str) -> bool {
    let shortest = |number: &str| match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => number.to_owned(),
    };
    left == right || kind(left) == b'0' && kind(right) == b'0' && shortest(left) == shortest(right)
}

fn stripped(document: &str) -> String {
    match kind(document) {
        b'{' => {
            let mut kept = Members::default();
            for (name, value) in members(document).filter(|(_, value)| *value != "null") {
                kept.put(&unquoted(name), stripped(value));
            }
            kept.document()
        }
        b'[' => {
            let items = parts(document).map(stripped).collect::<Vec<_>>();
            array_of(items.iter().map(String::as_str))
        }
        _ => document.to_owned(),
    }
}

fn pretty(document: &str, depth: usize) -> String {
    let inner = "    ".repeat(depth + 1);
    let lines = match kind(document) {
        b'{' => members(document)
            .map(|(name, value)| format!("{inner}{name}: {}", pretty(value, depth + 1)))
            .collect::<Vec<_>>(),
        b'[' => parts(document).map(|part| format!("{inner}{}", pretty(part, depth + 1))).collect(),
        _ => return document.to_owned(),
    };
    let (open, close) = (&document[..1], &document[document.len() - 1..]);
    let lines = lines.join(",\n");
    let end = if lines.is_empty() { "" } else { "\n" };
    format!("{open}\n{lines}{end}{}{close}", "    ".repeat(depth))
}

fn refused(message: &str) -> DataFusionError {
    failed(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// A key, a place or several keys.
fn deletable(given: &[DataType]) -> Option<Vec<DataType>> {
    let [_, what] = given else { return None };
    let what = match what {
        DataType::List(_) => SqlType::Array(Box::new(SqlType::Text)).arrow_type(),
        ty if ty.is_integer() => DataType::Int64,
        _ => DataType::Utf8,
    };
    Some(vec![DataType::Utf8, what])
}

fn delete(columns: &[ArrayRef], _: &[FieldRef]) -> Result<ArrayRef> {
    let documents = columns[0].as_string::<i32>();
    let changed = documents.iter().enumerate().map(|(row, document)| {
        let Some(document) = document.filter(|_| columns[1].is_valid(row)) else {
            return Ok(None);
        };
        let changed = match columns[1].data_type() {
            DataType::Int64 => {
                without_place(document, columns[1].as_primitive::<Int64Type>().value(row))
            }
            DataType::List(_) => {
                let keys = cast(&columns[1].as_list::<i32>().value(row), &DataType::Utf8)?;
                let mut keys = keys.as_string::<i32>().iter().flatten();
                keys.try_fold(document.to_owned(), |document, key| without_key(&document, key))
            }
            _ => without_key(document, columns[1].as_string::<i32>().value(row)),
        };
        changed.map(Some)
    });
    Ok(Arc::new(changed.collect::<Result<StringArray>>()?))
}

fn without_key(document: &str, key: &str) -> Result<String> {
    match kind(document) {
        b'{' => {
            let mut kept = object(document);
            kept.take(key);
            Ok(kept.document())
        }
        b'[' => {
            let gone = string(key);
            Ok(array_of(parts(document).filter(|part| *part != gone)))
        }
        _ => Err(refused("cannot delete from scalar")),
    }
}

fn without_place(document: &str, place: i64) -> Result<String> {
    match kind(document) {
        b'[' => {
            let count = parts(document).count() as i64;
            let gone = if place < 0 { place + count } else { place };
            let kept = parts(document).enumerate().filter(|(at, _)| *at as i64 != gone);
            Ok(array_of(kept.map(|(_, part)| part)))
        }
        b'{' => Err(refused("cannot delete from object using integer index")),
        _ => Err(refused("cannot delete from scalar")),
    }
}

fn path_type() -> DataType {
    SqlType::Array(Box::new(SqlType::Text)).arrow_type()
}

fn with_path(given: &[DataType]) -> Option<Vec<DataType>> {
    (given.len() == 2).then(|| vec![DataType::Utf8, path_type()])
}

fn path(column: &ArrayRef, row: usize) -> Result<Option<Vec<String>>> {
    let list = column.as_list::<i32>();
    if list.is_null(row) {
        return Ok(None);
    }
    let steps = cast(&list.value(row), &DataType::Utf8)?;
    Ok(steps.as_string::<i32>().iter().map(|step| step.map(str::to_owned)).collect())
}

fn delete_path(columns: &[ArrayRef], _: &[FieldRef]) -> Result<ArrayRef> {
    let documents = columns[0].as_string::<i32>().iter();
    let changed = documents.enumerate().map(|(row, document)| {
        let (Some(document), Some(path)) = (document, path(&columns[1], row)?) else {
            return Ok(None);
        };
        Placing::DELETE.apply(document, &path).map(Some)
    });
    Ok(Arc::new(changed.collect::<Result<StringArray>>()?))
}

/// A document, a path, a new value, and for `jsonb_set` whether what is not there is made, for `jsonb_insert` whether
/// it comes after.
fn with_value(given: &[DataType]) -> Option<Vec<DataType>> {
    let mut types = vec![DataType::Utf8, path_type(), DataType::Utf8];
    if given.len() == 4 {
        types.push(DataType::Boolean);
    }
    matches!(given.len(), 3 | 4).then_some(types)
}

fn placed(
    columns: &[ArrayRef],
    placing: for<'a> fn(&'a str, Option<bool>) -> Placing<'a>,
) -> Result<ArrayRef> {
    let (documents, values) = (columns[0].as_string::<i32>(), columns[2].as_string::<i32>());
    let changed = documents.iter().zip(values).enumerate().map(|(row, (document, value))| {
        let (Some(document), Some(value), Some(path)) = (document, value, path(&columns[1], row)?)
        else {
            return Ok(None);
        };
        let value = segue_formats::normalise_jsonb(value)
            .map_err(|error| failed(SqlState::INVALID_TEXT_REPRESENTATION, error.to_string()))?;
        let option = columns.get(3).map(|column| column.as_boolean());
        if option.is_some_and(|option| option.is_null(row)) {
            return Ok(None);
        }
        let option = option.map(|option| option.value(row));
        placing(&value, option).apply(document, &path).map(Some)
    });
    Ok(Arc::new(changed.collect::<Result<StringArray>>()?))
}

/// What happens at the end of a path.
#[derive(Clone, Copy)]
struct Placing<'a> {
    value: Option<&'a str>,
    at: At,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// In the place of what is there.
    There,
    /// The same, and a new member or item where nothing is.
    ThereOrNew,
    Before,
    After,
}

fn set(value: &str, create: Option<bool>) -> Placing<'_> {
    let at = if create.unwrap_or(true) { At::ThereOrNew } else { At::There };
    Placing { value: Some(value), at }
}

fn insert(value: &str, after: Option<bool>) -> Placing<'_> {
    let at = if after.unwrap_or(false) { At::After } else { At::Before };
    Placing { value: Some(value), at }
}

impl Placing<'_> {
    const DELETE: Placing<'static> = Placing { value: None, at: At::There };

    fn apply(self, document: &str, path: &[String]) -> Result<String> {
        let Some((step, rest)) = path.split_first() else { return Ok(document.to_owned()) };
        match kind(document) {
            b'{' => self.in_object(document, step, rest),
            b'[' => self.in_array(document, step, rest),
            _ => Err(refused("cannot set path in scalar")),
        }
    }

    fn in_object(self, document: &str, step: &str, rest: &[String]) -> Result<String> {
        let mut members = object(document);
        let found = member(document, step);
        match (rest.is_empty(), found) {
            (false, None) => {}
            (false, Some(inner)) if !inner.starts_with(['{', '[']) => {}
            (false, Some(inner)) => members.put(step, self.apply(inner, rest)?),
            (true, Some(_)) if matches!(self.at, At::Before | At::After) => {
                return Err(refused("cannot replace existing key"));
            }
            (true, None) if self.at == At::There => {}
            (true, _) => match self.value {
                Some(value) => members.put(step, value.to_owned()),
                None => drop(members.take(step)),
            },
        }
        Ok(members.document())
    }

    fn in_array(self, document: &str, step: &str, rest: &[String]) -> Result<String> {
        let place: i64 = step.parse().map_err(|_| {
            failed(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!("path element is not an integer: \"{step}\""),
            )
        })?;
        let mut items = parts(document).map(str::to_owned).collect::<Vec<_>>();
        let count = items.len() as i64;
        let place = if place < 0 { place + count } else { place };
        let there = (0..count).contains(&place);
        if !rest.is_empty() {
            if there && items[place as usize].starts_with(['{', '[']) {
                let inner = item(document, place).expect("it is there");
                items[place as usize] = self.apply(inner, rest)?;
            }
        } else {
            match self.value {
                None if there => drop(items.remove(place as usize)),
                Some(value) if there => match self.at {
                    At::There | At::ThereOrNew => items[place as usize] = value.to_owned(),
                    At::Before => items.insert(place as usize, value.to_owned()),
                    At::After => items.insert(place as usize + 1, value.to_owned()),
                },
                Some(value) if self.at != At::There => {
                    let end = if place < 0 { 0 } else { items.len() };
                    items.insert(end, value.to_owned());
                }
                _ => {}
            }
        }
        Ok(array_of(items.iter().map(String::as_str)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Placing, concat, contains, insert, pretty, set, stripped};

    #[test]
    fn a_document_contains_its_parts_wherever_they_stand() {
        // The verdicts are PostgreSQL 15's.
        let cases = [
            (r#"{"a": 1, "b": {"c": [1, 2]}}"#, r#"{"b": {"c": [2]}}"#, true),
            (r#"["foo", "bar"]"#, r#""bar""#, true),
            (r#""bar""#, r#"["bar"]"#, false),
            ("[1, [1, 3]]", "[1, 3]", false),
            ("[[1, 2]]", "[[2]]", true),
            ("[1.0, 2]", "[1]", true),
            (r#"{"a": {"b": 1}}"#, r#"{"b": 1}"#, false),
            ("[[1, 2]]", "[1]", false),
        ];
        for (whole, part, expected) in cases {
            assert_eq!(contains(whole, part), expected, "{whole} @> {part}");
        }
    }

    #[test]
    fn documents_are_joined_changed_and_shown() {
        assert_eq!(concat(r#"{"a": 1}"#, r#"{"a": 2, "b": 3}"#), r#"{"a": 2, "b": 3}"#);
        assert_eq!(concat("1", "[2, 3]"), "[1, 2, 3]");
        assert_eq!(stripped(r#"{"a": null, "b": [null, {"c": null}]}"#), r#"{"b": [null, {}]}"#);
        let path = ["a".to_owned(), "-1".to_owned()];
        let document = r#"{"a": [1, 2]}"#;
        let apply = |placing: Placing<'_>| placing.apply(document, &path).expect("it is there");
        assert_eq!(apply(set("9", None)), r#"{"a": [1, 9]}"#);
        assert_eq!(apply(insert("9", None)), r#"{"a": [1, 9, 2]}"#);
        assert_eq!(apply(Placing::DELETE), r#"{"a": [1]}"#);
        assert_eq!(pretty(r#"{"a": []}"#, 0), "{\n    \"a\": [\n    ]\n}");
    }
}
