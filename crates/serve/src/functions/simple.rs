//! A function over whole columns with a fixed result type that takes any arguments.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};

/// Columns in, a column of `rows` values out.
type Body = Arc<dyn Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync>;

/// The function.
struct Simple {
    name: &'static str,
    returns: DataType,
    signature: Signature,
    body: Body,
}

impl fmt::Debug for Simple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

// Two functions of one name are never registered together.
impl PartialEq for Simple {
    fn eq(&self, other: &Simple) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.body, &other.body)
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

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let columns: Vec<ArrayRef> =
            args.args.iter().map(|value| value.to_array(rows)).collect::<Result<_>>()?;
        (self.body)(&columns, rows).map(ColumnarValue::Array)
    }
}

/// A function of any number of arguments of any types.
pub(super) fn function(
    name: &'static str,
    returns: DataType,
    body: impl Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync + 'static,
) -> ScalarUDF {
    let signature = Signature::one_of(
        vec![TypeSignature::Nullary, TypeSignature::VariadicAny],
        Volatility::Stable,
    );
    ScalarUDF::new_from_impl(Simple { name, returns, signature, body: Arc::new(body) })
}

/// Argument `index` as numbers; whatever is no number is NULL.
pub(super) fn integers(columns: &[ArrayRef], index: usize) -> Vec<Option<i64>> {
    columns.get(index).map_or_else(Vec::new, |column| match column.data_type() {
        DataType::Int32 => {
            column.as_primitive::<Int32Type>().iter().map(|v| v.map(i64::from)).collect()
        }
        _ => match cast(column, &DataType::Int64) {
            Ok(column) => column.as_primitive::<Int64Type>().iter().collect(),
            Err(_) => vec![None; column.len()],
        },
    })
}

/// Argument `index` as texts.
pub(super) fn texts(columns: &[ArrayRef], index: usize) -> Vec<Option<String>> {
    columns.get(index).map_or_else(Vec::new, |column| match cast(column, &DataType::Utf8) {
        Ok(column) => column.as_string::<i32>().iter().map(|v| v.map(str::to_owned)).collect(),
        Err(_) => vec![None; column.len()],
    })
}

/// A column of texts.
pub(super) fn text_column(texts: impl Iterator<Item = Option<String>>) -> ArrayRef {
    Arc::new(texts.collect::<StringArray>())
}
