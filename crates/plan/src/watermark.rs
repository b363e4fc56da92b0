//! `WATERMARK FOR column AS column - INTERVAL '…' [WITH (…)]`: how late rows of a source or table may be.
//!
//! | option | |
//! |---|---|
//! | idle_timeout | an interval: a split that was read and empty for so long holds nothing back; a minute by default |
//! | history | `unordered` (the default): the watermark stands while a stage that ends is read; `ordered`: it moves |

use std::time::Duration;

use arrow::datatypes::{DataType, Schema};
use segue_catalog::{Mutability, Object};
use segue_sql::{Columns, Watermark, WithOption};
use segue_types::{SqlState, UserError, nearest};
use sqlparser::ast::{BinaryOperator, Expr, Interval};

use crate::declared;
use crate::delta::errors::type_name;
use crate::dialect::fixed_micros;

/// How long a split may be silent before it is idle.
const IDLE_AFTER: Duration = Duration::from_secs(60);
const OPTIONS: &[&str] = &["idle_timeout", "history"];

/// A watermark as it will move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatermarkPlan {
    /// Of the object's schema.
    pub column: usize,
    /// How far behind the greatest time it stays; negative where it is ahead of it.
    pub delay_us: i64,
    pub idle_after: Duration,
    pub history: HistoryOrder,
}

/// Whether the rows of stages that end come in the order of their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryOrder {
    Unordered,
    Ordered,
}

/// The watermark of a source or table as it was created.
pub fn of(object: &Object) -> Option<WatermarkPlan> {
    plan(&declared::columns(object)?, &object.schema).ok().flatten()
}

/// The watermark that is declared among `columns`.
pub(crate) fn plan(columns: &Columns, schema: &Schema) -> Result<Option<WatermarkPlan>, UserError> {
    let Some(watermark) = &columns.watermark else { return Ok(None) };
    let name = watermark.column.as_str();
    let Ok(column) = schema.index_of(name) else {
        let message = format!("column \"{name}\" named in WATERMARK does not exist");
        return Err(UserError::new(SqlState::UNDEFINED_COLUMN, message).at(watermark.offset.0));
    };
    let data_type = schema.field(column).data_type();
    if !matches!(data_type, DataType::Timestamp(..)) {
        let message = format!("a watermark cannot be of column \"{name}\"");
        return Err(UserError::new(SqlState::DATATYPE_MISMATCH, message)
            .with_detail(format!("The column is {}.", type_name(data_type)))
            .with_hint("It has to be a timestamp or timestamptz.")
            .at(watermark.offset.0));
    }
    let delay_us = delay(&watermark.expression.tree, name).ok_or_else(|| {
        let message =
            format!("watermark expression \"{}\" is not supported", watermark.expression.text);
        UserError::unsupported(message)
            .with_hint(format!(
                "Write {name} - INTERVAL '5 seconds', an interval without months, or {name} alone."
            ))
            .at(watermark.offset.0)
    })?;
    let (idle_after, history) = options(watermark)?;
    Ok(Some(WatermarkPlan { column, delay_us, idle_after, history }))
}

/// What `expression` takes off the column.
fn delay(expression: &Expr, column: &str) -> Option<i64> {
    match expression {
        Expr::Nested(inner) => delay(inner, column),
        Expr::Identifier(name) => {
            let is_it = match name.quote_style {
                Some(_) => name.value == column,
                None => name.value.to_lowercase() == column,
            };
            is_it.then_some(0)
        }
        Expr::BinaryOp { left, op, right } => {
            let before = delay(left, column)?;
            match op {
                BinaryOperator::Minus => before.checked_add(fixed_micros(right)?),
                BinaryOperator::Plus => before.checked_sub(fixed_micros(right)?),
                _ => None,
            }
        }
        _ => None,
    }
}

fn options(watermark: &Watermark) -> Result<(Duration, HistoryOrder), UserError> {
    let (mut idle_after, mut history) = (IDLE_AFTER, HistoryOrder::Unordered);
    for option in &watermark.options {
        match (option.name.as_str(), option.value.as_str()) {
            ("idle_timeout", text) => idle_after = positive(text).ok_or_else(|| invalid(option))?,
            ("history", "unordered") => history = HistoryOrder::Unordered,
            ("history", "ordered") => history = HistoryOrder::Ordered,
            ("history", _) => {
                return Err(invalid(option).with_hint("It is unordered or ordered."));
            }
            (unknown, _) => {
                let message = format!("a watermark has no option \"{unknown}\"");
                let hint = match nearest(unknown, OPTIONS.iter().copied()) {
                    Some(near) => format!("Perhaps you meant the option \"{near}\"."),
                    None => format!("Its options are {}.", OPTIONS.join(", ")),
                };
                let error = UserError::new(SqlState::UNDEFINED_OBJECT, message).with_hint(hint);
                return Err(error.at(option.offset.0));
            }
        }
    }
    Ok((idle_after, history))
}

fn positive(text: &str) -> Option<Duration> {
    let interval = Interval {
        value: Box::new(Expr::value(sqlparser::ast::Value::SingleQuotedString(text.to_owned()))),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    };
    let micros = fixed_micros(&Expr::Interval(interval))?;
    u64::try_from(micros).ok().filter(|micros| *micros > 0).map(Duration::from_micros)
}

fn invalid(option: &WithOption) -> UserError {
    let message = format!("invalid value for option \"{}\": \"{}\"", option.name, option.value);
    UserError::new(SqlState::INVALID_PARAMETER_VALUE, message).at(option.offset.0)
}

/// Only where rows stay as they are does a time that was passed mean anything.
pub(crate) fn needs_events(columns: &Columns, hint: &str) -> UserError {
    let offset = columns.watermark.as_ref().map_or(0, |watermark| watermark.offset.0);
    let message = "a watermark needs rows that are never changed or taken back";
    UserError::new(SqlState::INVALID_TABLE_DEFINITION, message).with_hint(hint).at(offset)
}

/// Whether the rows of a table can have a watermark.
pub(crate) fn suits(mutability: Mutability) -> bool {
    mutability == Mutability::AppendOnly
}
