//! The simple protocol: one text, any number of statements, each result sent before the next statement
//! runs.

use std::sync::Arc;

use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse};
use segue_types::UserError;

use super::connection::{Client, Ending};
use super::drive::{Driver, drive};
use crate::outcome::{Encoding, Outcome, RowStream};
use crate::pg_type::row_description;
use crate::prepared::{Parameters, PlanCache};
use crate::statements::{Call, execute};

impl Client {
    /// Answers a Query message.
    pub(super) async fn simple_query(&mut self, text: &str) -> Result<(), Ending> {
        let text: Arc<str> = text.into();
        // The unnamed statement and portal do not outlive a simple query.
        self.session.prepared.remove("");
        self.session.portals.remove("");
        match segue_sql::parse_spanned(&text) {
            Err(error) => self.fail(&error.into())?,
            Ok(parsed) if parsed.is_empty() => {
                self.push(&PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new()))?;
            }
            Ok(parsed) => {
                for statement in parsed {
                    let source = text[statement.source.clone()].into();
                    let call = Call {
                        statement: Arc::new(statement.statement),
                        source,
                        parameters: Parameters::default(),
                        plan: Arc::new(PlanCache::default()),
                    };
                    let mut driver = self.begin(&text);
                    let answered = self.simple_statement(call, &mut driver).await;
                    self.ran(&driver);
                    if let Err(error) = answered? {
                        self.fail(&driver.told(error))?;
                        break;
                    }
                }
            }
        }
        self.ready()
    }

    async fn simple_statement(
        &mut self,
        call: Call,
        driver: &mut Driver,
    ) -> Result<Result<(), UserError>, Ending> {
        let running = driver.running.clone();
        let statement = execute(&mut self.session, call, &running);
        let outcome = drive(&mut self.wire, &self.shutdown, driver, statement).await?;
        match outcome {
            Err(error) => Ok(Err(error)),
            Ok(Outcome::Done(tag)) => {
                self.complete(tag)?;
                Ok(Ok(()))
            }
            Ok(Outcome::Rows(rows)) => self.simple_rows(rows, driver).await,
            Ok(Outcome::CopyIn(copy)) => self.copy_in(*copy, driver).await,
            Ok(Outcome::CopyOut(copy)) => self.copy_out(copy, driver).await,
        }
    }

    async fn simple_rows(
        &mut self,
        mut rows: RowStream,
        driver: &mut Driver,
    ) -> Result<Result<(), UserError>, Ending> {
        let description = row_description(rows.schema.fields(), &[]);
        self.push(&PgWireBackendMessage::RowDescription(description))?;
        let style = self.session.settings.style();
        let cancel = driver.running.cancel.clone();
        let encoding = Encoding { formats: &[], style: &style, cancel: &cancel };
        loop {
            match self.send_rows(&mut rows, &encoding, 0, driver).await? {
                Err(error) => return Ok(Err(error)),
                Ok(Some(_)) => {}
                Ok(None) => break,
            }
        }
        self.complete(rows.tag())?;
        Ok(Ok(()))
    }

    /// Sends some rows; `None` when there are no more.
    pub(super) async fn send_rows(
        &mut self,
        rows: &mut RowStream,
        encoding: &Encoding<'_>,
        rows_max: usize,
        driver: &mut Driver,
    ) -> Result<Result<Option<usize>, UserError>, Ending> {
        let mut out = std::mem::take(self.wire.output());
        let encoded = rows.encode(encoding, rows_max, &mut out);
        let sent = drive(&mut self.wire, &self.shutdown, driver, encoded).await;
        // Notices of the meantime go after the rows that were encoded with them.
        let notices = std::mem::replace(self.wire.output(), out);
        self.wire.output().extend_from_slice(&notices);
        let sent = sent?;
        self.wire.flush_if_full().await?;
        Ok(sent)
    }

    /// Tells the client that a statement is complete.
    pub(super) fn complete(&mut self, tag: String) -> Result<(), Ending> {
        self.push(&PgWireBackendMessage::CommandComplete(CommandComplete::new(tag)))
    }
}
