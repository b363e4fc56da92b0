//! Statements as SQL: the normalised form that is stored in the catalog and shown by SHOW CREATE.

use std::fmt::{self, Display, Formatter};

use segue_types::SqlType;
use sqlparser::ast;

use crate::{
    Action, Alter, AlterJob, CancelJob, Column, Columns, ConflictAction, CreateIndex, CreateSink,
    CreateSource, CreateTable, CreateView, Describe, Drop, DropBehavior, DropIndex, Emission,
    Explain, ExplainMode, Explained, Foreign, FormatClause, Include, Input, JobAction, Literal,
    Mutability, Name, Nullability, ObjectKind, OnExisting, OnMissing, Parallelism, RateLimit, Read,
    Rename, Rows, Show, Shown, Stage, StartAt, Statement, StopAt, Wait, WeakHandoff, WithOption,
    name::is_plain,
};

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Statement::CreateSource(statement) => statement.fmt(f),
            Statement::CreateTable(statement) => statement.fmt(f),
            Statement::CreateView(view) => write_view(f, ObjectKind::View, view),
            Statement::CreateMaterializedView(view) => {
                write_view(f, ObjectKind::MaterializedView, view)
            }
            Statement::CreateSink(statement) => statement.fmt(f),
            Statement::CreateIndex(statement) => statement.fmt(f),
            Statement::Drop(statement) => statement.fmt(f),
            Statement::DropIndex(statement) => statement.fmt(f),
            Statement::Alter(statement) => statement.fmt(f),
            Statement::AlterJob(statement) => statement.fmt(f),
            Statement::Rename(Rename { kind, name, to, .. }) => {
                write!(f, "ALTER {} {name} RENAME TO {to}", kind.as_sql())
            }
            Statement::Show(statement) => statement.fmt(f),
            Statement::Describe(statement) => statement.fmt(f),
            Statement::Explain(statement) => statement.fmt(f),
            Statement::Flush => f.write_str("FLUSH"),
            Statement::Wait(statement) => statement.fmt(f),
            Statement::CancelJob(statement) => statement.fmt(f),
            Statement::Sql(statement) => statement.fmt(f),
        }
    }
}

impl ObjectKind {
    /// The words of the grammar.
    pub fn as_sql(self) -> &'static str {
        match self {
            ObjectKind::Source => "SOURCE",
            ObjectKind::Table => "TABLE",
            ObjectKind::View => "VIEW",
            ObjectKind::MaterializedView => "MATERIALIZED VIEW",
            ObjectKind::Sink => "SINK",
        }
    }
}

impl WeakHandoff {
    /// The clause.
    pub fn as_sql(self) -> &'static str {
        match self {
            WeakHandoff::Gap => "ALLOW GAP",
            WeakHandoff::Overlap => "ALLOW OVERLAP",
        }
    }
}

impl Display for CreateSource {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_create(f, ObjectKind::Source, self.on_existing, &self.name)?;
        self.columns.fmt(f)?;
        for include in &self.includes {
            write!(f, "\n{include}")?;
        }
        write!(f, "\n{}", self.input)
    }
}

impl Display for CreateTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_create(f, ObjectKind::Table, self.on_existing, &self.name)?;
        self.columns.fmt(f)?;
        if self.mutability == Mutability::AppendOnly {
            f.write_str(" APPEND ONLY")?;
        }
        match self.on_conflict {
            None => {}
            Some(ConflictAction::DoNothing) => f.write_str(" ON CONFLICT DO NOTHING")?,
            Some(ConflictAction::Overwrite) => f.write_str(" ON CONFLICT OVERWRITE")?,
            Some(ConflictAction::DoUpdateIfNotNull) => {
                f.write_str(" ON CONFLICT DO UPDATE IF NOT NULL")?;
            }
        }
        if !self.versions.is_empty() {
            write!(f, " WITH VERSION COLUMN ({})", Separated(&self.versions))?;
        }
        for include in &self.includes {
            write!(f, "\n{include}")?;
        }
        self.input.as_ref().map_or(Ok(()), |input| write!(f, "\n{input}"))
    }
}

fn write_create(
    f: &mut Formatter<'_>,
    kind: ObjectKind,
    on_existing: OnExisting,
    name: &Name,
) -> fmt::Result {
    let replace = if on_existing == OnExisting::Replace { "OR REPLACE " } else { "" };
    let skip = if on_existing == OnExisting::Skip { "IF NOT EXISTS " } else { "" };
    write!(f, "CREATE {replace}{} {skip}{name} ", kind.as_sql())
}

fn write_view(f: &mut Formatter<'_>, kind: ObjectKind, view: &CreateView) -> fmt::Result {
    write_create(f, kind, view.on_existing, &view.name)?;
    if !view.columns.is_empty() {
        write!(f, "({}) ", Separated(&view.columns))?;
    }
    write_query(f, &view.query, view.emission)
}

fn write_query(
    f: &mut Formatter<'_>,
    query: &Foreign<ast::Query>,
    emission: Emission,
) -> fmt::Result {
    write!(f, "AS {}", query.text)?;
    match emission {
        Emission::OnChange => Ok(()),
        Emission::OnWindowClose => f.write_str("\nEMIT ON WINDOW CLOSE"),
    }
}

impl Display for CreateSink {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_create(f, ObjectKind::Sink, self.on_existing, &self.name)?;
        if let Some(table) = &self.into {
            write!(f, "INTO {} ", table.name)?;
            if !table.columns.is_empty() {
                write!(f, "({}) ", Separated(&table.columns))?;
            }
        }
        write_query(f, &self.query, self.emission)?;
        if !self.options.is_empty() {
            write!(f, "\nWITH ({})", Separated(&self.options))?;
        }
        self.format.as_ref().map_or(Ok(()), |format| write!(f, "\n{format}"))
    }
}

impl Display for Columns {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut lines: Vec<String> = self.columns.iter().map(Column::to_string).collect();
        if !self.key.is_empty() {
            lines.push(format!("PRIMARY KEY ({})", Separated(&self.key)));
        }
        if let Some(watermark) = &self.watermark {
            let options = match watermark.options.as_slice() {
                [] => String::new(),
                options => format!(" WITH ({})", Separated(options)),
            };
            lines.push(format!(
                "WATERMARK FOR {} AS {}{options}",
                watermark.column, watermark.expression.text
            ));
        }
        write!(f, "(\n    {}\n)", lines.join(",\n    "))
    }
}

impl Display for Column {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, Type(&self.ty))?;
        if self.nullability == Nullability::NotNull {
            f.write_str(" NOT NULL")?;
        }
        if let Some(generated) = &self.generated {
            write!(f, " AS {}", generated.text)?;
        }
        self.default.as_ref().map_or(Ok(()), |default| write!(f, " DEFAULT {}", default.text))
    }
}

/// A type with its member names quoted where they must be.
struct Type<'a>(&'a SqlType);

impl Display for Type<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            SqlType::Array(element) => write!(f, "{}[]", Type(element)),
            SqlType::Struct(members) => {
                let member = |(name, ty): &(String, SqlType)| {
                    format!("{} {}", Name::new(name.as_str()), Type(ty))
                };
                write!(f, "struct<{}>", members.iter().map(member).collect::<Vec<_>>().join(", "))
            }
            scalar => scalar.fmt(f),
        }
    }
}

impl Display for Include {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "INCLUDE {}", self.kind)?;
        if let Some(inner) = &self.inner {
            write!(f, " {}", Literal(inner))?;
        }
        self.column.as_ref().map_or(Ok(()), |column| write!(f, " AS {column}"))
    }
}

impl Display for Input {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Input::Read(read) => read.fmt(f),
            Input::Stages(stages) => {
                let lines: Vec<String> = stages.iter().map(Stage::to_string).collect();
                write!(f, "WITH STAGES (\n    {}\n)", lines.join(",\n    "))
            }
        }
    }
}

impl Display for Stage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.read)
    }
}

impl Display for Read {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "WITH ({})", Separated(&self.options))?;
        if let Some(format) = &self.format {
            write!(f, " {format}")?;
        }
        if let Some(start) = &self.start {
            write!(f, " START AT {start}")?;
        }
        if let Some(stop) = &self.stop {
            write!(f, " STOP AT {stop}")?;
        }
        if let Some(weak) = self.allow {
            write!(f, " {}", weak.as_sql())?;
        }
        if self.rows == Rows::AsEvents { f.write_str(" AS EVENTS") } else { Ok(()) }
    }
}

impl Display for WithOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.name.split('.').all(is_plain) {
            write!(f, "{} = {}", self.name, Literal(&self.value))
        } else {
            let quoted = self.name.replace('"', "\"\"");
            write!(f, "\"{quoted}\" = {}", Literal(&self.value))
        }
    }
}

impl Display for FormatClause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (format, encode) = (self.format.to_ascii_uppercase(), self.encode.to_ascii_uppercase());
        write!(f, "FORMAT {format} ENCODE {encode}")?;
        if self.options.is_empty() { Ok(()) } else { write!(f, " ({})", Separated(&self.options)) }
    }
}

impl Display for StartAt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            StartAt::Handoff => f.write_str("HANDOFF"),
            StartAt::Earliest => f.write_str("EARLIEST"),
            StartAt::Latest => f.write_str("LATEST"),
            StartAt::Timestamp(time) => write!(f, "TIMESTAMP {}", Literal(time)),
            StartAt::Offsets(json) => write!(f, "OFFSETS {}", Literal(json)),
            StartAt::Query(query) => write!(f, "QUERY {}", Literal(query)),
            StartAt::Columns { split, position } => write!(f, "COLUMNS ({split}, {position})"),
        }
    }
}

impl Display for StopAt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            StopAt::Latest => f.write_str("LATEST"),
            StopAt::Timestamp(time) => write!(f, "TIMESTAMP {}", Literal(time)),
            StopAt::Offsets(json) => write!(f, "OFFSETS {}", Literal(json)),
        }
    }
}

impl Display for CreateIndex {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let skip = if self.on_existing == OnExisting::Skip { "IF NOT EXISTS " } else { "" };
        write!(f, "CREATE INDEX {skip}")?;
        if let Some(name) = &self.name {
            write!(f, "{name} ")?;
        }
        write!(f, "ON {} ({})", self.table, texts(&self.columns))?;
        if !self.included.is_empty() {
            write!(f, " INCLUDE ({})", texts(&self.included))?;
        }
        if !self.distributed.is_empty() {
            write!(f, " DISTRIBUTED BY ({})", texts(&self.distributed))?;
        }
        Ok(())
    }
}

fn texts<T>(pieces: &[Foreign<T>]) -> String {
    pieces.iter().map(|piece| piece.text.as_str()).collect::<Vec<_>>().join(", ")
}

impl Display for DropIndex {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let skip = if self.on_missing == OnMissing::Skip { "IF EXISTS " } else { "" };
        write!(f, "DROP INDEX {skip}{}", Separated(&self.names))
    }
}

impl Display for Drop {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let skip = if self.on_missing == OnMissing::Skip { "IF EXISTS " } else { "" };
        write!(f, "DROP {} {skip}{}", self.kind.as_sql(), Separated(&self.names))?;
        if self.behavior == DropBehavior::Cascade { f.write_str(" CASCADE") } else { Ok(()) }
    }
}

impl Display for Alter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "ALTER {} {} {}", self.kind.as_sql(), self.name, self.action)
    }
}

impl Display for Action {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Action::Pause => f.write_str("PAUSE"),
            Action::Resume => f.write_str("RESUME"),
            Action::Refresh => f.write_str("REFRESH"),
            Action::SetSourceRateLimit(limit) => write!(f, "SET source_rate_limit = {limit}"),
            Action::SetBackfillRateLimit(limit) => write!(f, "SET backfill_rate_limit = {limit}"),
            Action::SetParallelism(parallelism) => write!(f, "SET PARALLELISM = {parallelism}"),
        }
    }
}

impl Display for RateLimit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            RateLimit::Unlimited => f.write_str("DEFAULT"),
            RateLimit::RowsPerSecond(rows) => rows.fmt(f),
        }
    }
}

impl Display for Parallelism {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Parallelism::Adaptive => f.write_str("ADAPTIVE"),
            Parallelism::Fixed(readers) => readers.fmt(f),
        }
    }
}

impl Display for AlterJob {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let action = match self.action {
            JobAction::Pause => "PAUSE",
            JobAction::Resume => "RESUME",
        };
        write!(f, "{action} JOBS {}", Separated(&self.jobs))
    }
}

impl Display for Show {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.what {
            Shown::Sources => f.write_str("SHOW SOURCES")?,
            Shown::Stages => f.write_str("SHOW STAGES")?,
            Shown::Tables => f.write_str("SHOW TABLES")?,
            Shown::Views => f.write_str("SHOW VIEWS")?,
            Shown::MaterializedViews => f.write_str("SHOW MATERIALIZED VIEWS")?,
            Shown::Sinks => f.write_str("SHOW SINKS")?,
            Shown::Jobs => f.write_str("SHOW JOBS")?,
            Shown::Create(kind, name) => write!(f, "SHOW CREATE {} {name}", kind.as_sql())?,
        }
        if let Some(from) = &self.from {
            write!(f, " FROM {from}")?;
        }
        self.like.as_ref().map_or(Ok(()), |like| write!(f, " LIKE {}", Literal(like)))
    }
}

impl Display for Describe {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("DESCRIBE ")?;
        if let Some(schema) = &self.schema {
            write!(f, "{schema}.")?;
        }
        self.name.fmt(f)
    }
}

impl Display for Explain {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mode = if self.mode == ExplainMode::Analyze { "ANALYZE " } else { "" };
        match &self.subject {
            Explained::Create(statement) => write!(f, "EXPLAIN {mode}{statement}"),
            Explained::Object(kind, name) => write!(f, "EXPLAIN {mode}{} {name}", kind.as_sql()),
        }
    }
}

impl Display for Wait {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Wait::All => f.write_str("WAIT"),
            Wait::For(kind, name) => write!(f, "WAIT {} {name}", kind.as_sql()),
        }
    }
}

impl Display for CancelJob {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "CANCEL JOBS {}", Separated(&self.jobs))
    }
}

/// Items with commas between them.
struct Separated<'a, T>(&'a [T]);

impl<T: Display> Display for Separated<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, item) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            item.fmt(f)?;
        }
        Ok(())
    }
}
