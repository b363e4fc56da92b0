//! The errors of texts that are no value of their type, in PostgreSQL's words.

use segue_formats::ValueError;
use segue_types::{SqlState, SqlType, UserError};

/// The error of `text`, which `ty` cannot hold.
pub fn value_error(ty: &SqlType, text: &str, error: &ValueError) -> UserError {
    let name = type_word(ty);
    let out_of_range = error.to_string().contains("out of range");
    if is_datetime(ty) && (out_of_range || is_written_as_datetime(text)) {
        let message = format!("date/time field value out of range: \"{text}\"");
        return UserError::new(SqlState::DATETIME_OVERFLOW, message);
    }
    match ty {
        SqlType::Numeric { precision, scale } if out_of_range => overflow(*precision, *scale),
        _ if out_of_range => UserError::new(
            SqlState::NUMERIC_OUT_OF_RANGE,
            format!("value \"{text}\" is out of range for type {name}"),
        ),
        _ => {
            let state = if is_datetime(ty) || *ty == SqlType::Interval {
                SqlState::INVALID_DATETIME_FORMAT
            } else {
                SqlState::INVALID_TEXT_REPRESENTATION
            };
            UserError::new(state, format!("invalid input syntax for type {name}: \"{text}\""))
        }
    }
}

/// What messages call a type.
pub(super) fn type_word(ty: &SqlType) -> String {
    match ty {
        SqlType::Numeric { .. } => "numeric".to_owned(),
        SqlType::Timestamptz => "timestamp with time zone".to_owned(),
        SqlType::Jsonb => "json".to_owned(),
        other => other.to_string(),
    }
}

fn overflow(precision: u8, scale: i8) -> UserError {
    let digits = i16::from(precision) - i16::from(scale);
    UserError::new(SqlState::NUMERIC_OUT_OF_RANGE, "numeric field overflow").with_detail(format!(
        "A field with precision {precision}, scale {scale} must round to an absolute value less than \
         10^{digits}."
    ))
}

fn is_datetime(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Date | SqlType::Time | SqlType::Timestamp | SqlType::Timestamptz)
}

/// `2023-02-29` is written as a date is and yet is none.
fn is_written_as_datetime(text: &str) -> bool {
    let text = text.trim_ascii();
    text.starts_with(|first: char| first.is_ascii_digit())
        && text.contains(['-', ':'])
        && text.bytes().all(|byte| byte.is_ascii_digit() || b"-:+. TZ".contains(&byte))
}

#[cfg(test)]
mod tests {
    use segue_formats::Column;
    use segue_types::SqlType;

    use super::value_error;

    #[test]
    fn errors_have_the_words_and_the_state_of_postgresql() {
        let numeric = SqlType::Numeric { precision: 5, scale: 2 };
        let cases = [
            (SqlType::Integer, "one", "22P02", "invalid input syntax for type integer: \"one\""),
            (
                SqlType::Integer,
                "3000000000",
                "22003",
                "value \"3000000000\" is out of range for type integer",
            ),
            (numeric, "1000", "22003", "numeric field overflow"),
            (
                SqlType::Date,
                "2023-02-29",
                "22008",
                "date/time field value out of range: \"2023-02-29\"",
            ),
            (SqlType::Date, "soon", "22007", "invalid input syntax for type date: \"soon\""),
            (SqlType::Time, "25:00", "22008", "date/time field value out of range: \"25:00\""),
            (SqlType::Uuid, "7", "22P02", "invalid input syntax for type uuid: \"7\""),
        ];
        for (ty, text, state, message) in cases {
            let mut column = Column::of_type(&ty);
            let error = segue_formats::append(&mut column, text).expect_err("no value");
            let error = value_error(&ty, text, &error);
            assert_eq!((error.state.as_str(), error.message.as_str()), (state, message));
        }
    }
}
