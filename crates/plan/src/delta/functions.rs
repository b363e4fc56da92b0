//! SUM and AVG with PostgreSQL's result types. The delta engine computes them itself; in fragments DataFusion's own do,
//! over arguments that are cast so that nothing overflows or is cut.

use std::sync::{Arc, LazyLock};

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};
use segue_flow::AggregateFunction;

use super::physical::held_type;

static TYPED: LazyLock<[Arc<AggregateUDF>; 2]> = LazyLock::new(|| {
    let sum = (AggregateFunction::Sum, sum_udaf());
    [sum, (AggregateFunction::Avg, avg_udaf())]
        .map(|(function, inner)| Arc::new(typed(function, inner)))
});

/// The aggregate of this name, if its types are not DataFusion's.
pub(super) fn aggregate(name: &str) -> Option<Arc<AggregateUDF>> {
    TYPED.iter().find(|function| function.name() == name).cloned()
}

/// The sum of reals, which DataFusion does not add: of doubles, as a real.
pub fn sum_of_reals(args: &AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
    let signature = Signature::user_defined(Volatility::Immutable);
    let typed = Typed { function: AggregateFunction::Sum, inner: sum_udaf(), signature };
    typed.accumulate(args, |inner, args| inner.create_sliding_accumulator(args))
}

fn typed(function: AggregateFunction, inner: Arc<AggregateUDF>) -> AggregateUDF {
    let signature = Signature::user_defined(Volatility::Immutable);
    AggregateUDF::new_from_impl(Typed { function, inner, signature })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Typed {
    function: AggregateFunction,
    inner: Arc<AggregateUDF>,
    signature: Signature,
}

/// What DataFusion adds to precision and scale of an average.
const AVERAGE_DIGITS: u8 = 4;

impl AggregateUDFImpl for Typed {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let [argument] = arguments else { return Err(self.no_such_function(arguments)) };
        let held = match argument {
            DataType::Null => DataType::Int64,
            other => held_type(other),
        };
        match self.function.result_type(&held) {
            Some(_) => Ok(vec![held]),
            None => Err(self.no_such_function(arguments)),
        }
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let result =
            arguments.first().and_then(|argument| self.function.result_type(&held_type(argument)));
        result.ok_or_else(|| self.no_such_function(arguments))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.accumulate(&args, |inner, args| inner.accumulator(args))
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        self.accumulate(&args, |inner, args| inner.create_sliding_accumulator(args))
    }
}

impl Typed {
    fn no_such_function(&self, arguments: &[DataType]) -> DataFusionError {
        let types = arguments.iter().map(super::errors::type_name).collect::<Vec<_>>().join(", ");
        DataFusionError::Plan(format!("function {}({types}) does not exist", self.name()))
    }

    /// DataFusion's accumulator over the widened argument.
    fn accumulate(
        &self,
        args: &AccumulatorArgs<'_>,
        make: impl Fn(&AggregateUDF, AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>>,
    ) -> Result<Box<dyn Accumulator>> {
        let result = args.return_field.data_type().clone();
        let argument = match (self.function, &result) {
            (AggregateFunction::Avg, DataType::Decimal128(precision, scale)) => {
                let digits = AVERAGE_DIGITS.cast_signed();
                DataType::Decimal128(precision - AVERAGE_DIGITS, (scale - digits).max(0))
            }
            // DataFusion adds doubles alone.
            (AggregateFunction::Sum, DataType::Float32) => DataType::Float64,
            (_, other) => other.clone(),
        };
        let inner_result = self.inner.return_type(std::slice::from_ref(&argument))?;
        let field = |data_type: &DataType| Arc::new(Field::new("value", data_type.clone(), true));
        let fields = [field(&argument)];
        let inner = make(
            &self.inner,
            AccumulatorArgs {
                return_field: field(&inner_result),
                expr_fields: &fields,
                schema: args.schema,
                ignore_nulls: args.ignore_nulls,
                order_bys: args.order_bys,
                is_reversed: args.is_reversed,
                name: args.name,
                is_distinct: args.is_distinct,
                exprs: args.exprs,
            },
        )?;
        Ok(Box::new(Widened { inner, argument, result }))
    }
}

/// An accumulator whose values are cast on their way in and out.
#[derive(Debug)]
struct Widened {
    inner: Box<dyn Accumulator>,
    argument: DataType,
    result: DataType,
}

impl Widened {
    fn widen(&self, values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        values.iter().map(|values| Ok(cast(values, &self.argument)?)).collect()
    }
}

impl Accumulator for Widened {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = self.widen(values)?;
        self.inner.update_batch(&values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.inner.evaluate()?.cast_to(&self.result)
    }

    fn size(&self) -> usize {
        self.inner.size() + size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = self.widen(values)?;
        self.inner.retract_batch(&values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}
