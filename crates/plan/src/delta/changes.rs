//! `WITH c AS CHANGELOG FROM t`: what `t` changes, as rows that stay, each with the column `changelog_op`: 1 for a row
//! that was added, 2 for one that was removed, 4 and 3 for an update, as it was and as it is.
//!
//! The parser makes `changelog(t)` of it; the name carries that to where names are resolved, where it becomes a node
//! that no filter and no projection is pushed through: what is read of `t` decides what an update is.

use std::cmp::Ordering;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, DFSchemaRef, Result};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use sqlparser::ast::{
    Expr as SqlExpr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, Query,
    TableAlias, TableFactor, VisitMut, VisitorMut,
};

/// Ends the name of a relation whose changes are read.
pub(super) const CHANGES_OF: char = '\u{2}';
/// The column that says what a row did.
const OP: &str = "changelog_op";

/// Marks every relation of `query` whose changes are read.
pub(super) fn mark(query: &mut Query) {
    let _: ControlFlow<()> = query.visit(&mut Mark);
}

struct Mark;

impl VisitorMut for Mark {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, alias, args, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let is_changelog = name.to_string().eq_ignore_ascii_case("changelog");
        let relation =
            args.as_ref().filter(|_| is_changelog).and_then(|args| match args.args.as_slice() {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(relation))] => parts(relation),
                _ => None,
            });
        if let Some(mut parts) = relation
            && let Some(last) = parts.pop()
        {
            let folded = match last.quote_style {
                Some(_) => last.value.clone(),
                None => last.value.to_lowercase(),
            };
            let marked = Ident::with_quote('"', format!("{folded}{CHANGES_OF}"));
            let own = TableAlias { explicit: true, name: last, columns: Vec::new(), at: None };
            alias.get_or_insert(own);
            parts.push(marked);
            *name = ObjectName(parts.into_iter().map(ObjectNamePart::Identifier).collect());
            *args = None;
        }
        ControlFlow::Continue(())
    }
}

fn parts(relation: &SqlExpr) -> Option<Vec<Ident>> {
    match relation {
        SqlExpr::Identifier(name) => Some(vec![name.clone()]),
        SqlExpr::CompoundIdentifier(parts) => Some(parts.clone()),
        _ => None,
    }
}

/// In the logical plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Changelog {
    pub(super) input: LogicalPlan,
    /// Columns of the input that hold one row per value.
    pub(super) key: Vec<usize>,
    schema: DFSchemaRef,
}

impl Changelog {
    /// The changes of `input`.
    pub(super) fn plan(input: LogicalPlan, key: Vec<usize>) -> Result<LogicalPlan> {
        let fields = input.schema().iter().map(|(qualifier, field)| {
            let field = Arc::new(field.as_ref().clone().with_nullable(true));
            (qualifier.cloned(), field)
        });
        let op = (None, Arc::new(Field::new(OP, DataType::Int16, true)));
        let fields = fields.chain([op]).collect();
        let schema = Arc::new(DFSchema::new_with_metadata(fields, Default::default())?);
        let node = Arc::new(Changelog { input, key, schema });
        Ok(LogicalPlan::Extension(Extension { node }))
    }

    /// Whether changes are read somewhere in a plan.
    pub(super) fn is_in(plan: &LogicalPlan) -> Result<bool> {
        let mut found = false;
        plan.apply_with_subqueries(|node| {
            found |= matches!(node, LogicalPlan::Extension(extension)
                if extension.node.as_any().is::<Changelog>());
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok(found)
    }
}

impl PartialOrd for Changelog {
    fn partial_cmp(&self, other: &Changelog) -> Option<Ordering> {
        self.key.partial_cmp(&other.key).filter(|_| self == other)
    }
}

impl UserDefinedLogicalNodeCore for Changelog {
    fn name(&self) -> &str {
        "Changelog"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Changelog by {:?}", self.key)
    }

    fn with_exprs_and_inputs(
        &self,
        _exprs: Vec<Expr>,
        inputs: Vec<LogicalPlan>,
    ) -> Result<Changelog> {
        let [input] = <[LogicalPlan; 1]>::try_from(inputs).map_err(|_| {
            datafusion::common::DataFusionError::Internal("a changelog has one input".to_owned())
        })?;
        Ok(Changelog { input, key: self.key.clone(), schema: Arc::clone(&self.schema) })
    }
}
