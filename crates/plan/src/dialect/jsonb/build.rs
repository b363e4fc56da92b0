//! Values of any type as jsonb: `to_jsonb`, `jsonb_build_object`, `jsonb_build_array`, `jsonb_object`.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringArray};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;
use segue_types::{SqlState, SqlType, sql_type_of};

use super::super::general::{self, failed};
use super::super::text;

/// All of them.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let jsonb: general::Returns = |_| Ok(general::typed(&SqlType::Jsonb));
    let one = |given: &[DataType]| (given.len() == 1).then(|| given.to_vec());
    let function = general::function;
    vec![
        function("to_jsonb", one, jsonb, to_jsonb).with_aliases(["to_json", "row_to_json"]),
        function("jsonb_build_array", general::any, jsonb, array)
            .with_aliases(["json_build_array"]),
        function("jsonb_build_object", general::any, jsonb, object)
            .with_aliases(["json_build_object"]),
        function("jsonb_object", of_texts, jsonb, object_of_texts).with_aliases(["json_object"]),
    ]
}

/// The members of an object, in the order of jsonb: by length, then by bytes.
#[derive(Default)]
pub(crate) struct Members(BTreeMap<(usize, String), String>);

impl Members {
    /// The last of equal keys holds.
    pub(crate) fn put(&mut self, key: &str, value: String) {
        self.0.insert((key.len(), key.to_owned()), value);
    }

    pub(crate) fn take(&mut self, key: &str) -> Option<String> {
        self.0.remove(&(key.len(), key.to_owned()))
    }

    pub(crate) fn document(&self) -> String {
        let members = self.0.iter().map(|((_, key), value)| format!("{}: {value}", string(key)));
        format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
    }
}

/// A JSON string.
pub(crate) fn string(text: &str) -> String {
    serde_json::to_string(text).expect("a text is a JSON string")
}

/// A column, ready to be written as JSON row by row.
pub(crate) struct Writer {
    nulls: Option<NullBuffer>,
    values: Values,
}

enum Values {
    /// JSON already: numbers, booleans, jsonb.
    Plain(StringArray),
    /// To be put in quotes.
    Quoted(StringArray),
    List(ListArray, Box<Writer>),
    Record(Vec<(String, Writer)>),
}

impl Writer {
    pub(crate) fn new(array: &ArrayRef, field: &Field) -> Result<Writer> {
        let texts = || text::shown(array);
        let values = match array.data_type() {
            DataType::List(item) => {
                let list = array.as_list::<i32>().clone();
                let items = Writer::new(list.values(), item)?;
                Values::List(list, Box::new(items))
            }
            DataType::Struct(members) => {
                let columns = members.iter().zip(array.as_struct().columns());
                let writers = columns.enumerate().map(|(place, (member, column))| {
                    Ok((member_name(member, place), Writer::new(column, member)?))
                });
                Values::Record(writers.collect::<Result<_>>()?)
            }
            ty if is_plain(ty) || sql_type_of(field) == Some(SqlType::Jsonb) => {
                Values::Plain(texts()?.as_string::<i32>().clone())
            }
            DataType::Timestamp(_, zone) => {
                let minutes = if zone.is_some() { ":00" } else { "" };
                let shown = texts()?;
                let moments = shown.as_string::<i32>().iter();
                let iso = |text: &str| format!("{}{minutes}", text.replacen(' ', "T", 1));
                Values::Quoted(moments.map(|text| text.map(iso)).collect())
            }
            _ => Values::Quoted(cast(&texts()?, &DataType::Utf8)?.as_string::<i32>().clone()),
        };
        Ok(Writer { nulls: array.logical_nulls(), values })
    }

    /// The value of a row; NULL is null.
    pub(crate) fn json(&self, row: usize) -> String {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return "null".to_owned();
        }
        match &self.values {
            // Floats that are no numbers in JSON.
            Values::Plain(texts) if texts.value(row).ends_with(['N', 'y']) => {
                string(texts.value(row))
            }
            Values::Plain(texts) => texts.value(row).to_owned(),
            Values::Quoted(texts) => string(texts.value(row)),
            Values::List(list, items) => {
                let offsets = list.value_offsets();
                let items = (offsets[row]..offsets[row + 1]).map(|item| items.json(item as usize));
                format!("[{}]", items.collect::<Vec<_>>().join(", "))
            }
            Values::Record(members) => {
                let mut object = Members::default();
                for (name, member) in members {
                    object.put(name, member.json(row));
                }
                object.document()
            }
        }
    }
}

fn is_plain(ty: &DataType) -> bool {
    ty.is_numeric() || matches!(ty, DataType::Boolean | DataType::Null)
}

/// DataFusion calls the members of `ROW(…)` c0, c1, …; PostgreSQL f1, f2, ….
fn member_name(member: &Field, place: usize) -> String {
    match member.name() == &format!("c{place}") {
        true => format!("f{}", place + 1),
        false => member.name().clone(),
    }
}

fn writers(columns: &[ArrayRef], fields: &[FieldRef]) -> Result<Vec<Writer>> {
    columns.iter().zip(fields).map(|(column, field)| Writer::new(column, field)).collect()
}

fn rows(columns: &[ArrayRef]) -> usize {
    columns.first().map_or(1, Array::len)
}

fn to_jsonb(columns: &[ArrayRef], fields: &[FieldRef]) -> Result<ArrayRef> {
    let writer = Writer::new(&columns[0], &fields[0])?;
    let nulls = columns[0].logical_nulls();
    let is_null = |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    let json = (0..rows(columns)).map(|row| (!is_null(row)).then(|| writer.json(row)));
    Ok(Arc::new(json.collect::<StringArray>()))
}

fn array(columns: &[ArrayRef], fields: &[FieldRef]) -> Result<ArrayRef> {
    let writers = writers(columns, fields)?;
    let json = (0..rows(columns)).map(|row| {
        let items = writers.iter().map(|writer| writer.json(row)).collect::<Vec<_>>();
        Some(format!("[{}]", items.join(", ")))
    });
    Ok(Arc::new(json.collect::<StringArray>()))
}

fn object(columns: &[ArrayRef], fields: &[FieldRef]) -> Result<ArrayRef> {
    if columns.len() % 2 == 1 {
        let message = "argument list must have even number of elements";
        return Err(failed(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    let writers = writers(columns, fields)?;
    let keys = columns.iter().step_by(2).map(text::shown).collect::<Result<Vec<_>>>()?;
    let json = (0..rows(columns)).map(|row| {
        let mut members = Members::default();
        for (place, keys) in keys.iter().enumerate() {
            let keys = keys.as_string::<i32>();
            if keys.is_null(row) {
                let message = format!("argument {}: key must not be null", 2 * place + 1);
                return Err(failed(SqlState::INVALID_PARAMETER_VALUE, message));
            }
            members.put(keys.value(row), writers[2 * place + 1].json(row));
        }
        Ok(Some(members.document()))
    });
    Ok(Arc::new(json.collect::<Result<StringArray>>()?))
}

fn of_texts(given: &[DataType]) -> Option<Vec<DataType>> {
    let texts = SqlType::Array(Box::new(SqlType::Text)).arrow_type();
    let is_list = |ty: &DataType| matches!(ty, DataType::List(_) | DataType::Utf8);
    (matches!(given.len(), 1 | 2) && given.iter().all(is_list)).then(|| vec![texts; given.len()])
}

/// `jsonb_object('{key,value,…}')`, `jsonb_object(keys, values)`
fn object_of_texts(columns: &[ArrayRef], _: &[FieldRef]) -> Result<ArrayRef> {
    let texts = |column: &ArrayRef, row: usize| {
        let list = column.as_list::<i32>();
        list.is_valid(row).then(|| list.value(row).as_string::<i32>().clone())
    };
    let json = (0..rows(columns)).map(|row| {
        let Some(first) = texts(&columns[0], row) else { return Ok(None) };
        let pairs: Vec<(Option<&str>, Option<&str>)>;
        let second;
        match columns.get(1) {
            None if first.len() % 2 == 1 => {
                return Err(mismatched("array must have even number of elements"));
            }
            None => {
                let all = first.iter().collect::<Vec<_>>();
                pairs = all.chunks(2).map(|pair| (pair[0], pair[1])).collect();
            }
            Some(values) => {
                let Some(values) = texts(values, row) else { return Ok(None) };
                second = values;
                if first.len() != second.len() {
                    return Err(mismatched("mismatched array dimensions"));
                }
                pairs = first.iter().zip(second.iter()).collect();
            }
        }
        let mut members = Members::default();
        for (key, value) in pairs {
            let key = key.ok_or_else(|| mismatched("null value not allowed for object key"))?;
            members.put(key, value.map_or_else(|| "null".to_owned(), string));
        }
        Ok(Some(members.document()))
    });
    Ok(Arc::new(json.collect::<Result<StringArray>>()?))
}

fn mismatched(message: &str) -> datafusion::common::DataFusionError {
    failed(SqlState::INVALID_PARAMETER_VALUE, message)
}
