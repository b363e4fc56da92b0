//! SUM and AVG with PostgreSQL's result types. They exist for planning only: the delta engine computes them.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};
use segue_flow::AggregateFunction;

use super::physical::held_type;

static TYPED: LazyLock<[Arc<AggregateUDF>; 2]> = LazyLock::new(|| {
    [AggregateFunction::Sum, AggregateFunction::Avg].map(|function| Arc::new(typed(function)))
});

/// The aggregate of this name, if its types are not DataFusion's.
pub(super) fn aggregate(name: &str) -> Option<Arc<AggregateUDF>> {
    TYPED.iter().find(|function| function.name() == name).cloned()
}

fn typed(function: AggregateFunction) -> AggregateUDF {
    let signature = Signature::user_defined(Volatility::Immutable);
    AggregateUDF::new_from_impl(Typed { function, signature })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Typed {
    function: AggregateFunction,
    signature: Signature,
}

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

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Err(DataFusionError::Internal("a planned aggregate is run by the delta engine".to_owned()))
    }
}

impl Typed {
    fn no_such_function(&self, arguments: &[DataType]) -> DataFusionError {
        let types = arguments.iter().map(super::errors::type_name).collect::<Vec<_>>().join(", ");
        DataFusionError::Plan(format!("function {}({types}) does not exist", self.name()))
    }
}
