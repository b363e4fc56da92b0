//! A function over whole columns whose types depend on those of its arguments.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use segue_types::{SqlState, SqlType, UserError};

/// What the arguments are cast to; an error when there is no such function.
pub(super) type Coerce = fn(&[DataType]) -> Option<Vec<DataType>>;
/// The result's type, by the arguments'.
pub(super) type Returns = fn(&[FieldRef]) -> Result<FieldRef>;
/// The result, by the arguments and what is known of their types. Without arguments, of one row.
pub(super) type Body = fn(&[ArrayRef], &[FieldRef]) -> Result<ArrayRef>;

struct General {
    name: &'static str,
    coerce: Coerce,
    returns: Returns,
    body: Body,
    signature: Signature,
}

/// `name(…)`.
pub(super) fn function(
    name: &'static str,
    coerce: Coerce,
    returns: Returns,
    body: Body,
) -> ScalarUDF {
    let signature = Signature::user_defined(Volatility::Immutable);
    ScalarUDF::new_from_impl(General { name, coerce, returns, body, signature })
}

/// Arguments of any types, as they are.
pub(super) fn any(given: &[DataType]) -> Option<Vec<DataType>> {
    Some(given.to_vec())
}

/// Whether values of a type are texts.
pub(super) fn is_text(ty: &DataType) -> bool {
    matches!(ty, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// A result of an SQL type.
pub(super) fn typed(ty: &SqlType) -> FieldRef {
    Arc::new(ty.field("value", true))
}

/// An error of a value.
pub(super) fn failed(state: SqlState, message: impl Into<String>) -> DataFusionError {
    DataFusionError::External(Box::new(UserError::new(state, message)))
}

/// The one value of an array. A list keeps what is known of its items.
pub(super) fn scalar(array: &ArrayRef) -> Result<ColumnarValue> {
    let scalar = match array.as_list_opt::<i32>() {
        Some(list) => ScalarValue::List(Arc::new(list.clone())),
        None => ScalarValue::try_from_array(array, 0)?,
    };
    Ok(ColumnarValue::Scalar(scalar))
}

impl fmt::Debug for General {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for General {
    fn eq(&self, other: &General) -> bool {
        self.name == other.name
    }
}

impl Eq for General {}

impl Hash for General {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for General {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        (self.coerce)(given).ok_or_else(|| {
            let types = given.iter().map(crate::delta::errors::type_name).collect::<Vec<_>>();
            let call = format!("function {}({}) does not exist", self.name, types.join(", "));
            failed(SqlState::UNDEFINED_FUNCTION, call)
        })
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal("the type depends on fields".to_owned()))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = (self.returns)(arguments.arg_fields)?;
        Ok(Arc::new(field.as_ref().clone().with_name(self.name)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = |value: &ColumnarValue| matches!(value, ColumnarValue::Scalar(_));
        let constant = arguments.args.iter().all(is_scalar);
        let rows = if constant { 1 } else { arguments.number_rows };
        let columns: Vec<ArrayRef> =
            arguments.args.iter().map(|value| value.to_array(rows)).collect::<Result<_>>()?;
        let result = (self.body)(&columns, &arguments.arg_fields)?;
        if constant {
            return scalar(&result);
        }
        Ok(ColumnarValue::Array(result))
    }
}
