//! COPY … FROM STDIN and COPY … TO STDOUT, in text and csv.

use std::sync::Arc;

use arrow::array::RecordBatch;
use bytes::{BufMut, BytesMut};
use segue_catalog::Object;
use segue_formats::{CopyDecoder, CopyTextOptions, CsvOptions, Header};
use segue_types::{SqlState, UserError};
use sqlparser::ast::{self, CopySource, CopyTarget, SelectItem, SetExpr, Statement};

use super::copy_layout::Layout;
use super::defaults::Defaults;
use super::{Call, insert, query, target};
use crate::encode::{Rows, Style};
use crate::outcome::{Outcome, RowStream};
use crate::session::{Running, Session};

/// What one COPY may hold before it is written: it is written whole or not at all.
const COPY_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// Rows that are decoded into one batch.
const BATCH_ROWS: usize = 16 * 1024;

/// A COPY FROM STDIN that waits for its data.
pub(crate) struct CopyIn {
    object: Arc<Object>,
    columns: Vec<usize>,
    decoder: CopyDecoder,
    batches: Vec<RecordBatch>,
    bytes: usize,
}

/// A COPY TO STDOUT on its way.
pub(crate) struct CopyOut {
    pub(crate) rows: RowStream,
    layout: Layout,
    header_due: bool,
}

/// Runs COPY up to the point where data flows.
pub(super) async fn execute(
    session: &Session,
    statement: &Statement,
    call: &Call,
    running: &Running,
) -> Result<Outcome, UserError> {
    let Statement::Copy { source, to, target, options, legacy_options, .. } = statement else {
        return Err(UserError::internal("not a COPY"));
    };
    let layout = Layout::of(options, legacy_options)?;
    match (to, target, source) {
        (false, CopyTarget::Stdin, CopySource::Table { table_name, columns }) => {
            copy_in(session, table_name, columns, &layout)
        }
        (true, CopyTarget::Stdout, source) => {
            let query = match source {
                CopySource::Query(query) => query.as_ref().clone(),
                CopySource::Table { table_name, columns } => select_of(table_name, columns),
            };
            let rows = query::start(session, &query, call, running).await?;
            let header_due = layout.header;
            Ok(Outcome::CopyOut(CopyOut { rows, layout, header_due }))
        }
        _ => Err(UserError::unsupported("COPY of files and programs is not supported").with_hint(
            "Use COPY … FROM STDIN or TO STDOUT; psql's \\copy reads and writes files.",
        )),
    }
}

fn select_of(name: &ast::ObjectName, columns: &[ast::Ident]) -> ast::Query {
    let mut query = target::skeleton("SELECT * FROM t");
    if let SetExpr::Select(select) = query.body.as_mut() {
        if let Some(from) = select.from.first_mut()
            && let ast::TableFactor::Table { name: table, .. } = &mut from.relation
        {
            table.clone_from(name);
        }
        if !columns.is_empty() {
            let column =
                |ident: &ast::Ident| SelectItem::UnnamedExpr(ast::Expr::Identifier(ident.clone()));
            select.projection = columns.iter().map(column).collect();
        }
    }
    query
}

fn copy_in(
    session: &Session,
    name: &ast::ObjectName,
    columns: &[ast::Ident],
    layout: &Layout,
) -> Result<Outcome, UserError> {
    let object = target::table(session, name, "copy to")?;
    let names: Vec<String> = columns.iter().map(target::folded).collect();
    let columns = target::columns(&object, &names)?;
    let decoder = if layout.csv {
        CopyDecoder::csv(
            &object.schema,
            &columns,
            CsvOptions {
                delimiter: layout.delimiter,
                quote: layout.quote,
                escape: layout.escape,
                null: layout.null.clone(),
                header: if layout.header { Header::Present } else { Header::Absent },
            },
        )
    } else {
        let options = CopyTextOptions { delimiter: layout.delimiter, null: layout.null.clone() };
        CopyDecoder::text(&object.schema, &columns, options)
    };
    Ok(Outcome::CopyIn(Box::new(CopyIn {
        object,
        columns,
        decoder,
        batches: Vec::new(),
        bytes: 0,
    })))
}

impl CopyIn {
    /// How many fields a line has.
    pub(crate) fn width(&self) -> usize {
        self.columns.len()
    }

    /// Takes a piece of data.
    pub(crate) fn push(&mut self, data: &[u8]) -> Result<(), UserError> {
        self.decoder.push(data).map_err(|error| self.malformed(&error))?;
        if self.decoder.len() >= BATCH_ROWS {
            self.cut()?;
        }
        Ok(())
    }

    fn cut(&mut self) -> Result<(), UserError> {
        let batch = self.decoder.finish();
        self.bytes += batch.get_array_memory_size();
        if self.bytes > COPY_BYTES_MAX {
            return Err(UserError::new(SqlState::OUT_OF_MEMORY, "COPY holds too much data")
                .with_detail(format!("One COPY may hold {COPY_BYTES_MAX} bytes."))
                .with_hint("Copy in several parts."));
        }
        self.batches.push(batch);
        Ok(())
    }

    /// The data is complete: writes it all. Returns the number of rows.
    pub(crate) async fn finish(
        mut self,
        session: &mut Session,
        running: &Running,
    ) -> Result<usize, UserError> {
        self.decoder.end().map_err(|error| self.malformed(&error))?;
        self.cut()?;
        let count = self.batches.iter().map(RecordBatch::num_rows).sum();
        let defaults = Defaults::of(&self.object)?;
        let mut batches = Vec::with_capacity(self.batches.len());
        for batch in &self.batches {
            let (given, columns) = (&self.columns, batch.columns());
            let rows =
                defaults.rows(session, &self.object, given, columns, batch.num_rows(), running);
            batches.push(rows.await?);
        }
        insert::write(session, &self.object, batches, running).await?;
        Ok(count)
    }

    fn malformed(&self, error: &segue_formats::CopyError) -> UserError {
        let reason = &error.error.reason;
        let state = if reason.contains("out of range") {
            SqlState::NUMERIC_OUT_OF_RANGE
        } else if reason.contains("not-null") {
            SqlState::NOT_NULL_VIOLATION
        } else if error.error.column.is_some() {
            SqlState::INVALID_TEXT_REPRESENTATION
        } else {
            SqlState::BAD_COPY_FILE_FORMAT
        };
        let place = match &error.error.column {
            Some(column) => {
                format!("COPY {}, line {}, column {column}.", self.object.name, error.line)
            }
            None => format!("COPY {}, line {}.", self.object.name, error.line),
        };
        UserError::new(state, reason.clone()).with_detail(place)
    }
}

impl CopyOut {
    /// How many fields a line has.
    pub(crate) fn width(&self) -> usize {
        self.rows.schema.fields().len()
    }

    /// The header line, the first time.
    pub(crate) fn header(&mut self) -> Option<BytesMut> {
        if !std::mem::take(&mut self.header_due) {
            return None;
        }
        let mut line = BytesMut::new();
        for (index, field) in self.rows.schema.fields().iter().enumerate() {
            self.separate(index, &mut line);
            self.field(Some(field.name().as_bytes()), &mut line);
        }
        line.put_u8(b'\n');
        Some(line)
    }

    /// One line.
    pub(crate) fn line(&self, rows: &Rows, row: usize, style: &Style) -> BytesMut {
        let mut line = BytesMut::new();
        let mut field = BytesMut::new();
        for column in 0..self.width() {
            self.separate(column, &mut line);
            field.clear();
            let given = rows.text(row, column, style, &mut field);
            self.field(given.then_some(&field[..]), &mut line);
        }
        line.put_u8(b'\n');
        line
    }

    fn separate(&self, column: usize, line: &mut BytesMut) {
        if column > 0 {
            line.put_u8(self.layout.delimiter);
        }
    }

    fn field(&self, text: Option<&[u8]>, line: &mut BytesMut) {
        match text {
            None => line.extend_from_slice(self.layout.null.as_bytes()),
            Some(text) if self.layout.csv => self.csv_field(text, line),
            Some(text) => text_field(text, self.layout.delimiter, line),
        }
    }

    fn csv_field(&self, text: &[u8], line: &mut BytesMut) {
        let Layout { delimiter, quote, escape, .. } = self.layout;
        let plain = text != self.layout.null.as_bytes()
            && !text.iter().any(|c| [delimiter, quote, b'\n', b'\r'].contains(c));
        if plain {
            line.extend_from_slice(text);
            return;
        }
        line.put_u8(quote);
        for c in text {
            if *c == quote || *c == escape {
                line.put_u8(escape);
            }
            line.put_u8(*c);
        }
        line.put_u8(quote);
    }
}

fn text_field(text: &[u8], delimiter: u8, line: &mut BytesMut) {
    for c in text {
        match c {
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            b'\t' => line.extend_from_slice(b"\\t"),
            c if *c == delimiter => line.extend_from_slice(&[b'\\', *c]),
            c => line.put_u8(*c),
        }
    }
}
