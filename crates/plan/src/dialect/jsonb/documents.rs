//! Functions that take documents: what is given as text is brought into the normal form of jsonb first.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use segue_types::{SqlState, SqlType, sql_type_of};

use super::super::general::{self, failed};

/// `inner`, whose first `count` arguments are documents.
pub(super) fn taking(count: usize, inner: ScalarUDF) -> ScalarUDF {
    ScalarUDF::new_from_impl(Documents { inner, count })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Documents {
    inner: ScalarUDF,
    count: usize,
}

impl ScalarUDFImpl for Documents {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(given)
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        self.inner.return_type(given)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(arguments)
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let fields = arguments.arg_fields.iter().take(self.count);
        for (value, field) in arguments.args.iter_mut().zip(fields) {
            if sql_type_of(field) != Some(SqlType::Jsonb) {
                *value = match &*value {
                    ColumnarValue::Array(array) => ColumnarValue::Array(normal(array)?),
                    ColumnarValue::Scalar(scalar) => {
                        general::scalar(&normal(&scalar.to_array()?)?)?
                    }
                };
            }
        }
        self.inner.invoke_with_args(arguments)
    }
}

fn normal(texts: &ArrayRef) -> Result<ArrayRef> {
    let texts = cast(texts, &DataType::Utf8)?;
    let documents = texts.as_string::<i32>().iter().map(|text| {
        let document = text.map(segue_formats::normalise_jsonb).transpose();
        document.map_err(|error| failed(SqlState::INVALID_TEXT_REPRESENTATION, error.to_string()))
    });
    Ok(Arc::new(documents.collect::<Result<StringArray>>()?))
}
