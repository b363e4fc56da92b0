//! SHOW of settings.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use segue_types::UserError;
use sqlparser::ast::Ident;

use crate::outcome::Outcome;
use crate::session::Session;
use crate::settings::KNOWN;

/// Runs SHOW.
pub(super) fn variable(session: &Session, words: &[Ident]) -> Result<Outcome, UserError> {
    let words: Vec<String> = words.iter().map(|word| word.value.to_ascii_lowercase()).collect();
    let name = match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["all"] => return Ok(all(session)),
        ["time", "zone"] => "timezone".to_owned(),
        ["transaction", "isolation", "level"] => "transaction_isolation".to_owned(),
        ["session", "authorization"] => {
            return Ok(table(
                "SHOW",
                &[("session_authorization", vec![session.identity.user.clone()])],
            ));
        }
        words => words.join("."),
    };
    let value = session.settings.get(&name)?;
    let column = match name.as_str() {
        "timezone" => "TimeZone",
        "datestyle" => "DateStyle",
        "intervalstyle" => "IntervalStyle",
        other => other,
    };
    Ok(table("SHOW", &[(column, vec![value])]))
}

fn all(session: &Session) -> Outcome {
    let values = KNOWN.iter().map(|known| session.settings.get(known.name).unwrap_or_default());
    table(
        "SHOW",
        &[
            ("name", KNOWN.iter().map(|known| known.name.to_owned()).collect()),
            ("setting", values.collect()),
            ("description", KNOWN.iter().map(|known| known.doc.to_owned()).collect()),
        ],
    )
}

/// Columns of text as a result.
pub(super) fn table(verb: &'static str, columns: &[(&str, Vec<String>)]) -> Outcome {
    let columns = columns.iter().map(|(name, values)| {
        let array: ArrayRef = Arc::new(StringArray::from_iter_values(values));
        (*name, array, true)
    });
    let batch = RecordBatch::try_from_iter_with_nullable(columns)
        .expect("the columns of a listing are of one length");
    Outcome::batch(verb, batch)
}
