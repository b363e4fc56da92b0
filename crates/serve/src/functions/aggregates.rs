//! SUM and AVG with the result types that materialized views give them, and PostgreSQL: the sum of
//! bigints is a numeric, which cannot overflow, and the average of whole numbers is one.
//!
//! The argument is cast so that DataFusion's own function, run on the cast type, has the right result type.

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature,
    Volatility,
};
use segue_flow::AggregateFunction;
use std::sync::Arc;

use super::widened::{Widened, WidenedGroups};

/// Both.
pub(super) fn functions() -> [AggregateUDF; 2] {
    [(AggregateFunction::Sum, sum_udaf()), (AggregateFunction::Avg, avg_udaf())].map(
        |(function, inner)| {
            let signature = Signature::user_defined(Volatility::Immutable);
            AggregateUDF::new_from_impl(Typed { function, inner, signature })
        },
    )
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Typed {
    function: AggregateFunction,
    inner: Arc<AggregateUDF>,
    signature: Signature,
}

/// What DataFusion adds to precision and scale of an average.
const AVERAGE_DIGITS: u8 = 4;

impl Typed {
    /// The type to which the argument is cast.
    fn argument(&self, given: &DataType) -> Option<DataType> {
        let given = match given {
            DataType::Null => DataType::Int64,
            other => other.clone(),
        };
        if self.function == AggregateFunction::Sum && (is_narrow(&given) || is_interval(&given)) {
            return Some(given);
        }
        Some(match (self.function, self.function.result_type(&given)?) {
            (AggregateFunction::Avg, DataType::Decimal128(precision, scale)) => {
                let digits = AVERAGE_DIGITS.cast_signed();
                DataType::Decimal128(precision - AVERAGE_DIGITS, (scale - digits).max(0))
            }
            (_, result) => result,
        })
    }
}

impl Typed {
    /// Whether integers are summed up, which DataFusion's accumulators take as bigints.
    fn has_narrow(&self, args: &AccumulatorArgs<'_>) -> bool {
        let given = args.expr_fields.first().map(|field| field.data_type());
        self.function == AggregateFunction::Sum && given.is_some_and(is_narrow)
    }

    fn widened(
        &self,
        args: &AccumulatorArgs<'_>,
        make: impl Fn(&AggregateUDF, AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>>,
    ) -> Result<Box<dyn Accumulator>> {
        let inner = make(
            &self.inner,
            AccumulatorArgs {
                return_field: Arc::clone(&args.return_field),
                expr_fields: args.expr_fields,
                schema: args.schema,
                ignore_nulls: args.ignore_nulls,
                order_bys: args.order_bys,
                is_reversed: args.is_reversed,
                name: args.name,
                is_distinct: args.is_distinct,
                exprs: args.exprs,
            },
        )?;
        let narrow = self.has_narrow(args);
        Ok(if narrow { Box::new(Widened { inner, to: DataType::Int64 }) } else { inner })
    }
}

fn is_narrow(ty: &DataType) -> bool {
    matches!(ty, DataType::Int8 | DataType::Int16 | DataType::Int32)
}

fn is_interval(ty: &DataType) -> bool {
    matches!(ty, DataType::Interval(_))
}

impl AggregateUDFImpl for Typed {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        match arguments {
            [given] => match self.argument(given) {
                Some(argument) => Ok(vec![argument]),
                None => plan_err!("Invalid function '{}'", self.name()),
            },
            _ => plan_err!("Invalid function '{}'", self.name()),
        }
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [DataType::Float32] => Ok(DataType::Float32),
            [given] if self.function == AggregateFunction::Sum && is_narrow(given) => {
                Ok(DataType::Int64)
            }
            _ => self.inner.return_type(arguments),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match args.return_field.data_type() {
            DataType::Float32 => segue_plan::dialect::sum_of_reals(&args),
            _ => self.widened(&args, |inner, args| inner.accumulator(args)),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        *args.return_field.data_type() != DataType::Float32
            && self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let narrow = self.has_narrow(&args);
        let inner = self.inner.create_groups_accumulator(args)?;
        Ok(if narrow { Box::new(WidenedGroups { inner, to: DataType::Int64 }) } else { inner })
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        match args.return_field.data_type() {
            DataType::Float32 => segue_plan::dialect::sum_of_reals(&args),
            _ => self.widened(&args, |inner, args| inner.create_sliding_accumulator(args)),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.inner.default_value(data_type)
    }
}
