//! Where DataFusion computes otherwise than PostgreSQL: a plan is rewritten so that
//!
//! - a literal that is cast to a type is read as that type's text (`'{1,2}'::int[]`, `'yes'::boolean`);
//! - a fraction that is cast to a whole number is rounded, not cut;
//! - whole numbers that overflow, and floats divided by zero, are errors.
//!
//! Runs after type coercion, so that implicit casts are seen too.

use arrow::datatypes::{DataType, Field};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::AnalyzerRule;
use segue_types::{SqlType, sql_type_of};

use crate::functions::{checked, rounded};
use crate::values::scalar_of_text;

/// The rule.
#[derive(Debug)]
pub(super) struct PostgresSemantics;

impl AnalyzerRule for PostgresSemantics {
    fn name(&self) -> &'static str {
        "postgres_semantics"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(rewrite_plan).data()
    }
}

fn rewrite_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let inputs = plan.inputs();
    let schema = match &plan {
        LogicalPlan::TableScan(scan) => DFSchema::try_from_qualified_schema(
            scan.table_name.clone(),
            &scan.source.schema(),
        )?,
        _ if inputs.is_empty() => plan.schema().as_ref().clone(),
        _ => merge_schema(&inputs),
    };
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
    match expr {
        Expr::Cast(cast) => rewrite_cast(cast, schema),
        Expr::BinaryExpr(binary) => rewrite_arithmetic(binary, schema),
        other => Ok(Transformed::no(other)),
    }
}

fn rewrite_cast(cast: Cast, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let target = cast.field.data_type();
    if let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = cast.expr.as_ref() {
        return match sql_type_of(&Field::new("", target.clone(), true)) {
            Some(SqlType::Text) | None => Ok(Transformed::no(Expr::Cast(cast))),
            Some(ty) => {
                let value = scalar_of_text(&ty, text)
                    .map_err(|error| DataFusionError::External(Box::new(error)))?;
                // Nanoseconds and the like, which coercion may have asked for.
                let value = value.cast_to(target)?;
                Ok(Transformed::yes(Expr::Literal(value, None)))
            }
        };
    }
    let source = cast.expr.get_type(schema)?;
    let fraction = matches!(
        source,
        DataType::Float32 | DataType::Float64 | DataType::Decimal128(_, _)
    );
    if !fraction || !target.is_integer() {
        return Ok(Transformed::no(Expr::Cast(cast)));
    }
    let whole = Expr::ScalarFunction(ScalarFunction::new_udf(rounded(), vec![*cast.expr]));
    Ok(Transformed::yes(Expr::Cast(Cast { expr: Box::new(whole), field: cast.field })))
}

fn rewrite_arithmetic(binary: BinaryExpr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let arithmetic = matches!(
        binary.op,
        Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide
    );
    if !arithmetic {
        return Ok(Transformed::no(Expr::BinaryExpr(binary)));
    }
    let (left, right) = (binary.left.get_type(schema)?, binary.right.get_type(schema)?);
    let wraps = left.is_integer() && binary.op != Operator::Divide;
    let divides = left.is_floating() && binary.op == Operator::Divide;
    if left != right || !(wraps || divides) {
        return Ok(Transformed::no(Expr::BinaryExpr(binary)));
    }
    let function = checked(binary.op);
    let call = ScalarFunction::new_udf(function, vec![*binary.left, *binary.right]);
    Ok(Transformed::yes(Expr::ScalarFunction(call)))
}
