//! DataFusion's errors in PostgreSQL's words: SQLSTATE, message, hint, place. Used for views and for SELECT.

use arrow::datatypes::{DataType, Field};
use arrow::error::ArrowError;
use datafusion::common::{Column, DataFusionError, SchemaError, Span};
use segue_sql::Lines;
use segue_types::{SqlState, UserError, nearest, sql_type_of};
use sqlparser::tokenizer::Location;

/// The error as the user sees it. With the statement's text, the place in it is shown.
pub fn user_error(error: &DataFusionError, text: Option<&str>) -> UserError {
    match error {
        DataFusionError::Diagnostic(diagnostic, inner) => {
            let translated = user_error(inner, text);
            match (diagnostic.span, text) {
                (Some(span), Some(text)) if translated.offset.is_none() => {
                    placed(translated, span, text)
                }
                _ => translated,
            }
        }
        DataFusionError::Context(_, inner) => user_error(inner, text),
        DataFusionError::Shared(inner) => user_error(inner, text),
        DataFusionError::Collection(errors) => match errors.first() {
            Some(first) => user_error(first, text),
            None => UserError::internal("an error without a cause"),
        },
        DataFusionError::External(inner) => external(inner.as_ref(), text),
        DataFusionError::SchemaError(schema, _) => schema_error(schema),
        DataFusionError::SQL(parser, _) => {
            UserError::new(SqlState::SYNTAX_ERROR, lower_first(&parser.to_string()))
        }
        DataFusionError::ArrowError(arrow, _) => arrow_error(arrow),
        DataFusionError::Plan(message) => plan_error(message),
        DataFusionError::Execution(message) => execution_error(message),
        DataFusionError::NotImplemented(message) if message.contains("JOIN operator AsOf") => {
            UserError::unsupported("an ASOF JOIN needs an inequality between its two sides")
                .with_hint("Name the joined relation in it: ON a.k = b.k AND a.at >= b.at.")
        }
        DataFusionError::NotImplemented(message) => UserError::unsupported(lower_first(message)),
        DataFusionError::ResourcesExhausted(message) => {
            UserError::new(SqlState::OUT_OF_MEMORY, "out of memory").with_detail(message.clone())
        }
        DataFusionError::IoError(error) => {
            UserError::new(SqlState::IO_ERROR, lower_first(&error.to_string()))
        }
        other => UserError::internal(lower_first(&other.strip_backtrace())),
    }
}

fn external(
    inner: &(dyn std::error::Error + Send + Sync + 'static),
    text: Option<&str>,
) -> UserError {
    if let Some(error) = inner.downcast_ref::<UserError>() {
        return error.clone();
    }
    if let Some(error) = inner.downcast_ref::<segue_flow::SeveralRows>() {
        return UserError::new(SqlState::CARDINALITY_VIOLATION, error.to_string());
    }
    match inner.downcast_ref::<DataFusionError>() {
        Some(error) => user_error(error, text),
        None => UserError::internal(lower_first(&inner.to_string())),
    }
}

fn placed(error: UserError, span: Span, text: &str) -> UserError {
    let place = Location { line: span.start.line, column: span.start.column };
    match Lines::new(text).offset(place) {
        Some(offset) => error.at(offset),
        None => error,
    }
}

fn schema_error(error: &SchemaError) -> UserError {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => undefined_column(field, valid_fields),
        SchemaError::AmbiguousReference { field } => UserError::new(
            SqlState::AMBIGUOUS_COLUMN,
            format!("column reference \"{}\" is ambiguous", field.name()),
        )
        .with_hint("Put the name of its table in front of it."),
        SchemaError::DuplicateQualifiedField { name, .. }
        | SchemaError::DuplicateUnqualifiedField { name } => UserError::new(
            SqlState::DUPLICATE_COLUMN,
            format!("column \"{name}\" specified more than once"),
        )
        .with_hint("Give each column a name of its own with AS."),
    }
}

fn undefined_column(field: &Column, valid: &[Column]) -> UserError {
    if let Some(table) = &field.relation
        && !valid.is_empty()
        && valid.iter().all(|other| other.relation.as_ref() != Some(table))
    {
        let message = format!("missing FROM-clause entry for table \"{}\"", table.table());
        return UserError::new(SqlState::UNDEFINED_TABLE, message);
    }
    let message = match &field.relation {
        Some(table) => format!("column {}.{} does not exist", table.table(), field.name()),
        None => format!("column \"{}\" does not exist", field.name()),
    };
    let error = UserError::new(SqlState::UNDEFINED_COLUMN, message);
    match nearest(field.name(), valid.iter().map(Column::name)) {
        Some(name) => error.with_hint(format!("Perhaps you meant the column \"{name}\".")),
        None => error,
    }
}

/// Planning errors carry their meaning in words alone; the words are pinned by the planner's case files.
fn plan_error(message: &str) -> UserError {
    let has = |part: &str| message.contains(part);
    if let Some((call, hint)) = unknown_function(message) {
        let error =
            UserError::new(SqlState::UNDEFINED_FUNCTION, format!("function {call} does not exist"));
        return match hint {
            Some(name) => error.with_hint(format!("Perhaps you meant the function \"{name}\".")),
            None => error,
        };
    }
    if has("must appear in the GROUP BY clause") {
        return grouping(message);
    }
    if has("Aggregate functions are not allowed in the WHERE clause") {
        let message = "aggregate functions are not allowed in WHERE";
        return UserError::new(SqlState::GROUPING_ERROR, message).with_hint("Use HAVING.");
    }
    if let Some(error) = missing_member(message) {
        return error;
    }
    if has("unique expression names") {
        return UserError::new(SqlState::DUPLICATE_COLUMN, "a column is specified more than once")
            .with_detail(lower_first(message))
            .with_hint("Give each column a name of its own with AS.");
    }
    if has("LIMIT must be >= 0") || has("OFFSET must be >= 0") {
        let word = if has("LIMIT must") { "LIMIT" } else { "OFFSET" };
        let state =
            if word == "LIMIT" { SqlState::INVALID_LIMIT } else { SqlState::INVALID_OFFSET };
        return UserError::new(state, format!("{word} must not be negative"));
    }
    if let Some((_, found)) = message.split_once("Cannot create filter with non-boolean predicate")
        && let Some((_, ty)) = found.rsplit_once(" returning ")
    {
        let ty = TYPE_WORDS.iter().find(|(arrow, _)| *arrow == ty).map_or(ty, |(_, sql)| sql);
        return UserError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("argument of WHERE must be type boolean, not type {ty}"),
        );
    }
    of_types(message)
}

/// What only the words tell of types that do not go together, or of what DataFusion has not.
fn of_types(message: &str) -> UserError {
    let has = |part: &str| message.contains(part);
    let state = if has("No function matches") || has("Function '") && has("failed to match") {
        SqlState::UNDEFINED_FUNCTION
    } else if has("Cannot infer common argument type")
        || has("Cannot get result type")
        || has("Invalid comparison")
    {
        return UserError::new(
            SqlState::UNDEFINED_FUNCTION,
            "operator does not exist for these types",
        )
        .with_detail(lower_first(message))
        .with_hint("You might need to add explicit type casts.");
    } else if has("same number of columns")
        || has("must have the same")
        || has("position") && has("SELECT")
    {
        SqlState::SYNTAX_ERROR
    } else if has("Cannot create filter with non-boolean predicate")
        || has("UNION") && has("type")
        || has("coerc")
    {
        SqlState::DATATYPE_MISMATCH
    } else if has("does not support cast") || has("Unsupported CAST") || has("Cannot cast") {
        SqlState::CANNOT_COERCE
    } else if has("Unsupported") || has("not supported") {
        SqlState::FEATURE_NOT_SUPPORTED
    } else {
        SqlState::SYNTAX_ERROR
    };
    UserError::new(state, lower_first(message))
}

/// `Field x not found in struct`
fn missing_member(message: &str) -> Option<UserError> {
    let (before, _) = message.split_once(" not found in struct")?;
    let (_, member) = before.rsplit_once(' ')?;
    let message = format!("field \"{member}\" not found in struct type");
    Some(UserError::new(SqlState::UNDEFINED_COLUMN, message))
}

/// The call in an "unknown function" error, and the function that was perhaps meant.
fn unknown_function(message: &str) -> Option<(String, Option<String>)> {
    if let Some((_, rest)) = message.split_once("function ")
        && let Some((call, _)) = rest.split_once(" does not exist")
    {
        return Some((call.to_owned(), None));
    }
    if let Some((_, rest)) = message.split_once("given name and argument types '") {
        let (call, _) = rest.split_once('\'')?;
        let in_sql = |call: String, (arrow, sql): &(&str, &str)| call.replace(arrow, sql);
        return Some((TYPE_WORDS.iter().fold(call.to_owned(), in_sql), None));
    }
    let rest = message.strip_prefix("Invalid function '")?;
    let (name, rest) = rest.split_once('\'')?;
    // DataFusion names the nearest of all, however far it is.
    let meant = rest.split('\'').nth(1).filter(|meant| nearest(name, [*meant]).is_some());
    Some((name.to_owned(), meant.map(str::to_owned)))
}

/// Arrow's words for types in DataFusion's messages, and SQL's.
const TYPE_WORDS: &[(&str, &str)] = &[
    ("Utf8View", "text"),
    ("Utf8", "text"),
    ("Int64", "bigint"),
    ("Int32", "integer"),
    ("Int16", "smallint"),
    ("Float64", "double precision"),
    ("Float32", "real"),
    ("Boolean", "boolean"),
    ("Decimal128", "numeric"),
    ("Date32", "date"),
    ("Null", "unknown"),
];

/// `Column in SELECT must be in GROUP BY or an aggregate function: … column "t.x" must appear in the GROUP BY clause …`
fn grouping(message: &str) -> UserError {
    let column = message
        .split("must appear in the GROUP BY")
        .next()
        .and_then(|before| before.rsplit('"').nth(1))
        .filter(|column| !column.is_empty());
    let message = match column {
        Some(column) => {
            format!(
                "column \"{column}\" must appear in the GROUP BY clause or be used in an aggregate function"
            )
        }
        None => "a column must appear in the GROUP BY clause or be used in an aggregate function"
            .to_owned(),
    };
    UserError::new(SqlState::GROUPING_ERROR, message)
}

fn execution_error(message: &str) -> UserError {
    let has = |part: &str| message.contains(part);
    let state = if has("ivide by zero") || has("ivision by zero") {
        return UserError::new(SqlState::DIVISION_BY_ZERO, "division by zero");
    } else if has("more than one row") {
        SqlState::CARDINALITY_VIOLATION
    } else if has("verflow") || has("out of range") {
        SqlState::NUMERIC_OUT_OF_RANGE
    } else if has("parse") || has("Cannot cast") || has("cast") {
        SqlState::INVALID_TEXT_REPRESENTATION
    } else {
        SqlState::INVALID_PARAMETER_VALUE
    };
    UserError::new(state, lower_first(message))
}

fn arrow_error(error: &ArrowError) -> UserError {
    match error {
        ArrowError::DivideByZero => UserError::new(SqlState::DIVISION_BY_ZERO, "division by zero"),
        ArrowError::ArithmeticOverflow(message) => {
            UserError::new(SqlState::NUMERIC_OUT_OF_RANGE, "value out of range")
                .with_detail(message.clone())
        }
        ArrowError::CastError(message) if message.contains("Cannot cast string") => {
            UserError::new(SqlState::INVALID_TEXT_REPRESENTATION, lower_first(message))
        }
        ArrowError::CastError(message) | ArrowError::ParseError(message) => {
            UserError::new(SqlState::INVALID_TEXT_REPRESENTATION, lower_first(message))
        }
        ArrowError::InvalidArgumentError(message) if message.contains("too large to store") => {
            UserError::new(SqlState::NUMERIC_OUT_OF_RANGE, "numeric field overflow")
                .with_detail(message.clone())
        }
        ArrowError::ExternalError(inner) => external(inner.as_ref(), None),
        other => UserError::internal(lower_first(&other.to_string())),
    }
}

/// The SQL name of a type, for messages.
pub(crate) fn type_name(data_type: &DataType) -> String {
    match sql_type_of(&Field::new("", data_type.clone(), true)) {
        Some(known) => known.to_string(),
        None => data_type.to_string(),
    }
}

/// PostgreSQL's messages begin small and have no full stop.
fn lower_first(message: &str) -> String {
    let message = message.trim().trim_end_matches('.');
    let mut chars = message.chars();
    match chars.next() {
        // A name in capitals stays as it is.
        Some(first) if !chars.as_str().starts_with(|next: char| next.is_ascii_uppercase()) => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => message.to_owned(),
    }
}
