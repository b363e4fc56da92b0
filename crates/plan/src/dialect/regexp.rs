//! Regular expressions in PostgreSQL's words: `regexp_match`, `regexp_matches`, `regexp_split_to_array`,
//! `regexp_count`, `regexp_substr`.
//!
//! Patterns are those of the crate `regex`, with PostgreSQL's word boundaries and its meaning of a dot.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, ListArray, ListBuilder, StringArray, StringBuilder,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;
use regex::{Captures, Regex, RegexBuilder};
use segue_types::{SqlState, SqlType};

use super::general::{self, failed};

/// All of them. `regexp_matches_list` has what `regexp_matches` makes rows of.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let returns_texts: general::Returns = |_| Ok(general::typed(&texts()));
    let returns_lists: general::Returns =
        |_| Ok(general::typed(&SqlType::Array(Box::new(texts()))));
    let whole: general::Returns = |_| Ok(general::typed(&SqlType::Integer));
    let text: general::Returns = |_| Ok(general::typed(&SqlType::Text));
    vec![
        general::function("regexp_match", with_flags, returns_texts, first_match),
        general::function("regexp_matches_list", with_flags, returns_lists, all_matches),
        general::function("regexp_split_to_array", with_flags, returns_texts, split),
        general::function("regexp_count", with_start, whole, count),
        general::function("regexp_substr", with_start, text, substr),
        super::regexp_replace::function(),
    ]
}

fn texts() -> SqlType {
    SqlType::Array(Box::new(SqlType::Text))
}

fn with_flags(given: &[DataType]) -> Option<Vec<DataType>> {
    matches!(given.len(), 2 | 3).then(|| vec![DataType::Utf8; given.len()])
}

/// Text, pattern, where to begin, flags.
fn with_start(given: &[DataType]) -> Option<Vec<DataType>> {
    let all = [DataType::Utf8, DataType::Utf8, DataType::Int64, DataType::Utf8];
    (2..=4).contains(&given.len()).then(|| all[..given.len()].to_vec())
}

/// Patterns that were compiled for a batch: there are few different ones.
#[derive(Default)]
struct Compiled(HashMap<(String, String), Pattern>);

#[derive(Clone)]
pub(super) struct Pattern {
    pub(super) regex: Regex,
    pub(super) global: bool,
}

impl Compiled {
    fn get(&mut self, pattern: &str, flags: &str) -> Result<Pattern> {
        let key = (pattern.to_owned(), flags.to_owned());
        if let Some(known) = self.0.get(&key) {
            return Ok(known.clone());
        }
        let compiled = compile(pattern, flags)?;
        self.0.insert(key, compiled.clone());
        Ok(compiled)
    }
}

/// The pattern with its flags.
pub(super) fn compile(pattern: &str, flags: &str) -> Result<Pattern> {
    let mut builder = RegexBuilder::new(&translated(pattern));
    let (mut global, mut quoted) = (false, false);
    builder.dot_matches_new_line(true);
    for flag in flags.chars() {
        match flag {
            'g' => global = true,
            'i' => drop(builder.case_insensitive(true)),
            'c' => drop(builder.case_insensitive(false)),
            'n' | 'm' => drop(builder.multi_line(true).dot_matches_new_line(false)),
            's' | 't' => drop(builder.multi_line(false).dot_matches_new_line(true)),
            'p' => drop(builder.dot_matches_new_line(false)),
            'w' => drop(builder.multi_line(true)),
            'x' => drop(builder.ignore_whitespace(true)),
            'q' => quoted = true,
            other => {
                let message = format!("invalid regular expression option: \"{other}\"");
                return Err(failed(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        }
    }
    let built = if quoted { Regex::new(&regex::escape(pattern)) } else { builder.build() };
    let regex = built.map_err(|error| {
        let message = format!("invalid regular expression: {error}");
        failed(SqlState::try_from("2201B".to_owned()).expect("five characters"), message)
    })?;
    Ok(Pattern { regex, global })
}

/// PostgreSQL's `\m`, `\M`, `\y` and `\Y` as `regex` writes them.
fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('m') => out.push_str(r"\b{start}"),
            Some('M') => out.push_str(r"\b{end}"),
            Some('y') => out.push_str(r"\b"),
            Some('Y') => out.push_str(r"\B"),
            Some('Z') => out.push_str(r"\z"),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}

/// The groups of a match, or all of it when it has none.
fn groups(captures: &Captures<'_>) -> Vec<Option<String>> {
    let skip = usize::from(captures.len() > 1);
    captures.iter().skip(skip).map(|group| group.map(|group| group.as_str().to_owned())).collect()
}

/// Calls `of` with text, pattern and the row, `None` where one is NULL.
fn each<T>(
    columns: &[ArrayRef],
    flags_at: usize,
    mut of: impl FnMut(&str, &Pattern, usize) -> Result<T>,
) -> Result<Vec<Option<T>>> {
    let mut compiled = Compiled::default();
    let (given, patterns) = (columns[0].as_string::<i32>(), columns[1].as_string::<i32>());
    let rows = 0..given.len();
    let results = rows.map(|row| {
        if columns.iter().any(|column| column.is_null(row)) {
            return Ok(None);
        }
        let flags = columns.get(flags_at).map_or("", |flags| flags.as_string::<i32>().value(row));
        let pattern = compiled.get(patterns.value(row), flags)?;
        of(given.value(row), &pattern, row).map(Some)
    });
    results.collect()
}

fn lists(rows: Vec<Option<Vec<Option<String>>>>) -> ListArray {
    let field = Arc::new(Field::clone(&SqlType::Text.field("item", true)));
    let mut builder = ListBuilder::new(StringBuilder::new()).with_field(field);
    for row in rows {
        match row {
            Some(items) => {
                items.into_iter().for_each(|item| builder.values().append_option(item));
                builder.append(true);
            }
            None => builder.append(false),
        }
    }
    builder.finish()
}

fn first_match(columns: &[ArrayRef], _: &[FieldRef]) -> Result<ArrayRef> {
    let found = each(columns, 2, |text, pattern, _| {
        Ok(pattern.regex.captures(text).map(|captures| groups(&captures)))
    })?;
    Ok(Arc::new(lists(found.into_iter().map(Option::flatten).collect())))
}

/// One match, or with the flag `g` all.
fn all_matches(columns: &[ArrayRef], _: &[FieldRef]) -> Result<ArrayRef> {
    let found = each(columns, 2, |text, pattern, _| {
        let most = if pattern.global { usize::MAX } else { 1 };
        let matches = pattern.regex.captures_iter(text).take(most);
        Ok(matches.map(|captures| Some(groups(&captures))).collect::<Vec<_>>())
    })?;
    let lengths = found.iter().map(|found| found.as_ref().map_or(0, Vec::len));
    let offsets = OffsetBuffer::from_lengths(lengths);
    let nulls = NullBuffer::from(found.iter().map(Option::is_some).collect::<Vec<_>>());
    let items = lists(found.into_iter().flatten().flatten().collect());
    let field: FieldRef = Arc::new(Field::clone(&texts().field("item", true)));
    Ok(Arc::new(ListArray::new(field, offsets, Arc::new(items), Some(nulls))))
}

fn split(columns: &[ArrayRef], _: &[FieldRef]) -> Result<ArrayRef> {
    let found = each(columns, 2, |text, pattern, _| {
        let mut pieces = Vec::new();
        let mut from = 0;
        for found in pattern.regex.find_iter(text) {
            // An empty match splits between two characters, and nowhere else.
            if found.is_empty() && (found.start() == from && from == 0 || found.end() == text.len())
            {
                continue;
            }
            pieces.push(Some(text[from..found.start()].to_owned()));
            from = found.end();
        }
        pieces.push(Some(text[from..].to_owned()));
        Ok(pieces)
    })?;
    Ok(Arc::new(lists(found)))
}

/// The text from the character `start` on, which counts from 1.
fn rest<'a>(text: &'a str, columns: &[ArrayRef], row: usize) -> Result<&'a str> {
    let Some(starts) = columns.get(2) else { return Ok(text) };
    Ok(from_char(text, starts.as_primitive::<Int64Type>().value(row))?.1)
}

/// The text before and from the character `start` on, which counts from 1.
pub(super) fn from_char(text: &str, start: i64) -> Result<(&str, &str)> {
    let Some(skip) = usize::try_from(start).ok().and_then(|start| start.checked_sub(1)) else {
        let message = format!("invalid value for parameter \"start\": {start}");
        return Err(failed(SqlState::INVALID_PARAMETER_VALUE, message));
    };
    Ok(text.split_at(text.char_indices().nth(skip).map_or(text.len(), |(at, _)| at)))
}

fn count(columns: &[ArrayRef], _: &[FieldRef]) -> Result<ArrayRef> {
    let counts = each(columns, 3, |text, pattern, row| {
        let count = pattern.regex.find_iter(rest(text, columns, row)?).count();
        Ok(i32::try_from(count).unwrap_or(i32::MAX))
    })?;
    Ok(Arc::new(Int32Array::from(counts)))
}

fn substr(columns: &[ArrayRef], _: &[FieldRef]) -> Result<ArrayRef> {
    let found = each(columns, 3, |text, pattern, row| {
        let found = pattern.regex.find(rest(text, columns, row)?);
        Ok(found.map(|found| found.as_str().to_owned()))
    })?;
    Ok(Arc::new(found.into_iter().map(Option::flatten).collect::<StringArray>()))
}

#[cfg(test)]
mod tests {
    use super::{compile, groups};

    #[test]
    fn flags_and_word_boundaries_are_postgresqls() {
        let first = |pattern: &str, flags: &str, text: &str| {
            let pattern = compile(pattern, flags).expect("a pattern");
            pattern.regex.captures(text).map(|captures| groups(&captures))
        };
        let one = |text: &str| Some(vec![Some(text.to_owned())]);
        assert_eq!(first("Bc", "i", "abc"), one("bc"));
        assert_eq!(first("Bc", "ic", "abc"), None);
        assert_eq!(first(r"\mb\w*\M", "", "ab bc"), one("bc"));
        assert_eq!(first("a.b", "", "a\nb"), one("a\nb"));
        assert_eq!(first("a.b", "n", "a\nb"), None);
        assert_eq!(first("(a)(x)?", "", "ab"), Some(vec![Some("a".to_owned()), None]));
        assert_eq!(first("a.", "q", "a."), one("a."));
        assert!(compile("a", "y").is_err());
        assert!(compile("(", "").is_err());
    }
}
