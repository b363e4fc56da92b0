//! jsonb: `->`, `->>`, `#>`, `#>>`, `?`, `?|`, `?&`, and what they are called as functions.
//!
//! Invariant: jsonb is held in its normal form, so a part of it is a slice, in normal form as well.

pub(super) mod build;
mod documents;
mod edit;
mod lists;

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int32Array, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, TypeSignature};
use segue_types::{SqlState, SqlType, UserError};

use super::{general, simple};

/// All of them.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let by_key = || {
        let exact = |key| TypeSignature::Exact(vec![DataType::Utf8, key]);
        TypeSignature::OneOf(vec![exact(DataType::Int64), exact(DataType::Utf8)])
    };
    let texts = || TypeSignature::Exact(vec![DataType::Utf8, DataType::Utf8]);
    let one = || TypeSignature::Exact(vec![DataType::Utf8]);
    let path = || TypeSignature::Any(2);
    let words = || TypeSignature::Variadic(vec![DataType::Utf8]);
    let (jsonb, text) = (SqlType::Jsonb, SqlType::Text);
    let boolean: general::Returns = |_| Ok(general::typed(&SqlType::Boolean));
    let gets = vec![
        general::function("jsonb_exists_any", with_keys, boolean, |columns, _| {
            exist(columns, |document, keys| keys.iter().any(|key| is_there(document, key)))
        }),
        general::function("jsonb_exists_all", with_keys, boolean, |columns, _| {
            exist(columns, |document, keys| keys.iter().all(|key| is_there(document, key)))
        }),
        simple::of_type("jsonb_get", by_key(), &jsonb, |c| by_keys(c, str::to_owned_value)),
        simple::of_type("jsonb_get_text", by_key(), &text, |c| by_keys(c, shown)),
        simple::of_type("jsonb_get_path", path(), &jsonb, |c| by_paths(c, str::to_owned_value)),
        simple::of_type("jsonb_get_path_text", path(), &text, |c| by_paths(c, shown)),
        simple::of_type("jsonb_path", words(), &jsonb, |c| by_words(c, str::to_owned_value)),
        simple::of_type("jsonb_path_text", words(), &text, |c| by_words(c, shown)),
        simple::of_type("jsonb_exists", texts(), &SqlType::Boolean, exists),
        simple::of_type("jsonb_typeof", one(), &text, type_names),
        simple::of_type("jsonb_array_length", one(), &SqlType::Integer, lengths),
    ];
    let edits = [gets, edit::functions(), lists::functions()].concat();
    let edits = edits.into_iter().map(|function| {
        let documents = match function.name() {
            "as_jsonb" => 0,
            "jsonb_concat" | "jsonb_contains" => 2,
            _ => 1,
        };
        documents::taking(documents, function)
    });
    build::functions().into_iter().chain(edits).collect()
}

/// What becomes of a part that was found.
type Show = fn(&str) -> Option<String>;

trait Owned {
    /// The part as it is.
    fn to_owned_value(&self) -> Option<String>;
}

impl Owned for str {
    fn to_owned_value(&self) -> Option<String> {
        Some(self.to_owned())
    }
}

/// A part as text: a string without its quotes, null as NULL.
fn shown(part: &str) -> Option<String> {
    match part.as_bytes().first() {
        Some(b'"') => Some(unquoted(part)),
        Some(b'n') => None,
        _ => Some(part.to_owned()),
    }
}

fn unquoted(text: &str) -> String {
    serde_json::from_str(text).expect("jsonb is held in its normal form")
}

fn by_keys(columns: &[ArrayRef], show: Show) -> Result<ArrayRef> {
    let mut found = StringBuilder::new();
    let documents = columns[0].as_string::<i32>().iter();
    if columns[1].data_type() == &DataType::Int64 {
        for (document, index) in documents.zip(columns[1].as_primitive::<Int64Type>()) {
            let part = document.zip(index).and_then(|(document, index)| item(document, index));
            found.append_option(part.and_then(show));
        }
    } else {
        for (document, key) in documents.zip(columns[1].as_string::<i32>()) {
            let part = document.zip(key).and_then(|(document, key)| member(document, key));
            found.append_option(part.and_then(show));
        }
    }
    Ok(Arc::new(found.finish()))
}

fn by_paths(columns: &[ArrayRef], show: Show) -> Result<ArrayRef> {
    let mut found = StringBuilder::new();
    for (document, path) in
        columns[0].as_string::<i32>().iter().zip(columns[1].as_list::<i32>().iter())
    {
        let path = path.map(|path| cast(&path, &DataType::Utf8)).transpose()?;
        let part = document.zip(path.as_ref()).and_then(|(document, path)| {
            path.as_string::<i32>().iter().try_fold(document, |part, step| stepped(part, step?))
        });
        found.append_option(part.and_then(show));
    }
    Ok(Arc::new(found.finish()))
}

fn by_words(columns: &[ArrayRef], show: Show) -> Result<ArrayRef> {
    let mut found = StringBuilder::new();
    for (row, document) in columns[0].as_string::<i32>().iter().enumerate() {
        let step = |column: &ArrayRef| {
            let words = column.as_string::<i32>();
            words.iter().nth(row).flatten().map(str::to_owned)
        };
        let mut steps = columns[1..].iter().map(step);
        let part = document
            .and_then(|document| steps.try_fold(document, |part, step| stepped(part, &step?)));
        found.append_option(part.and_then(show));
    }
    Ok(Arc::new(found.finish()))
}

/// A step of a path: a key, or a place where the document is an array.
fn stepped<'a>(document: &'a str, step: &str) -> Option<&'a str> {
    if document.starts_with('[') {
        item(document, step.parse().ok()?)
    } else {
        member(document, step)
    }
}

fn exists(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let pairs = columns[0].as_string::<i32>().iter().zip(columns[1].as_string::<i32>());
    let is_there = |(document, key)| is_there(document, key);
    let found: BooleanArray =
        pairs.map(|(document, key)| document.zip(key).map(is_there)).collect();
    Ok(Arc::new(found))
}

/// Whether a text is a key of an object, or an item of an array, or the document itself.
fn is_there(document: &str, key: &str) -> bool {
    member(document, key).is_some()
        || document.starts_with(['[', '"'])
            && parts(document).any(|part| part.starts_with('"') && unquoted(part) == key)
}

fn with_keys(given: &[DataType]) -> Option<Vec<DataType>> {
    let keys = SqlType::Array(Box::new(SqlType::Text)).arrow_type();
    (given.len() == 2).then(|| vec![DataType::Utf8, keys])
}

fn exist(columns: &[ArrayRef], hold: fn(&str, &[&str]) -> bool) -> Result<ArrayRef> {
    let documents = columns[0].as_string::<i32>().iter();
    let found = documents.zip(columns[1].as_list::<i32>().iter()).map(|(document, keys)| {
        let Some((document, keys)) = document.zip(keys) else { return Ok(None) };
        let keys = cast(&keys, &DataType::Utf8)?;
        let keys = keys.as_string::<i32>().iter().flatten().collect::<Vec<_>>();
        Ok(Some(hold(document, &keys)))
    });
    Ok(Arc::new(found.collect::<Result<BooleanArray>>()?))
}

fn type_names(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let name = |document: &str| match document.as_bytes().first() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "boolean",
        Some(b'n') => "null",
        _ => "number",
    };
    let mut names = StringBuilder::new();
    for document in columns[0].as_string::<i32>() {
        names.append_option(document.map(name));
    }
    Ok(Arc::new(names.finish()))
}

fn lengths(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let length = |document: &str| {
        if !document.starts_with('[') {
            let state = SqlState::INVALID_PARAMETER_VALUE;
            let error = UserError::new(state, "cannot get array length of a non-array");
            return Err(DataFusionError::External(Box::new(error)));
        }
        Ok(i32::try_from(parts(document).count()).unwrap_or(i32::MAX))
    };
    let documents = columns[0].as_string::<i32>().iter();
    let lengths = documents.map(|document| document.map(length).transpose());
    Ok(Arc::new(lengths.collect::<Result<Int32Array>>()?))
}

/// The element of an array, from its end for a negative place.
fn item(document: &str, index: i64) -> Option<&str> {
    if !document.starts_with('[') {
        return None;
    }
    if index >= 0 {
        return parts(document).nth(usize::try_from(index).ok()?);
    }
    let all: Vec<&str> = parts(document).collect();
    let back = usize::try_from(index.unsigned_abs()).ok()?;
    all.len().checked_sub(back).map(|place| all[place])
}

/// The quoted names and the values of an object; nothing of other documents.
fn members(document: &str) -> impl Iterator<Item = (&str, &str)> {
    let object = document.starts_with('{');
    parts(document).filter(move |_| object).map(|part| {
        let (name, value) = part.split_at(end_of_string(part));
        (name, value.strip_prefix(": ").expect("jsonb is held in its normal form"))
    })
}

fn member<'a>(document: &'a str, key: &str) -> Option<&'a str> {
    members(document).find_map(|(name, value)| {
        let is_it = if name.contains('\\') {
            unquoted(name) == key
        } else {
            name.get(1..name.len() - 1) == Some(key)
        };
        is_it.then_some(value)
    })
}

/// Just behind the quote that ends the string at the beginning of `text`.
fn end_of_string(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// The elements of an array, or the members of an object; a scalar is its own one part.
fn parts(document: &str) -> impl Iterator<Item = &str> {
    let bytes = document.as_bytes();
    let nested = document.starts_with(['[', '{']);
    let (mut at, last) = if nested { (1, bytes.len() - 1) } else { (0, bytes.len()) };
    std::iter::from_fn(move || {
        if at >= last {
            return None;
        }
        let start = at;
        let mut depth = 0;
        while at < last {
            match bytes[at] {
                b'"' => at += end_of_string(&document[at..]) - 1,
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth -= 1,
                b',' if depth == 0 && nested => break,
                _ => {}
            }
            at += 1;
        }
        let part = &document[start..at];
        // Over the comma and the blank behind it.
        at += 2;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::{item, member, parts, shown, stepped};

    #[test]
    fn parts_of_a_document_are_slices_of_it() {
        let document = r#"{"a": [1, {"x": ", ]"}, "é\\"], "b\"c": null, "d": {}}"#;
        assert_eq!(parts(document).count(), 3);
        let array = member(document, "a").expect("it is there");
        assert_eq!(parts(array).collect::<Vec<_>>(), ["1", r#"{"x": ", ]"}"#, r#""é\\""#]);
        assert_eq!(item(array, -1), Some(r#""é\\""#));
        assert_eq!(item(array, 3), None);
        assert_eq!(member(document, "b\"c"), Some("null"));
        assert_eq!(member(document, "e"), None);
        assert_eq!(stepped(array, "1").and_then(|part| stepped(part, "x")), Some("\", ]\""));
        assert_eq!(parts("[]").count() + parts("{}").count(), 0);
    }

    #[test]
    fn a_part_as_text_has_no_quotes_and_null_is_none() {
        assert_eq!(shown(r#""a\nb""#).as_deref(), Some("a\nb"));
        assert_eq!(shown("null"), None);
        assert_eq!(shown("[1, 2]").as_deref(), Some("[1, 2]"));
    }
}
