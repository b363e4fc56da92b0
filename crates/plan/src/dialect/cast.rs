//! Casts that DataFusion makes otherwise: from text to any type, from fractions to whole numbers, to narrower whole
//! numbers, and times and floats to text.
//!
//! DataFusion reads `'{1,2}'` as an array of one text, knows fewer spellings of times, drops fractions and answers in
//! words of its own.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type};
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
use segue_formats::Column;
use segue_types::{SqlState, SqlType, UserError, sql_type_of};

use super::{text, value_error};

/// Puts our casts in the place of DataFusion's; it comes after type coercion.
#[derive(Debug)]
pub struct Casts;

impl AnalyzerRule for Casts {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
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
                let rewritten = expr.transform_up(|part| rewrite(part, &schema))?;
                Ok(rewritten.update_data(|expr| name.restore(expr)))
            })
        })?;
        Ok(rewritten.data)
    }

    fn name(&self) -> &str {
        "postgresql_casts"
    }
}

fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::Cast(Cast { expr: inner, field }) = &expr else { return Ok(Transformed::no(expr)) };
    // What belongs to an outer query is not in the schema; its casts stay as they are.
    let Ok(from) = inner.get_type(schema) else { return Ok(Transformed::no(expr)) };
    let Some(to) = sql_type_of(field) else { return Ok(Transformed::no(expr)) };
    if !is_ours(&from, &to) {
        return Ok(Transformed::no(expr));
    }
    let held = to.arrow_type();
    let function = Arc::new(function(to));
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
        DataType::Timestamp(..)
        | DataType::Time64(_)
        | DataType::Interval(_)
        | DataType::Binary
        | DataType::List(_)
        | DataType::Struct(_) => *to == SqlType::Text,
        DataType::Decimal128(..) => is_whole(to) || *to == SqlType::Text,
        DataType::Int64 => matches!(to, SqlType::Integer | SqlType::SmallInt),
        DataType::Int32 => *to == SqlType::SmallInt,
        _ => false,
    }
}

fn is_whole(ty: &SqlType) -> bool {
    matches!(ty, SqlType::SmallInt | SqlType::Integer | SqlType::BigInt)
}

/// The cast to `to` as a function.
pub(super) fn function(to: SqlType) -> ScalarUDF {
    let name = match &to {
        SqlType::Uuid | SqlType::Jsonb => format!("cast_to_{to}"),
        other => format!("cast to {other}"),
    };
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::new_from_impl(CastTo { name, to, signature })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CastTo {
    name: String,
    to: SqlType,
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
        let array = self.convert(&given.to_array(rows)?)?;
        if scalar {
            return Ok(ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(
                &array, 0,
            )?));
        }
        Ok(ColumnarValue::Array(array))
    }
}

impl CastTo {
    fn convert(&self, array: &ArrayRef) -> Result<ArrayRef> {
        if self.to == SqlType::Text {
            return text::shown(array);
        }
        match array.data_type() {
            DataType::Utf8 => self.read(array.as_string::<i32>().iter()),
            DataType::LargeUtf8 | DataType::Utf8View => {
                self.convert(&cast(array, &DataType::Utf8)?)
            }
            DataType::Null => Ok(arrow::array::new_null_array(&self.to.arrow_type(), array.len())),
            DataType::Float64 => {
                let even = array
                    .as_primitive::<Float64Type>()
                    .unary::<_, Float64Type>(f64::round_ties_even);
                self.narrow(&even)
            }
            DataType::Float32 => {
                let even = array
                    .as_primitive::<Float32Type>()
                    .unary::<_, Float32Type>(f32::round_ties_even);
                self.narrow(&even)
            }
            DataType::Decimal128(precision, scale) if *scale > 0 => {
                let whole = DataType::Decimal128(*precision, 0);
                self.narrow(cast(array, &whole)?.as_ref())
            }
            _ => self.narrow(array.as_ref()),
        }
    }

    fn read<'a>(&self, texts: impl Iterator<Item = Option<&'a str>>) -> Result<ArrayRef> {
        let mut column = Column::of_type(&self.to);
        for text in texts {
            match text {
                None => column.append_null(),
                Some(text) => segue_formats::append_literal(&mut column, text)
                    .map_err(|error| external(value_error(&self.to, text, &error)))?,
            }
        }
        Ok(column.finish(&self.to.field("", true)))
    }

    fn narrow(&self, array: &dyn Array) -> Result<ArrayRef> {
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(array, &self.to.arrow_type(), &strict).map_err(|error| {
            if is_whole(&self.to) {
                let message = format!("{} out of range", self.to);
                external(UserError::new(SqlState::NUMERIC_OUT_OF_RANGE, message))
            } else {
                DataFusionError::from(error)
            }
        })
    }
}

fn external(error: UserError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
