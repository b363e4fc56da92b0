//! Whole numbers that overflow are an error, as in PostgreSQL and in views; DataFusion wraps them.
//!
//! Runs after type coercion, when both operands have one type.

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::AnalyzerRule;

use crate::functions::{checked, first_of_chain};

/// The rule.
#[derive(Debug)]
pub(super) struct CheckedArithmetic;

impl AnalyzerRule for CheckedArithmetic {
    fn name(&self) -> &'static str {
        "checked_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(rewrite_plan).data()
    }
}

fn rewrite_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        schema.merge(&DFSchema::try_from_qualified_schema(
            scan.table_name.clone(),
            &scan.source.schema(),
        )?);
    }
    let names = NamePreserver::new(&plan);
    let rewritten = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let rewritten = expr.transform_up(|expr| rewrite(expr, &schema))?;
        Ok(if rewritten.transformed {
            rewritten.update_data(|expr| name.restore(expr))
        } else {
            rewritten
        })
    })?;
    if rewritten.transformed {
        rewritten.map_data(LogicalPlan::recompute_schema)
    } else {
        Ok(rewritten)
    }
}

fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::BinaryExpr(binary) = expr else { return Ok(Transformed::no(expr)) };
    if !matches!(binary.op, Operator::Plus | Operator::Minus | Operator::Multiply) {
        return Ok(Transformed::no(Expr::BinaryExpr(binary)));
    }
    // What belongs to an outer query is not in the schema; it stays as it is.
    match (type_of(&binary.left, schema), type_of(&binary.right, schema)) {
        (Some(left), Some(right)) if left.is_integer() && left == right => {
            let BinaryExpr { left, op, right } = binary;
            Ok(Transformed::yes(checked(*left, op, *right)))
        }
        _ => Ok(Transformed::no(Expr::BinaryExpr(binary))),
    }
}

fn type_of(expr: &Expr, schema: &DFSchema) -> Option<DataType> {
    match first_of_chain(expr) {
        Some(first) => type_of(first, schema),
        None => expr.get_type(schema).ok(),
    }
}
