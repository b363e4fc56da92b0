//! `t FOR SYSTEM_TIME AS OF PROCTIME()`: the relation is read as it is when the rows of the other side arrive.
//!
//! DataFusion's planner would not know of it, so the name carries it to where names are resolved.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, TableAlias, TableFactor, TableVersion,
    VisitMut, VisitorMut,
};

use super::provider::OF_ARRIVAL;

/// Marks every relation of `query` that is read so.
pub(super) fn mark(query: &mut Query) {
    let _: ControlFlow<()> = query.visit(&mut Mark);
}

struct Mark;

impl VisitorMut for Mark {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias, version, .. } = factor
            && let Some(TableVersion::ForSystemTimeAsOf(Expr::Function(time))) = version
            && time.name.to_string().eq_ignore_ascii_case("proctime")
            && let Some(ObjectNamePart::Identifier(last)) = name.0.last().cloned()
        {
            *version = None;
            let own =
                || TableAlias { explicit: true, name: last.clone(), columns: Vec::new(), at: None };
            alias.get_or_insert_with(own);
            let folded = match last.quote_style {
                Some(_) => last.value.clone(),
                None => last.value.to_lowercase(),
            };
            let marked = Ident::with_quote('"', format!("{folded}{OF_ARRIVAL}"));
            let mut parts = name.0.clone();
            parts.pop();
            parts.push(ObjectNamePart::Identifier(marked));
            *name = ObjectName(parts);
        }
        ControlFlow::Continue(())
    }
}
