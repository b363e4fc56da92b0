//! RETURNING: a query over the rows that a statement has written, in the place of its table.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Fields;
use futures::StreamExt;
use segue_catalog::Object;
use segue_types::UserError;
use sqlparser::ast::{self, SelectItem, SetExpr, TableFactor};

use super::{columns, query, target};
use crate::outcome::{Outcome, RowStream};
use crate::plan::{Reading, Returned};
use crate::session::{Running, Session};

/// A RETURNING list, and the table as the statement names it.
pub(super) struct Returning(ast::Query);

impl Returning {
    /// The list of a statement on this table; `None` when it has none.
    pub(super) fn of(
        items: Option<&Vec<SelectItem>>,
        table: &ast::ObjectName,
        alias: Option<&ast::TableAlias>,
    ) -> Option<Returning> {
        let mut query = target::skeleton("SELECT 1 FROM t");
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.projection.clone_from(items?);
            if let [from] = select.from.as_mut_slice()
                && let TableFactor::Table { name, alias: given, .. } = &mut from.relation
            {
                name.clone_from(table);
                *given = alias.cloned();
            }
        }
        Some(Returning(query))
    }

    /// The columns of the list.
    pub(super) async fn fields(
        &self,
        session: &Session,
        running: &Running,
    ) -> Result<Fields, UserError> {
        let statement = query::rewritten(&self.0, "");
        let plan = session.planner.plan(statement, &running.text).await?;
        Ok(columns::named(&self.0, plan.schema().as_arrow()).fields().clone())
    }

    /// The list over these rows.
    pub(super) async fn rows(
        &self,
        session: &Session,
        object: &Object,
        rows: Vec<RecordBatch>,
        verb: &'static str,
        running: &Running,
    ) -> Result<Outcome, UserError> {
        let returned = Some(Returned { table: object.id, rows: Arc::new(rows) });
        let published = session.engine.published();
        session.planner.read(Reading { published, locked: None, returned });
        let text = &running.text;
        let plan = session.planner.plan(query::rewritten(&self.0, ""), text).await?;
        let schema = columns::named(&self.0, plan.schema().as_arrow());
        let stream = session.planner.run(&plan, running).await?;
        let rows = RowStream::of_query(schema, stream.boxed(), Arc::clone(text));
        Ok(Outcome::Rows(rows.with_verb(verb)))
    }
}
