//! PostgreSQL's text of arrays, `{1,NULL,"a \"b\""}`, and of rows, `(1,,"a b")`.

use super::append;
use crate::ValueError;
use crate::columns::Column;

/// How deep literals may nest.
const DEPTH_MAX: usize = 64;

/// Appends an array.
pub(super) fn append_array(
    ends: &mut Vec<i32>,
    items: &mut Column,
    text: &str,
) -> Result<(), ValueError> {
    let invalid = || ValueError::invalid(text, "array");
    let body = text.trim_ascii().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    for element in elements(body.ok_or_else(invalid)?, '{', '}').ok_or_else(invalid)? {
        match element {
            Element::Bare(bare) if bare.is_empty() => return Err(invalid()),
            Element::Bare(bare) if bare.eq_ignore_ascii_case("null") => items.append_null(),
            Element::Bare(value) | Element::Quoted(value) => append(items, &value)?,
        }
    }
    ends.push(i32::try_from(items.len()).map_err(|_| invalid())?);
    Ok(())
}

/// Appends a row.
pub(super) fn append_row(
    len: &mut usize,
    members: &mut [Column],
    text: &str,
) -> Result<(), ValueError> {
    let invalid = || ValueError::invalid(text, "row");
    let body = text.trim_ascii().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let mut values = elements(body.ok_or_else(invalid)?, '(', ')').ok_or_else(invalid)?;
    if values.is_empty() {
        values.push(Element::Bare(String::new()));
    }
    if values.len() != members.len() {
        return Err(invalid());
    }
    for (member, value) in members.iter_mut().zip(values) {
        match value {
            Element::Bare(bare) if bare.is_empty() => member.append_null(),
            Element::Bare(value) | Element::Quoted(value) => append(member, &value)?,
        }
    }
    *len += 1;
    Ok(())
}

enum Element {
    Bare(String),
    Quoted(String),
}

/// The elements between commas. Nested literals are kept whole. `None` when quotes or braces do
/// not close.
fn elements(body: &str, open: char, close: char) -> Option<Vec<Element>> {
    let mut elements = Vec::new();
    let mut value = String::new();
    let (mut quoted, mut in_quotes, mut depth) = (false, false, 0_usize);
    let mut chars = body.chars().peekable();
    if body.trim_ascii().is_empty() {
        return Some(elements);
    }
    while let Some(next) = chars.next() {
        match next {
            '\\' => {
                let escaped = chars.next()?;
                if depth > 0 {
                    value.push(next);
                }
                value.push(escaped);
            }
            '"' if depth > 0 => {
                in_quotes = !in_quotes;
                value.push(next);
            }
            '"' if in_quotes && chars.peek() == Some(&'"') => {
                chars.next();
                value.push('"');
            }
            '"' => {
                in_quotes = !in_quotes;
                quoted = true;
            }
            _ if in_quotes => value.push(next),
            ',' if depth == 0 => {
                elements.push(element(&mut value, &mut quoted));
            }
            _ => {
                if next == open {
                    depth += 1;
                } else if next == close {
                    depth = depth.checked_sub(1)?;
                }
                if depth > DEPTH_MAX {
                    return None;
                }
                value.push(next);
            }
        }
    }
    elements.push(element(&mut value, &mut quoted));
    (!in_quotes && depth == 0).then_some(elements)
}

fn element(value: &mut String, quoted: &mut bool) -> Element {
    let text = std::mem::take(value);
    if std::mem::take(quoted) {
        Element::Quoted(text)
    } else {
        Element::Bare(text.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray};
    use arrow::util::display::array_value_to_string;
    use segue_types::SqlType;

    use crate::columns::Column;
    use crate::text::append;

    fn shown(ty: &SqlType, text: &str) -> Option<String> {
        let mut column = Column::of_type(ty);
        append(&mut column, text).ok()?;
        let array = column.finish(&ty.field("c", true));
        array_value_to_string(&array, 0).ok()
    }

    #[test]
    fn arrays_nest_quote_and_hold_nulls() {
        let ints = SqlType::Array(Box::new(SqlType::Integer));
        let texts = SqlType::Array(Box::new(SqlType::Text));
        assert_eq!(shown(&ints, "{1, NULL,3}").as_deref(), Some("[1, , 3]"));
        assert_eq!(shown(&ints, "{}").as_deref(), Some("[]"));
        assert_eq!(
            shown(&texts, r#"{a b,"c,\"d\"","NULL"}"#).as_deref(),
            Some("[a b, c,\"d\", NULL]")
        );
        let nested = SqlType::Array(Box::new(ints.clone()));
        assert_eq!(shown(&nested, "{{1,2},{3}}").as_deref(), Some("[[1, 2], [3]]"));
        for wrong in ["", "1", "{1", "{1,}", "{x}", "{\"1}", "{1}}"] {
            assert_eq!(shown(&ints, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn rows_take_as_many_values_as_they_have_members() {
        let members = vec![("a".to_owned(), SqlType::Integer), ("b".to_owned(), SqlType::Text)];
        let ty = SqlType::Struct(members);
        assert_eq!(shown(&ty, r#"(1,"x ""y""")"#).as_deref(), Some("{a: 1, b: x \"y\"}"));
        assert!(shown(&ty, "(1)").is_none());
        let mut column = Column::of_type(&ty);
        append(&mut column, "(,)").expect("a row of NULLs");
        let array = column.finish(&ty.field("c", true));
        assert!(array.as_struct().column(1).is_null(0));
    }
}
