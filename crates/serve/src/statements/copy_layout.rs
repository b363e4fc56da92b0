//! The options of COPY: how its lines are written. PostgreSQL has two grammars for them, the old one without
//! parentheses.

use segue_types::{SqlState, UserError};
use sqlparser::ast::{CopyLegacyCsvOption, CopyLegacyOption, CopyOption};

/// How the lines are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) csv: bool,
    pub(super) delimiter: u8,
    pub(super) null: String,
    pub(super) header: bool,
    pub(super) quote: u8,
    pub(super) escape: u8,
}

impl Layout {
    /// The layout that the options say.
    pub(super) fn of(
        options: &[CopyOption],
        legacy: &[CopyLegacyOption],
    ) -> Result<Layout, UserError> {
        let is_csv = |option: &CopyOption| match option {
            CopyOption::Format(name) => name.value.eq_ignore_ascii_case("csv"),
            _ => false,
        };
        let csv = options.iter().any(is_csv)
            || legacy.iter().any(|option| matches!(option, CopyLegacyOption::Csv(_)));
        let (delimiter, null) = if csv { (b',', "") } else { (b'\t', "\\N") };
        let (quote, escape) = (b'"', b'"');
        let mut layout =
            Layout { csv, delimiter, null: null.to_owned(), header: false, quote, escape };
        let mut escape = None;
        for option in options {
            layout.set(option, &mut escape)?;
        }
        for option in legacy {
            layout.set_legacy(option, &mut escape)?;
        }
        // A quote is escaped by itself unless something else is said.
        layout.escape = escape.unwrap_or(layout.quote);
        Ok(layout)
    }

    fn set(&mut self, option: &CopyOption, escape: &mut Option<u8>) -> Result<(), UserError> {
        match option {
            CopyOption::Format(name) => match name.value.to_ascii_lowercase().as_str() {
                "csv" | "text" => {}
                other => {
                    let message = format!("COPY format {other} is not supported");
                    return Err(UserError::unsupported(message).with_hint("Use text or csv."));
                }
            },
            CopyOption::Delimiter(delimiter) => self.delimiter = single_byte(*delimiter)?,
            CopyOption::Null(null) => self.null.clone_from(null),
            CopyOption::Header(header) => self.header = *header,
            CopyOption::Quote(quote) => self.quote = single_byte(*quote)?,
            CopyOption::Escape(character) => *escape = Some(single_byte(*character)?),
            CopyOption::Encoding(name) if name.to_ascii_lowercase().replace('-', "") == "utf8" => {}
            CopyOption::Freeze(_) => {}
            other => return Err(unsupported(other)),
        }
        Ok(())
    }

    fn set_legacy(
        &mut self,
        option: &CopyLegacyOption,
        escape: &mut Option<u8>,
    ) -> Result<(), UserError> {
        match option {
            CopyLegacyOption::Delimiter(delimiter) => self.delimiter = single_byte(*delimiter)?,
            CopyLegacyOption::Null(null) => self.null.clone_from(null),
            CopyLegacyOption::Header => self.header = true,
            CopyLegacyOption::Csv(options) => {
                for option in options {
                    match option {
                        CopyLegacyCsvOption::Header => self.header = true,
                        CopyLegacyCsvOption::Quote(quote) => self.quote = single_byte(*quote)?,
                        CopyLegacyCsvOption::Escape(character) => {
                            *escape = Some(single_byte(*character)?);
                        }
                        other => return Err(unsupported(other)),
                    }
                }
            }
            other => return Err(unsupported(other)),
        }
        Ok(())
    }
}

fn unsupported(option: &impl std::fmt::Display) -> UserError {
    UserError::unsupported(format!("COPY option {option} is not supported"))
}

fn single_byte(character: char) -> Result<u8, UserError> {
    u8::try_from(character).ok().filter(u8::is_ascii).ok_or_else(|| {
        UserError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "COPY delimiter, quote and escape must be a single one-byte character",
        )
    })
}
