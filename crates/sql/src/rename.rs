//! A statement in which a relation has another name.
//!
//! The text of a query stays as it was written but for the name: where the relation had no alias it gets its old name
//! for one, so that what is said of its columns still holds.

use std::ops::{ControlFlow, Range};

use segue_types::UserError;
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, Query, TableFactor, Visit, Visitor,
};
use sqlparser::tokenizer::Location;

use crate::{CreateSink, CreateView, Foreign, Lines, Name, Statement, parse_query};

/// The functions in FROM whose first argument is a relation.
const OF_RELATIONS: [&str; 4] = ["tumble", "hop", "session", "changelog"];

impl Statement {
    /// The CREATE of the same object under another name; a statement without a name stays.
    #[must_use]
    pub fn with_name(mut self, name: &Name) -> Statement {
        match &mut self {
            Statement::CreateSource(create) => create.name = name.clone(),
            Statement::CreateTable(create) => create.name = name.clone(),
            Statement::CreateView(create) | Statement::CreateMaterializedView(create) => {
                create.name = name.clone();
            }
            Statement::CreateSink(create) => create.name = name.clone(),
            _ => {}
        }
        self
    }

    /// The same statement over a relation that has another name now.
    ///
    /// # Errors
    /// Where the old name is that of a WITH query too, so that it cannot be told which one is meant.
    pub fn with_relation_renamed(self, from: &Name, to: &Name) -> Result<Statement, UserError> {
        Ok(match self {
            Statement::CreateView(view) => Statement::CreateView(in_view(view, from, to)?),
            Statement::CreateMaterializedView(view) => {
                Statement::CreateMaterializedView(in_view(view, from, to)?)
            }
            Statement::CreateSink(mut sink) => {
                if let Some(table) = sink.into.as_mut().filter(|table| table.name == *from) {
                    table.name = to.clone();
                }
                let query = in_query(&sink.query, from, to)?;
                Statement::CreateSink(CreateSink { query, ..sink })
            }
            other => other,
        })
    }
}

fn in_view(view: CreateView, from: &Name, to: &Name) -> Result<CreateView, UserError> {
    let query = in_query(&view.query, from, to)?;
    Ok(CreateView { query, ..view })
}

fn in_query(query: &Foreign<Query>, from: &Name, to: &Name) -> Result<Foreign<Query>, UserError> {
    let text = &query.text;
    // The places of the tree may be those of the statement that the query stood in.
    let parsed = parse_query(text)?;
    let mut found = Mentions { text, lines: Lines::new(text), from, edits: Vec::new() };
    if parsed.tree.visit(&mut found).is_break() {
        let message = format!("\"{}\" is also the name of a WITH query", from.as_str());
        return Err(UserError::unsupported(message));
    }
    let mut edits = found.edits;
    edits.sort_by_key(|(place, _)| place.start);
    let mut renamed = text.clone();
    for (place, put) in edits.into_iter().rev() {
        let put = match put {
            Put::Name => to.to_string(),
            Put::Alias => format!(" AS {from}"),
        };
        renamed.replace_range(place, &put);
    }
    Ok(parse_query(&renamed)?)
}

enum Put {
    Name,
    Alias,
}

/// Where a query names a relation.
struct Mentions<'a> {
    text: &'a str,
    lines: Lines<'a>,
    from: &'a Name,
    edits: Vec<(Range<usize>, Put)>,
}

impl Visitor for Mentions<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        for table in with {
            if self.is_it(&table.alias.name) {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, alias, args, version, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let function = name.to_string().to_lowercase();
        let named = match args {
            None => name.0.last().and_then(|part| part.as_ident()).filter(|_| is_public(name)),
            Some(args) if OF_RELATIONS.contains(&function.as_str()) => {
                args.args.first().and_then(relation)
            }
            Some(_) => None,
        };
        let Some(place) =
            named.filter(|ident| self.is_it(ident)).and_then(|ident| self.place(ident))
        else {
            return ControlFlow::Continue(());
        };
        // The tokens of `changelog` are not in the text.
        if alias.is_none() && function != "changelog" {
            let is_longer = args.is_some() || version.is_some();
            let end = if is_longer { self.closing(place.end, args.is_some()) } else { place.end };
            self.edits.push((end..end, Put::Alias));
        }
        self.edits.push((place, Put::Name));
        ControlFlow::Continue(())
    }
}

impl Mentions<'_> {
    fn is_it(&self, ident: &Ident) -> bool {
        match ident.quote_style {
            Some(_) => ident.value == self.from.as_str(),
            None => ident.value.to_lowercase() == self.from.as_str(),
        }
    }

    fn place(&self, ident: &Ident) -> Option<Range<usize>> {
        let byte = |place: Location| self.lines.byte(place);
        Some(byte(ident.span.start)?..byte(ident.span.end)?)
    }

    /// The end of the parenthesis that `start` is in, or of the next one.
    fn closing(&self, start: usize, inside: bool) -> usize {
        let mut depth = i32::from(inside);
        let mut quoted = false;
        for (at, byte) in self.text.bytes().enumerate().skip(start) {
            match byte {
                b'\'' => quoted = !quoted,
                b'(' if !quoted => depth += 1,
                b')' if !quoted => depth -= 1,
                _ => continue,
            }
            if byte == b')' && depth == 0 {
                return at + 1;
            }
        }
        self.text.len()
    }
}

/// Whether a name is one of the one schema that objects live in.
fn is_public(name: &ObjectName) -> bool {
    match name.0.as_slice() {
        [_] => true,
        [schema, _] => schema.to_string().eq_ignore_ascii_case("public"),
        _ => false,
    }
}

fn relation(argument: &FunctionArg) -> Option<&Ident> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(name))) => Some(name),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::CompoundIdentifier(parts))) => {
            parts.last()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Name, parse};

    fn renamed(text: &str) -> String {
        let statement = parse(text).expect("it is a statement").pop().expect("it is one");
        let renamed = statement.with_relation_renamed(&Name::new("t"), &Name::new("New"));
        renamed.map_or_else(|error| error.message, |statement| statement.to_string())
    }

    #[test]
    fn a_relation_is_renamed_wherever_it_is_read_and_nothing_else() {
        for (query, expected) in [
            ("SELECT t.a FROM t", "SELECT t.a FROM \"New\" AS t"),
            ("SELECT x.a, t FROM public.T AS x, u", "SELECT x.a, t FROM public.\"New\" AS x, u"),
            (
                "SELECT 't' FROM u\nJOIN t USING (a) WHERE a IN (SELECT a FROM t y)",
                "SELECT 't' FROM u\nJOIN \"New\" AS t USING (a) WHERE a IN (SELECT a FROM \"New\" y)",
            ),
            (
                "SELECT * FROM TUMBLE(t, at, INTERVAL '1 hour') WHERE t.a = 1",
                "SELECT * FROM TUMBLE(\"New\", at, INTERVAL '1 hour') AS t WHERE t.a = 1",
            ),
            (
                "SELECT * FROM u JOIN t FOR SYSTEM_TIME AS OF PROCTIME() ON t.a = u.a",
                "SELECT * FROM u JOIN \"New\" FOR SYSTEM_TIME AS OF PROCTIME() AS t ON t.a = u.a",
            ),
            (
                "WITH c AS CHANGELOG FROM t SELECT * FROM c",
                "WITH c AS CHANGELOG FROM \"New\" SELECT * FROM c",
            ),
            ("SELECT * FROM other.t, segue.t", "SELECT * FROM other.t, segue.t"),
        ] {
            let create = format!("CREATE MATERIALIZED VIEW v AS {query}");
            assert_eq!(renamed(&create), format!("CREATE MATERIALIZED VIEW v AS {expected}"));
        }
        assert_eq!(
            renamed("CREATE SINK s INTO t (a) FROM t"),
            "CREATE SINK s INTO \"New\" (a) AS SELECT * FROM \"New\" AS t"
        );
        assert_eq!(
            renamed("CREATE VIEW v AS WITH t AS (SELECT 1) SELECT * FROM t"),
            "\"t\" is also the name of a WITH query"
        );
    }
}
