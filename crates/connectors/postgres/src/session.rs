//! One session at the server.
//!
//! Invariant: a session that is dropped, whenever that is, leaves no query running at the server: dropping
//! cancels what runs and closes the socket.

use std::time::Duration;

use segue_connect::ConnectError;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_postgres::{CancelToken, Client, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Asked, connect_error};
use crate::options::Settings;
use crate::tls;

const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for the connection's own account of why it closed.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_secs(1);

/// No limit of the server's configuration may end a long capture, and what a cast to text prints must not
/// depend on that configuration either. `client_connection_check_interval` ends the query of a killed
/// client. Settings that this version of the server lacks are left out by the join.
const SET_UP: &str = "
SELECT set_config(name, value, false)
FROM (VALUES ('statement_timeout', '0'), ('lock_timeout', '0'),
             ('idle_in_transaction_session_timeout', '0'), ('idle_session_timeout', '0'),
             ('transaction_timeout', '0'), ('DateStyle', 'ISO, YMD'), ('IntervalStyle', 'postgres'),
             ('TimeZone', 'UTC'), ('extra_float_digits', '3'), ('bytea_output', 'hex'))
     AS wanted (name, value)
JOIN pg_catalog.pg_settings USING (name)";
const SET_CHECK: &str = "SET client_connection_check_interval = '10s'";

/// What tells this database from any other, also after a restore under the same address.
const DATABASE: &str = "
SELECT oid::text, datname::text,
       has_function_privilege('pg_catalog.pg_control_system()', 'execute')::text
FROM pg_catalog.pg_database WHERE datname = current_database()";
const SYSTEM_IDENTIFIER: &str =
    "SELECT system_identifier::text FROM pg_catalog.pg_control_system()";

/// A connection and what is needed to end it from outside.
pub(crate) struct Session {
    client: Client,
    connection: JoinHandle<Result<(), tokio_postgres::Error>>,
    /// `None` once the session is closed.
    cancel: Option<CancelToken>,
    tls: MakeRustlsConnect,
    system: String,
}

impl Session {
    pub(crate) async fn open(settings: &Settings) -> Result<Session, ConnectError> {
        let tls = tls::connector(&settings.trust).map_err(ConnectError::Config)?;
        let (client, connection) = settings
            .connection
            .connect(tls.clone())
            .await
            .map_err(|error| connect_error(&error, &settings.system, Asked::Connection))?;
        let cancel = Some(client.cancel_token());
        let connection = tokio::spawn(connection);
        let mut session =
            Session { client, connection, cancel, tls, system: settings.system.clone() };
        session.execute(SET_UP, Asked::Connection).await?;
        if let Err(error) = session.client.batch_execute(SET_CHECK).await
            && error.as_db_error().is_none()
        {
            return Err(session.error(error, Asked::Connection).await);
        }
        Ok(session)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn system(&self) -> &str {
        &self.system
    }

    /// The driver's error, with the connection's own reason where it has one.
    pub(crate) async fn error(
        &mut self,
        error: tokio_postgres::Error,
        asked: Asked,
    ) -> ConnectError {
        if error.is_closed()
            && let Ok(Ok(Err(reason))) =
                tokio::time::timeout(LAST_WORDS_TIMEOUT, &mut self.connection).await
        {
            return connect_error(&reason, &self.system, asked);
        }
        connect_error(&error, &self.system, asked)
    }

    pub(crate) async fn execute(&mut self, sql: &str, asked: Asked) -> Result<(), ConnectError> {
        match self.client.batch_execute(sql).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.error(error, asked).await),
        }
    }

    /// The rows of `sql`, as the server prints their values.
    pub(crate) async fn texts(
        &mut self,
        sql: &str,
        asked: Asked,
    ) -> Result<Vec<Vec<Option<String>>>, ConnectError> {
        let messages = match self.client.simple_query(sql).await {
            Ok(messages) => messages,
            Err(error) => return Err(self.error(error, asked).await),
        };
        let rows = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect())
            }
            _ => None,
        });
        Ok(rows.collect())
    }

    /// What the rows are read from: `postgres:<system identifier>/<database oid>/<database>`. Where the
    /// server keeps its identifier from us, the address that was configured stands for it.
    pub(crate) async fn identity(&mut self) -> Result<String, ConnectError> {
        let rows = self.texts(DATABASE, Asked::Connection).await?;
        let mut facts = rows.into_iter().flatten().flatten();
        let (Some(oid), Some(name), Some(permitted)) = (facts.next(), facts.next(), facts.next())
        else {
            let reason = "it does not name its database".to_owned();
            return Err(ConnectError::Denied { system: self.system.clone(), reason });
        };
        let cluster = if permitted == "true" {
            let rows = self.texts(SYSTEM_IDENTIFIER, Asked::Connection).await?;
            rows.into_iter().flatten().flatten().next()
        } else {
            None
        };
        let cluster = cluster.unwrap_or_else(|| self.system.replace("postgres at ", ""));
        Ok(format!("postgres:{cluster}/{oid}/{name}"))
    }

    /// Ends a session in which nothing runs: the client, dropped here, says goodbye in the protocol.
    pub(crate) fn close(mut self) {
        self.cancel = None;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let Some(cancel) = self.cancel.take() else { return };
        let connection = self.connection.abort_handle();
        let tls = self.tls.clone();
        if let (false, Ok(runtime)) = (connection.is_finished(), Handle::try_current()) {
            runtime.spawn(async move {
                let cancelled =
                    tokio::time::timeout(CANCEL_TIMEOUT, cancel.cancel_query(tls)).await;
                if !matches!(cancelled, Ok(Ok(()))) {
                    tracing::debug!("a query could not be cancelled; its socket is closed instead");
                }
                connection.abort();
            });
        } else {
            connection.abort();
        }
    }
}
