//! Casts that DataFusion makes otherwise: from text to any type, from fractions to whole numbers, to narrower whole
//! numbers, and times and floats to text.
//!
//! DataFusion reads `'{1,2}'` as an array of one text, knows fewer spellings of times, drops fractions and answers in
//! words of its own.

mod convert;

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use segue_types::{SqlType, sql_type_of};

use super::{extremes, intervals, zone, zoned};
use convert::{Origin, converted};

/// Puts our casts in the place of DataFusion's; it comes after type coercion.
#[derive(Debug)]
pub struct Casts;

impl AnalyzerRule for Casts {
    fn analyze(&self, plan: LogicalPlan, options: &ConfigOptions) -> Result<LogicalPlan> {
        let zone = zone::of_session(options).and(options.execution.time_zone.as_deref());
        let rewritten = plan.transform_up_with_subqueries(|node| {
            let mut schema = merge_schema(&node.inputs());
            if let LogicalPlan::TableScan(scan) = &node {
                schema.merge(&DFSchema::try_from_qualified_schema(
                    scan.table_name.clone(),
                    &scan.source.schema(),
                )?);
            }
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let rewritten = expr.transform_up(|part| rewrite(part, &schema, zone))?;
                Ok(rewritten.update_data(|expr| name.restore(expr)))
            })
        })?;
        Ok(rewritten.data)
    }

    fn name(&self) -> &str {
        "postgresql_casts"
    }
}

/// `zone` is that of the session, where it is not UTC.
fn rewrite(expr: Expr, schema: &DFSchema, zone: Option<&str>) -> Result<Transformed<Expr>> {
    let Expr::Cast(Cast { expr: inner, field }) = &expr else {
        let other = intervals::compared(&expr, schema)
            .or_else(|| extremes::of_nested(&expr, schema))
            .or_else(|| zoned::in_zone(&expr, schema, zone?));
        return Ok(other.map_or_else(|| Transformed::no(expr), Transformed::yes));
    };
    // What belongs to an outer query is not in the schema; its casts stay as they are.
    let Ok((_, given)) = inner.to_field(schema) else { return Ok(Transformed::no(expr)) };
    let Some(to) = sql_type_of(field) else { return Ok(Transformed::no(expr)) };
    let from = given.data_type();
    let is_in_zone = zone.is_some() && hangs_on_zone(from, &to);
    if !is_ours(from, &to) && !is_in_zone {
        return Ok(Transformed::no(expr));
    }
    let held = to.arrow_type();
    let origin = match sql_type_of(&given) {
        Some(SqlType::Jsonb) => Origin::Jsonb,
        _ => Origin::Value,
    };
    let function = Arc::new(cast_of(to, origin));
    let call =
        Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![inner.as_ref().clone()]));
    let wanted = field.data_type();
    Ok(Transformed::yes(if held == *wanted {
        call
    } else {
        Expr::Cast(Cast::new(Box::new(call), wanted.clone()))
    }))
}

fn is_ours(from: &DataType, to: &SqlType) -> bool {
    match from {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => *to != SqlType::Text,
        DataType::Float32 | DataType::Float64 => is_whole(to) || *to == SqlType::Text,
        DataType::List(_) => match to {
            SqlType::Array(_) => to.arrow_type() != *from,
            other => *other == SqlType::Text,
        },
        DataType::Struct(_) => match to {
            SqlType::Struct(_) => to.arrow_type() != *from,
            other => *other == SqlType::Text,
        },
        DataType::Time64(_) => matches!(to, SqlType::Text | SqlType::Interval),
        DataType::Interval(_) => matches!(to, SqlType::Text | SqlType::Time),
        DataType::Timestamp(..) | DataType::Binary => *to == SqlType::Text,
        DataType::Decimal128(..) => is_whole(to) || *to == SqlType::Text,
        DataType::Int64 => matches!(to, SqlType::Integer | SqlType::SmallInt),
        DataType::Int32 => *to == SqlType::SmallInt,
        _ => false,
    }
}

/// Between what the clocks of a zone show and instants.
fn hangs_on_zone(from: &DataType, to: &SqlType) -> bool {
    match from {
        DataType::Timestamp(_, None) | DataType::Date32 => *to == SqlType::Timestamptz,
        DataType::Timestamp(_, Some(_)) => {
            matches!(to, SqlType::Timestamp | SqlType::Date | SqlType::Time)
        }
        _ => false,
    }
}

fn is_whole(ty: &SqlType) -> bool {
    matches!(ty, SqlType::SmallInt | SqlType::Integer | SqlType::BigInt)
}

/// Whether a text means one value of a type in every session.
pub fn is_absolute(ty: &SqlType, text: &str) -> bool {
    *ty != SqlType::Timestamptz || convert::has_offset(text)
}

/// The cast to `to` as a function.
pub(super) fn function(to: SqlType) -> ScalarUDF {
    cast_of(to, Origin::Value)
}

fn cast_of(to: SqlType, origin: Origin) -> ScalarUDF {
    let name = match &to {
        SqlType::Uuid | SqlType::Jsonb => format!("cast_to_{to}"),
        other => format!("cast to {other}"),
    };
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::new_from_impl(CastTo { name, to, origin, signature })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CastTo {
    name: String,
    to: SqlType,
    origin: Origin,
    signature: Signature,
}

impl ScalarUDFImpl for CastTo {
    fn name(&self) -> &str {
        &self.name
    }

    /// A cast has the name of what it casts.
    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        Ok(arguments.iter().map(|argument| argument.schema_name().to_string()).collect())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.arrow_type())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(self.to.field(&self.name, true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar =
            arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if scalar { 1 } else { arguments.number_rows };
        let [given] = arguments.args.as_slice() else {
            return Err(DataFusionError::Internal("a cast has one argument".to_owned()));
        };
        let zone = zone::of_session(&arguments.config_options);
        let array = converted(&given.to_array(rows)?, &self.to, self.origin, zone)?;
        if scalar {
            return super::general::scalar(&array);
        }
        Ok(ColumnarValue::Array(array))
    }
}
