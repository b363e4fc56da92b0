//! Logical expressions → physical ones, and the types in which relations hold values.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, IntervalUnit, SchemaRef, TimeUnit};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column};
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};

/// The expression over batches of `schema`. Integers that overflow are an error there, not a wrapped number.
pub(super) fn physical(expression: &Expr, schema: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
    // Without an entry in the context a left-over subquery is an error, and never a constant.
    let context = PhysicalPlanningContext::default();
    let planned = create_physical_expr(expression, schema, &ExecutionProps::new(), &context)?;
    planned.transform_up(check_overflow).data()
}

fn check_overflow(expression: Arc<dyn PhysicalExpr>) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    let Some(binary) = expression.downcast_ref::<BinaryExpr>() else {
        return Ok(Transformed::no(expression));
    };
    Ok(Transformed::yes(Arc::new(binary.clone().with_fail_on_overflow(true))))
}

/// A column of `schema` by its place.
pub(super) fn column(schema: &SchemaRef, place: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(schema.field(place).name(), place))
}

/// The expression as a value of `to`.
pub(super) fn cast_to(
    expression: Arc<dyn PhysicalExpr>,
    from: &DataType,
    to: &DataType,
) -> Arc<dyn PhysicalExpr> {
    if from == to {
        return expression;
    }
    Arc::new(CastExpr::new(expression, to.clone(), None))
}

/// The type in which a relation holds values that an expression gives as `data_type`.
pub(crate) fn held_type(data_type: &DataType) -> DataType {
    let utc = || Some("+00:00".into());
    match data_type {
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        // Ranks, row numbers and counts: PostgreSQL's bigint.
        DataType::UInt32 | DataType::UInt64 => DataType::Int64,
        DataType::Float16 => DataType::Float32,
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            DataType::Decimal128((*precision).min(38), *scale)
        }
        DataType::Null | DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary | DataType::FixedSizeBinary(_) => {
            DataType::Binary
        }
        DataType::Date64 => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp(_, zone) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.as_ref().and_then(|_| utc()))
        }
        DataType::Interval(_) | DataType::Duration(_) => {
            DataType::Interval(IntervalUnit::MonthDayNano)
        }
        DataType::Dictionary(_, values) => held_type(values),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => DataType::List(Arc::new(held_field(item))),
        DataType::Struct(members) => {
            DataType::Struct(members.iter().map(|member| held_field(member)).collect())
        }
        other => other.clone(),
    }
}

fn held_field(field: &Field) -> Field {
    field.clone().with_data_type(held_type(field.data_type())).with_nullable(true)
}
