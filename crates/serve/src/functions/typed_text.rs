//! Casts to uuid and jsonb, which are held as text: the text is checked and normalised, and the result is marked.

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use segue_types::SqlType;
use std::sync::Arc;

use crate::values::column_of_texts;

/// `'…'::uuid` is planned as a call of this.
pub(crate) const UUID: &str = "segue_uuid";
/// `'…'::jsonb` is planned as a call of this.
pub(crate) const JSONB: &str = "segue_jsonb";

/// Both.
pub(super) fn functions() -> [ScalarUDF; 2] {
    [(UUID, SqlType::Uuid), (JSONB, SqlType::Jsonb)].map(|(name, ty)| {
        let signature = Signature::any(1, Volatility::Immutable);
        ScalarUDF::new_from_impl(TypedText { name, ty, signature })
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TypedText {
    name: &'static str,
    ty: SqlType,
    signature: Signature,
}

impl ScalarUDFImpl for TypedText {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.ty.arrow_type())
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(self.ty.field(self.name, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.first() else {
            return Err(DataFusionError::Internal(format!("{} has no argument", self.name)));
        };
        let texts = cast(&value.to_array(args.number_rows)?, &DataType::Utf8)?;
        let column = column_of_texts(&self.ty, texts.as_string::<i32>().iter())
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(ColumnarValue::Array(column))
    }
}
