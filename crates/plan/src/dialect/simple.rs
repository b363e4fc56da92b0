//! A function over whole columns with fixed types of arguments and result.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use segue_types::SqlType;

type Body = Arc<dyn Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync>;

struct Simple {
    name: &'static str,
    returns: FieldRef,
    signature: Signature,
    body: Body,
}

/// `name(arguments) → returns`, NULL for what `body` says.
pub(super) fn function(
    name: &'static str,
    arguments: &[DataType],
    returns: DataType,
    body: impl Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync + 'static,
) -> ScalarUDF {
    let returns = Arc::new(arrow::datatypes::Field::new(name, returns, true));
    of_field(name, TypeSignature::Exact(arguments.to_vec()), returns, body)
}

/// The same with a result of an SQL type that Arrow alone cannot tell, and arguments of any types.
pub(super) fn of_type(
    name: &'static str,
    arguments: TypeSignature,
    returns: &SqlType,
    body: impl Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync + 'static,
) -> ScalarUDF {
    of_field(name, arguments, Arc::new(returns.field(name, true)), body)
}

fn of_field(
    name: &'static str,
    arguments: TypeSignature,
    returns: FieldRef,
    body: impl Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync + 'static,
) -> ScalarUDF {
    let signature = Signature::new(arguments, Volatility::Immutable);
    ScalarUDF::new_from_impl(Simple { name, returns, signature, body: Arc::new(body) })
}

impl fmt::Debug for Simple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Simple {
    fn eq(&self, other: &Simple) -> bool {
        self.name == other.name && self.signature == other.signature
    }
}

impl Eq for Simple {}

impl Hash for Simple {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Simple {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::clone(&self.returns))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = |value: &ColumnarValue| matches!(value, ColumnarValue::Scalar(_));
        let scalar = arguments.args.iter().all(is_scalar);
        let rows = if scalar { 1 } else { arguments.number_rows };
        let columns: Vec<ArrayRef> =
            arguments.args.iter().map(|value| value.to_array(rows)).collect::<Result<_>>()?;
        let result = (self.body)(&columns)?;
        if scalar {
            return super::general::scalar(&result);
        }
        Ok(ColumnarValue::Array(result))
    }
}
