//! `regexp_replace(text, pattern, replacement [, start [, n]] [, flags])`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;
use regex::Captures;
use segue_types::{SqlState, SqlType};

use super::general::{self, failed};
use super::regexp::{Pattern, compile, from_char};

/// The function.
pub(super) fn function() -> ScalarUDF {
    let text: general::Returns = |_| Ok(general::typed(&SqlType::Text));
    general::function("regexp_replace", arguments, text, replaced)
}

fn arguments(given: &[DataType]) -> Option<Vec<DataType>> {
    let (text, whole) = (DataType::Utf8, DataType::Int64);
    let mut types = vec![text.clone(); 3];
    match given {
        [_, _, _] => {}
        [_, _, _, start] if start.is_integer() => types.push(whole),
        [_, _, _, _] => types.push(text),
        [_, _, _, start, n] if start.is_integer() && n.is_integer() => {
            types.extend([whole.clone(), whole])
        }
        [_, _, _, start, n, _] if start.is_integer() && n.is_integer() => {
            types.extend([whole.clone(), whole, text]);
        }
        _ => return None,
    }
    Some(types)
}

fn replaced(columns: &[ArrayRef], _: &[FieldRef]) -> Result<ArrayRef> {
    let text_at =
        |place: usize| columns.get(place).and_then(|column| column.as_string_opt::<i32>());
    let number = |place: usize, row: usize| {
        let numbers = columns.get(place)?.as_primitive_opt::<Int64Type>()?;
        Some(numbers.value(row))
    };
    let [texts, patterns, templates] = [0, 1, 2].map(|place| columns[place].as_string::<i32>());
    let flags = if columns.len() == 4 { text_at(3) } else { text_at(5) };
    let mut known: Option<(&str, &str, Pattern)> = None;
    let mut out = StringBuilder::new();
    for row in 0..texts.len() {
        if columns.iter().any(|column| column.is_null(row)) {
            out.append_null();
            continue;
        }
        let key = (patterns.value(row), flags.map_or("", |flags| flags.value(row)));
        if known.as_ref().is_none_or(|(pattern, flags, _)| (*pattern, *flags) != key) {
            known = Some((key.0, key.1, compile(key.0, key.1)?));
        }
        let (_, _, pattern) = known.as_ref().expect("it was put there");
        let (kept, text) = from_char(texts.value(row), number(3, row).unwrap_or(1))?;
        let which = match number(4, row) {
            None => {
                if pattern.global {
                    0
                } else {
                    1
                }
            }
            Some(n) => usize::try_from(n).map_err(|_| {
                let message = format!("invalid value for parameter \"n\": {n}");
                failed(SqlState::INVALID_PARAMETER_VALUE, message)
            })?,
        };
        out.append_value(format!("{kept}{}", with(text, pattern, templates.value(row), which)));
    }
    Ok(Arc::new(out.finish()))
}

/// The text with its match of this number replaced, or with all of them for 0.
fn with(text: &str, pattern: &Pattern, template: &str, which: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (place, captures) in pattern.regex.captures_iter(text).enumerate() {
        if which != 0 && which != place + 1 {
            continue;
        }
        let found = captures.get(0).expect("a match has a whole");
        out.push_str(&text[from..found.start()]);
        expand(template, &captures, &mut out);
        from = found.end();
        if which != 0 {
            break;
        }
    }
    out.push_str(&text[from..]);
    out
}

/// `\1` is a group, `\&` the match, `\\` a backslash.
fn expand(template: &str, captures: &Captures<'_>, out: &mut String) {
    let mut chars = template.chars();
    while let Some(next) = chars.next() {
        if next != '\\' {
            out.push(next);
            continue;
        }
        match chars.next() {
            Some('&') => out.push_str(&captures[0]),
            Some(digit @ '1'..='9') => {
                let group = digit as usize - '0' as usize;
                out.push_str(captures.get(group).map_or("", |group| group.as_str()));
            }
            Some('\\') | None => out.push('\\'),
            Some(other) => out.extend(['\\', other]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::regexp::compile;
    use super::with;

    #[test]
    fn matches_are_replaced_by_their_number() {
        let with = |text, pattern, flags, template, which| {
            with(text, &compile(pattern, flags).expect("a pattern"), template, which)
        };
        assert_eq!(with("foobarbaz", "b..", "", "X", 1), "fooXbaz");
        assert_eq!(with("foobarbaz", "b(..)", "g", "X\\1Y", 0), "fooXarYXazY");
        assert_eq!(with("A function", "a|e|i|o|u", "i", "X", 3), "A functXon");
        assert_eq!(with("abc", "b", "", "[\\&\\\\]", 1), "a[b\\]c");
    }
}
