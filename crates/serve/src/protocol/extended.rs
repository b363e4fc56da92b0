//! The extended protocol: Parse, Bind, Describe, Execute, Close, each a message of its own.

use std::sync::Arc;

use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{
    Bind, BindComplete, Close, CloseComplete, Describe, Execute, Parse, ParseComplete,
    PortalSuspended, TARGET_TYPE_BYTE_STATEMENT,
};
use pgwire::messages::response::EmptyQueryResponse;
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use segue_types::{SqlState, UserError};

use super::connection::{Client, Ending, Sync};
use super::drive::{Driver, drive};
use crate::encode::Format;
use crate::outcome::{Encoding, Outcome, Portion, RowStream};
use crate::pg_type::row_description;
use crate::prepared::{Portal, PortalState, bind_values};
use crate::session::NAMED_MAX;
use crate::statements::{Call, execute, prepare};

impl Client {
    /// Answers a message of the extended protocol other than Sync.
    pub(super) async fn extended(&mut self, message: PgWireFrontendMessage) -> Result<(), Ending> {
        let answered = match message {
            PgWireFrontendMessage::Parse(parse) => self.parse(parse).await?,
            PgWireFrontendMessage::Bind(bind) => self.bind(&bind),
            PgWireFrontendMessage::Describe(describe) => self.describe(&describe),
            PgWireFrontendMessage::Execute(message) => self.execute(&message).await?,
            PgWireFrontendMessage::Close(close) => self.close(&close),
            // Everything is flushed before the next message is awaited.
            _ => Ok(()),
        };
        if let Err(error) = answered {
            self.sync = Sync::Skipping;
            self.fail(&error)?;
        }
        Ok(())
    }

    async fn parse(&mut self, parse: Parse) -> Result<Result<(), UserError>, Ending> {
        let name = parse.name.unwrap_or_default();
        if !name.is_empty() && self.session.prepared.contains_key(&name) {
            return Ok(Err(UserError::new(
                SqlState::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            )));
        }
        if self.session.prepared.len() >= NAMED_MAX {
            return Ok(Err(too_many("prepared statements")));
        }
        let text: Arc<str> = parse.query.into();
        let mut driver = self.begin(&text);
        let running = driver.running.clone();
        let preparing = prepare(&mut self.session, &running, &parse.type_oids);
        let prepared = drive(&mut self.wire, &self.shutdown, &mut driver, preparing).await;
        self.end(&driver);
        Ok(match prepared? {
            Err(error) => Err(driver.told(error)),
            Ok(prepared) => {
                self.session.prepared.insert(name, Arc::new(prepared));
                self.push(&PgWireBackendMessage::ParseComplete(ParseComplete::new()))?;
                Ok(())
            }
        })
    }

    fn bind(&mut self, bind: &Bind) -> Result<(), UserError> {
        let statement = bind.statement_name.as_deref().unwrap_or_default();
        let prepared = Arc::clone(self.session.prepared(statement)?);
        if self.session.portals.len() >= NAMED_MAX {
            return Err(too_many("portals"));
        }
        let parameters = bind_values(&prepared, &bind.parameter_format_codes, &bind.parameters)?;
        let codes = &bind.result_column_format_codes;
        let formats = codes.iter().map(|code| Format::from_code(*code)).collect();
        let portal = Portal { prepared, parameters, formats, state: PortalState::Bound };
        let name = bind.portal_name.clone().unwrap_or_default();
        self.session.portals.insert(name, portal);
        self.reply(&PgWireBackendMessage::BindComplete(BindComplete::new()))
    }

    fn describe(&mut self, describe: &Describe) -> Result<(), UserError> {
        let name = describe.name.as_deref().unwrap_or_default();
        let (fields, formats) = if describe.target_type == TARGET_TYPE_BYTE_STATEMENT {
            let prepared = Arc::clone(self.session.prepared(name)?);
            let oids = prepared.parameters.iter().map(|parameter| parameter.oid).collect();
            let parameters = ParameterDescription::new(oids);
            self.reply(&PgWireBackendMessage::ParameterDescription(parameters))?;
            (prepared.fields.clone(), Vec::new())
        } else {
            match (self.session.portals.get(name), self.session.cursors.get(name)) {
                (Some(portal), _) => (portal.prepared.fields.clone(), portal.formats.clone()),
                // A cursor that DECLARE opened is a portal too; psycopg asks for its columns here.
                (None, Some(cursor)) => (Some(cursor.schema.fields().clone()), Vec::new()),
                (None, None) => return Err(unknown_portal(name)),
            }
        };
        match fields {
            Some(fields) => {
                let description = row_description(&fields, &formats);
                self.reply(&PgWireBackendMessage::RowDescription(description))
            }
            None => self.reply(&PgWireBackendMessage::NoData(NoData::new())),
        }
    }

    fn close(&mut self, close: &Close) -> Result<(), UserError> {
        let name = close.name.as_deref().unwrap_or_default();
        // Closing what is not there is no error.
        if close.target_type == TARGET_TYPE_BYTE_STATEMENT {
            self.session.prepared.remove(name);
        } else {
            self.session.portals.remove(name);
        }
        self.reply(&PgWireBackendMessage::CloseComplete(CloseComplete::new()))
    }

    async fn execute(&mut self, message: &Execute) -> Result<Result<(), UserError>, Ending> {
        let name = message.name.clone().unwrap_or_default();
        let Some(portal) = self.session.portals.get_mut(&name) else {
            return Ok(Err(unknown_portal(&name)));
        };
        let prepared = Arc::clone(&portal.prepared);
        let parameters = Arc::clone(&portal.parameters);
        let state = std::mem::replace(&mut portal.state, PortalState::Complete);
        let Some(statement) = prepared.statement.clone() else {
            self.push(&PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new()))?;
            return Ok(Ok(()));
        };
        let rows_max = usize::try_from(message.max_rows).unwrap_or(0);
        let mut driver = self.begin(&prepared.text);
        let call = Call {
            statement,
            source: Arc::clone(&prepared.text),
            parameters,
            plan: Arc::clone(&prepared.plan),
        };
        let answered = match state {
            PortalState::Bound => self.execute_bound(&name, call, rows_max, &mut driver).await,
            PortalState::Suspended(rows) => {
                self.portal_rows(&name, rows, rows_max, &mut driver).await
            }
            PortalState::Complete => {
                self.complete("SELECT 0".to_owned())?;
                Ok(Ok(()))
            }
        };
        self.ran(&driver);
        Ok(answered?.map_err(|error| driver.told(error)))
    }

    async fn execute_bound(
        &mut self,
        name: &str,
        call: Call,
        rows_max: usize,
        driver: &mut Driver,
    ) -> Result<Result<(), UserError>, Ending> {
        let running = driver.running.clone();
        let statement = execute(&mut self.session, call, &running);
        match drive(&mut self.wire, &self.shutdown, driver, statement).await? {
            Err(error) => Ok(Err(error)),
            Ok(Outcome::Done(tag)) => {
                self.complete(tag)?;
                Ok(Ok(()))
            }
            Ok(Outcome::Rows(rows)) => self.portal_rows(name, rows, rows_max, driver).await,
            Ok(Outcome::CopyIn(copy)) => self.copy_in(*copy, driver).await,
            Ok(Outcome::CopyOut(copy)) => self.copy_out(copy, driver).await,
        }
    }

    /// Sends up to `rows_max` rows of a portal (0: all) and keeps the rest.
    async fn portal_rows(
        &mut self,
        name: &str,
        mut rows: RowStream,
        rows_max: usize,
        driver: &mut Driver,
    ) -> Result<Result<(), UserError>, Ending> {
        let formats = self.session.portals.get(name).map(|portal| portal.formats.clone());
        let formats = formats.unwrap_or_default();
        let style = self.session.settings.style();
        let cancel = driver.running.cancel.clone();
        let encoding = Encoding { formats: &formats, style: &style, cancel: &cancel };
        let mut left = rows_max;
        let portion = loop {
            match self.send_rows(&mut rows, &encoding, left, driver).await? {
                Err(error) => return Ok(Err(error)),
                Ok(None) => break Portion::Complete,
                Ok(Some(count)) if rows_max > 0 => {
                    left -= count;
                    if left == 0 {
                        break Portion::Suspended;
                    }
                }
                Ok(Some(_)) => {}
            }
        };
        match portion {
            Portion::Complete => self.complete(rows.tag())?,
            Portion::Suspended => {
                if let Some(portal) = self.session.portals.get_mut(name) {
                    portal.state = PortalState::Suspended(rows);
                }
                self.push(&PgWireBackendMessage::PortalSuspended(PortalSuspended::new()))?;
            }
        }
        Ok(Ok(()))
    }

    /// Like `push`, for answers that cannot fail but by a message too long for the protocol.
    fn reply(&mut self, message: &PgWireBackendMessage) -> Result<(), UserError> {
        self.wire.push(message).map_err(|error| UserError::internal(error.to_string()))
    }
}

fn unknown_portal(name: &str) -> UserError {
    UserError::new(SqlState::UNDEFINED_CURSOR, format!("portal \"{name}\" does not exist"))
}

fn too_many(what: &str) -> UserError {
    UserError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, format!("too many {what}"))
        .with_detail(format!("A session may hold {NAMED_MAX} of them."))
        .with_hint("Close those that are no longer used.")
}
