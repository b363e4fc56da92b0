//! SET, RESET and DISCARD.

use segue_types::{SqlState, UserError};
use sqlparser::ast::{
    DiscardObject, Expr, ObjectName, Reset, ResetStatement, Set, UnaryOperator, Value,
};

use crate::outcome::Outcome;
use crate::session::{Running, Session};
use crate::settings::is_without_effect;

/// Runs SET.
pub(super) fn set(
    session: &mut Session,
    set: &Set,
    running: &Running,
) -> Result<Outcome, UserError> {
    match set {
        Set::SingleAssignment { variable, values, .. } => {
            let name = setting_name(variable);
            assign(session, &name, values)?;
            if is_without_effect(&name) {
                running.notice(format!("setting \"{name}\" is accepted and has no effect"));
            }
        }
        Set::SetTimeZone { value, .. } => {
            assign(session, "timezone", std::slice::from_ref(value))?;
        }
        Set::SetNames { charset_name, .. } => {
            session.settings.set("client_encoding", &charset_name.value)?;
        }
        // There is one isolation level, and the roles of a session are its user.
        Set::SetTransaction { .. }
        | Set::SetRole { .. }
        | Set::SetSessionAuthorization(_)
        | Set::SetNamesDefault {} => {}
        other => {
            return Err(UserError::new(
                SqlState::SYNTAX_ERROR,
                format!("this form of SET is not supported: {other}"),
            ));
        }
    }
    Ok(Outcome::done("SET"))
}

fn assign(session: &mut Session, name: &str, values: &[Expr]) -> Result<(), UserError> {
    // `SET SESSION CHARACTERISTICS AS TRANSACTION …` of old drivers.
    if name == "characteristics" {
        return Ok(());
    }
    let texts: Vec<String> = values.iter().map(value_text).collect();
    match texts.as_slice() {
        [only] if only.eq_ignore_ascii_case("default") => session.settings.reset(name),
        [only] if name == "timezone" && only.eq_ignore_ascii_case("local") => {
            session.settings.reset(name)
        }
        _ => session.settings.set(name, &texts.join(", ")).map(|_| ()),
    }
}

/// A setting's name; RisingWave's and extensions' names have dots.
fn setting_name(name: &ObjectName) -> String {
    name.0.iter().map(|part| part.to_string().replace('"', "")).collect::<Vec<_>>().join(".")
}

/// A value as it is written, without its quotes.
fn value_text(value: &Expr) -> String {
    match value {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text)
            | Value::DoubleQuotedString(text)
            | Value::EscapedStringLiteral(text) => text.clone(),
            other => other.to_string(),
        },
        Expr::Identifier(name) => name.value.clone(),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => format!("-{}", value_text(expr)),
        other => other.to_string(),
    }
}

/// Runs RESET.
pub(super) fn reset(session: &mut Session, reset: &ResetStatement) -> Result<Outcome, UserError> {
    match &reset.reset {
        Reset::ALL => session.settings.reset_all(),
        Reset::ConfigurationParameter(name) => session.settings.reset(&setting_name(name))?,
    }
    Ok(Outcome::done("RESET"))
}

/// Runs DISCARD, which connection pools send between two users of a connection.
pub(super) fn discard(session: &mut Session, what: DiscardObject) -> Outcome {
    match what {
        DiscardObject::ALL => {
            session.discard_all();
            Outcome::done("DISCARD ALL")
        }
        DiscardObject::PLANS => Outcome::done("DISCARD PLANS"),
        DiscardObject::SEQUENCES => Outcome::done("DISCARD SEQUENCES"),
        DiscardObject::TEMP => Outcome::done("DISCARD TEMP"),
    }
}
