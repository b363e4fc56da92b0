//! The COPY sub-protocol: data in from the client, data out to it.

use std::io;

use bytes::Bytes;
use pgwire::messages::copy::{CopyData, CopyDone, CopyInResponse, CopyOutResponse};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use segue_types::{SqlState, UserError};

use super::connection::{Client, Ending, protocol_violation, shutting_down};
use super::drive::{Driver, drive};
use crate::encode::Rows;
use crate::errors::canceled;
use crate::statements::{CopyIn, CopyOut};
use crate::wire::WireError;

impl Client {
    /// Takes the client's data up to its end, and writes it.
    pub(super) async fn copy_in(
        &mut self,
        mut copy: CopyIn,
        driver: &mut Driver,
    ) -> Result<Result<(), UserError>, Ending> {
        let width = copy.width();
        let response = CopyInResponse::new(0, width as i16, vec![0; width]);
        self.push(&PgWireBackendMessage::CopyInResponse(response))?;
        self.wire.flush().await?;
        loop {
            let message = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return Err(Ending::Fatal(shutting_down())),
                () = driver.running.cancel.cancelled() => return Ok(Err(canceled())),
                message = self.wire.read() => message?,
            };
            match message {
                Some(PgWireFrontendMessage::CopyData(piece)) => {
                    if let Err(error) = copy.push(&piece.data) {
                        return Ok(Err(error));
                    }
                }
                Some(PgWireFrontendMessage::CopyDone(_)) => break,
                Some(PgWireFrontendMessage::CopyFail(failure)) => {
                    return Ok(Err(UserError::new(
                        SqlState::QUERY_CANCELED,
                        format!("COPY from stdin failed: {}", failure.message),
                    )));
                }
                // Drivers send these behind the Execute that began the COPY.
                Some(PgWireFrontendMessage::Flush(_) | PgWireFrontendMessage::Sync(_)) => {}
                Some(_) => {
                    let error =
                        protocol_violation("unexpected message type during COPY from stdin");
                    return Err(Ending::Fatal(error));
                }
                None => {
                    let error = io::Error::from(io::ErrorKind::UnexpectedEof);
                    return Err(WireError::Io(error).into());
                }
            }
        }
        let running = driver.running.clone();
        let finish = copy.finish(&mut self.session, &running);
        match drive(&mut self.wire, &self.shutdown, driver, finish).await? {
            Ok(count) => {
                self.complete(format!("COPY {count}"))?;
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    /// Sends a relation's or query's rows.
    pub(super) async fn copy_out(
        &mut self,
        mut copy: CopyOut,
        driver: &mut Driver,
    ) -> Result<Result<(), UserError>, Ending> {
        let width = copy.width();
        let response = CopyOutResponse::new(0, width as i16, vec![0; width]);
        self.push(&PgWireBackendMessage::CopyOutResponse(response))?;
        if let Some(header) = copy.header() {
            self.copy_data(header.freeze())?;
        }
        let style = self.session.settings.style();
        let cancel = driver.running.cancel.clone();
        let mut count = 0;
        loop {
            let next = copy.rows.next(&cancel);
            let batch = match drive(&mut self.wire, &self.shutdown, driver, next).await? {
                Err(error) => return Ok(Err(error)),
                Ok(None) => break,
                Ok(Some(batch)) => batch,
            };
            let rows = match Rows::new(&batch, &[]) {
                Ok(rows) => rows,
                Err(error) => return Ok(Err(error)),
            };
            for row in 0..rows.count() {
                self.copy_data(copy.line(&rows, row, &style).freeze())?;
                self.wire.flush_if_full().await?;
            }
            count += rows.count();
        }
        self.push(&PgWireBackendMessage::CopyDone(CopyDone::new()))?;
        self.complete(format!("COPY {count}"))?;
        Ok(Ok(()))
    }

    fn copy_data(&mut self, line: Bytes) -> Result<(), Ending> {
        self.push(&PgWireBackendMessage::CopyData(CopyData::new(line)))
    }
}
