//! DataFusion's errors as the user sees them: SQLSTATE, PostgreSQL's words, and the place in the statement.

use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, SchemaError};
use segue_types::{SqlState, UserError};

/// Converts an error of planning or running `text`.
pub(crate) fn user_error(error: &DataFusionError, text: &str) -> UserError {
    let mut converted = convert(error);
    if converted.offset.is_none()
        && let Some(start) = span_start(error)
    {
        converted.offset = offset_of(text, start.0, start.1);
    }
    converted
}

/// Where a 1-based line and column lie in a text, in characters from 1.
pub(crate) fn offset_of(text: &str, line: u64, column: u64) -> Option<usize> {
    let before: usize = text
        .split_inclusive('\n')
        .take(usize::try_from(line.checked_sub(1)?).ok()?)
        .map(|line| line.chars().count())
        .sum();
    Some(before + usize::try_from(column).ok()?)
}

fn span_start(error: &DataFusionError) -> Option<(u64, u64)> {
    match error {
        DataFusionError::Diagnostic(diagnostic, inner) => diagnostic
            .span
            .map(|span| (span.start.line, span.start.column))
            .or_else(|| span_start(inner)),
        DataFusionError::Context(_, inner) => span_start(inner),
        DataFusionError::Collection(errors) => errors.first().and_then(span_start),
        DataFusionError::Shared(inner) => span_start(inner),
        _ => None,
    }
}

fn convert(error: &DataFusionError) -> UserError {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => convert(inner),
        DataFusionError::Shared(inner) => convert(inner),
        DataFusionError::Collection(errors) => {
            errors.first().map_or_else(|| UserError::internal("empty error"), convert)
        }
        DataFusionError::External(inner) => match inner.downcast_ref::<UserError>() {
            Some(own) => own.clone(),
            None => inner
                .downcast_ref::<DataFusionError>()
                .map_or_else(|| UserError::internal(inner.to_string()), convert),
        },
        DataFusionError::SchemaError(inner, _) => schema_error(inner),
        DataFusionError::SQL(inner, _) => {
            UserError::new(SqlState::SYNTAX_ERROR, lower_first(&inner.to_string()))
        }
        DataFusionError::NotImplemented(text) => UserError::unsupported(lower_first(text)),
        DataFusionError::Plan(text) => plan_error(text),
        DataFusionError::Execution(text) => execution_error(text),
        DataFusionError::ArrowError(inner, _) => arrow_error(inner),
        DataFusionError::ResourcesExhausted(text) => {
            UserError::new(SqlState::OUT_OF_MEMORY, lower_first(text))
        }
        other => UserError::internal(lower_first(&other.strip_backtrace())),
    }
}

fn schema_error(error: &SchemaError) -> UserError {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let mut converted = UserError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{}\" does not exist", field.name),
            );
            let names = valid_fields.iter().map(|column| column.name.as_str());
            if let Some(near) = segue_types::nearest(&field.name, names) {
                converted = converted.with_hint(format!("Perhaps you meant to reference \"{near}\"."));
            }
            converted
        }
        SchemaError::AmbiguousReference { field } => UserError::new(
            SqlState::AMBIGUOUS_COLUMN,
            format!("column reference \"{}\" is ambiguous", field.name),
        ),
        SchemaError::DuplicateQualifiedField { name, .. }
        | SchemaError::DuplicateUnqualifiedField { name } => UserError::new(
            SqlState::DUPLICATE_COLUMN,
            format!("column name \"{name}\" appears more than once"),
        ),
    }
}

fn plan_error(text: &str) -> UserError {
    let quoted = || text.split('\'').nth(1).unwrap_or_default();
    if text.starts_with("table '") && text.ends_with("not found") {
        let name = quoted().rsplit('.').next().unwrap_or_default();
        let message = format!("relation \"{name}\" does not exist");
        return UserError::new(SqlState::UNDEFINED_TABLE, message);
    }
    if text.starts_with("Invalid function") {
        let message = format!("function {} does not exist", quoted());
        let error = UserError::new(SqlState::UNDEFINED_FUNCTION, message);
        return match text.split("Did you mean '").nth(1).and_then(|rest| rest.split('\'').next()) {
            Some(near) => error.with_hint(format!("Perhaps you meant {near}.")),
            None => error,
        };
    }
    let state = if text.contains("must be in GROUP BY") || text.contains("must appear in the GROUP BY")
    {
        SqlState::GROUPING_ERROR
    } else if text.contains("coerce") || text.contains("signature") || text.contains("Cannot infer") {
        SqlState::UNDEFINED_FUNCTION
    } else if text.contains("Unsupported") || text.contains("not supported") {
        SqlState::FEATURE_NOT_SUPPORTED
    } else if text.contains("data type") || text.contains("types") {
        SqlState::DATATYPE_MISMATCH
    } else {
        SqlState::SYNTAX_ERROR
    };
    UserError::new(state, lower_first(text))
}

fn execution_error(text: &str) -> UserError {
    let state = if text.contains("subquery returned more than one row")
        || text.contains("more than one row")
    {
        SqlState::CARDINALITY_VIOLATION
    } else if text.to_ascii_lowercase().contains("overflow") {
        SqlState::NUMERIC_OUT_OF_RANGE
    } else if text.contains("pars") || text.contains("cast") {
        SqlState::INVALID_TEXT_REPRESENTATION
    } else {
        SqlState::INTERNAL_ERROR
    };
    UserError::new(state, lower_first(text))
}

fn arrow_error(error: &ArrowError) -> UserError {
    match error {
        ArrowError::DivideByZero => UserError::new(SqlState::DIVISION_BY_ZERO, "division by zero"),
        ArrowError::ArithmeticOverflow(_) => {
            UserError::new(SqlState::NUMERIC_OUT_OF_RANGE, "value out of range")
        }
        ArrowError::CastError(text) | ArrowError::ParseError(text) => cast_error(text),
        ArrowError::ComputeError(text) => execution_error(text),
        ArrowError::InvalidArgumentError(text) if text.contains("too large") => {
            UserError::new(SqlState::NUMERIC_OUT_OF_RANGE, lower_first(text))
        }
        other => UserError::internal(lower_first(&other.to_string())),
    }
}

/// Arrow says `Cannot cast string 'abc' to value of Int32 type`.
fn cast_error(text: &str) -> UserError {
    if let Some(rest) = text.strip_prefix("Cannot cast string '")
        && let Some((value, ty)) = rest.rsplit_once("' to value of ")
    {
        let ty = sql_name(ty.trim_end_matches(" type"));
        let fits = value.trim().parse::<i128>().is_ok();
        return if fits && ty != "boolean" {
            UserError::new(
                SqlState::NUMERIC_OUT_OF_RANGE,
                format!("value \"{value}\" is out of range for type {ty}"),
            )
        } else {
            UserError::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!("invalid input syntax for type {ty}: \"{value}\""),
            )
        };
    }
    let range = text.contains("out of range") || text.contains("overflow") || text.contains("Can't cast");
    let state =
        if range { SqlState::NUMERIC_OUT_OF_RANGE } else { SqlState::INVALID_TEXT_REPRESENTATION };
    UserError::new(state, lower_first(text))
}

fn sql_name(arrow: &str) -> String {
    match arrow {
        "Int16" => "smallint",
        "Int32" => "integer",
        "Int64" => "bigint",
        "Float32" => "real",
        "Float64" => "double precision",
        "Boolean" => "boolean",
        "Date32" => "date",
        other if other.starts_with("Decimal") => "numeric",
        other if other.starts_with("Time") => "timestamp",
        other => return other.to_ascii_lowercase(),
    }
    .to_owned()
}

/// PostgreSQL's primary messages begin in lower case and end without a full stop.
fn lower_first(text: &str) -> String {
    let text = text.trim().trim_end_matches('.');
    let mut characters = text.chars();
    match (characters.next(), characters.clone().next()) {
        // An all-capital word (SQL, NULL) stays what it is.
        (Some(first), Some(second)) if first.is_uppercase() && second.is_lowercase() => {
            first.to_lowercase().chain(characters).collect()
        }
        _ => text.to_owned(),
    }
}

/// The error of a statement that was cancelled.
pub(crate) fn canceled() -> UserError {
    UserError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")
}

#[cfg(test)]
mod tests {
    use arrow::error::ArrowError;
    use datafusion::common::DataFusionError;

    use super::{offset_of, user_error};

    #[test]
    fn errors_carry_the_sqlstate_that_postgres_gives() {
        let cases = [
            (DataFusionError::Plan("table 'segue.public.t' not found".into()), "42P01"),
            (DataFusionError::Plan("Invalid function 'f'.\nDid you mean 'g'?".into()), "42883"),
            (DataFusionError::from(ArrowError::DivideByZero), "22012"),
            (
                DataFusionError::from(ArrowError::CastError(
                    "Cannot cast string 'abc' to value of Int32 type".into(),
                )),
                "22P02",
            ),
            (
                DataFusionError::from(ArrowError::CastError(
                    "Cannot cast string '99999999999' to value of Int32 type".into(),
                )),
                "22003",
            ),
            (DataFusionError::NotImplemented("X".into()).context("y"), "0A000"),
        ];
        for (error, state) in cases {
            let converted = user_error(&error, "SELECT 1");
            assert_eq!(converted.state.as_str(), state, "{converted}");
            assert!(!converted.message.ends_with('.'));
        }
    }

    #[test]
    fn a_line_and_a_column_become_a_character_offset() {
        assert_eq!(offset_of("SELECT é, x", 1, 11), Some(11));
        assert_eq!(offset_of("é\nab", 2, 2), Some(4));
    }
}
