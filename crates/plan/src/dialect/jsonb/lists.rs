//! The parts of documents as lists, which `unnest` makes into rows: `jsonb_array_elements`, `jsonb_each` and the like.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, ListArray, StringArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, TypeSignature};
use segue_types::{SqlState, SqlType};

use super::super::general::{self, failed};
use super::super::simple;
use super::{members, parts, shown, unquoted};

/// All of them. Their names are those of the functions in SQL, with `_list` behind.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let one = || TypeSignature::Exact(vec![DataType::Utf8]);
    let list = |item: &SqlType| SqlType::Array(Box::new(item.clone()));
    let pair = |value: SqlType| {
        SqlType::Struct(vec![("key".to_owned(), SqlType::Text), ("value".to_owned(), value)])
    };
    let jsonb: general::Returns = |_| Ok(general::typed(&SqlType::Jsonb));
    vec![
        simple::of_type("jsonb_array_elements_list", one(), &list(&SqlType::Jsonb), |columns| {
            texts(columns, &SqlType::Jsonb, |document| {
                items(document, |part| Some(part.to_owned()))
            })
        }),
        simple::of_type(
            "jsonb_array_elements_text_list",
            one(),
            &list(&SqlType::Text),
            |columns| texts(columns, &SqlType::Text, |document| items(document, shown)),
        ),
        simple::of_type("jsonb_object_keys_list", one(), &list(&SqlType::Text), |columns| {
            texts(columns, &SqlType::Text, keys)
        }),
        simple::of_type("jsonb_each_list", one(), &list(&pair(SqlType::Jsonb)), |columns| {
            pairs(columns, &SqlType::Jsonb, |value| Some(value.to_owned()))
        }),
        simple::of_type("jsonb_each_text_list", one(), &list(&pair(SqlType::Text)), |columns| {
            pairs(columns, &SqlType::Text, shown)
        }),
        // What unnest() forgets: that an item is jsonb.
        general::function("as_jsonb", general::any, jsonb, |columns, _| {
            Ok(Arc::clone(&columns[0]))
        }),
    ]
}

fn refused(message: &str) -> DataFusionError {
    failed(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn items(document: &str, show: fn(&str) -> Option<String>) -> Result<Vec<Option<String>>> {
    match document.as_bytes()[0] {
        b'[' => Ok(parts(document).map(show).collect()),
        b'{' => Err(refused("cannot extract elements from an object")),
        _ => Err(refused("cannot extract elements from a scalar")),
    }
}

fn keys(document: &str) -> Result<Vec<Option<String>>> {
    match document.as_bytes()[0] {
        b'{' => Ok(members(document).map(|(name, _)| Some(unquoted(name))).collect()),
        b'[' => Err(refused("cannot call jsonb_object_keys on an array")),
        _ => Err(refused("cannot call jsonb_object_keys on a scalar")),
    }
}

fn texts(
    columns: &[ArrayRef],
    item: &SqlType,
    of: impl Fn(&str) -> Result<Vec<Option<String>>>,
) -> Result<ArrayRef> {
    let mut all = Vec::new();
    let mut rows = Rows::default();
    for document in columns[0].as_string::<i32>() {
        let found = document.map(&of).transpose()?;
        rows.add(found.as_ref().map(Vec::len));
        all.extend(found.into_iter().flatten());
    }
    Ok(rows.list(item, Arc::new(StringArray::from(all))))
}

fn pairs(
    columns: &[ArrayRef],
    value: &SqlType,
    show: fn(&str) -> Option<String>,
) -> Result<ArrayRef> {
    let (mut names, mut values) = (Vec::new(), Vec::new());
    let mut rows = Rows::default();
    for document in columns[0].as_string::<i32>() {
        match document {
            Some(document) if document.starts_with('{') => {
                let before = names.len();
                for (name, part) in members(document) {
                    names.push(unquoted(name));
                    values.push(show(part));
                }
                rows.add(Some(names.len() - before));
            }
            Some(_) => return Err(refused("cannot call jsonb_each on a non-object")),
            None => rows.add(None),
        }
    }
    let item = SqlType::Struct(vec![
        ("key".to_owned(), SqlType::Text),
        ("value".to_owned(), value.clone()),
    ]);
    let DataType::Struct(fields) = item.arrow_type() else { unreachable!("it is a struct") };
    let fields: Fields = fields;
    let columns: Vec<ArrayRef> =
        vec![Arc::new(StringArray::from(names)), Arc::new(StringArray::from(values))];
    let structs = StructArray::try_new(fields, columns, None)?;
    Ok(rows.list(&item, Arc::new(structs)))
}

/// How many items each row has.
#[derive(Default)]
struct Rows {
    lengths: Vec<usize>,
    valid: Vec<bool>,
}

impl Rows {
    fn add(&mut self, length: Option<usize>) {
        self.lengths.push(length.unwrap_or(0));
        self.valid.push(length.is_some());
    }

    fn list(self, item: &SqlType, items: ArrayRef) -> ArrayRef {
        let field: FieldRef = Arc::new(Field::clone(&item.field("item", true)));
        let offsets = OffsetBuffer::from_lengths(self.lengths);
        Arc::new(ListArray::new(field, offsets, items, Some(NullBuffer::from(self.valid))))
    }
}
