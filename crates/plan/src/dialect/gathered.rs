//! Aggregates that need all values of a group at once: `mode`, `percentile_disc`, `percentile_cont`,
//! `approx_percentile`, `jsonb_agg`, `jsonb_object_agg`.
//!
//! Words: *gathered* (the values of a group, kept until they are all there).

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, StringArray, UInt32Array};
use arrow::compute::{SortOptions, concat, filter, is_not_null, sort, take};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use arrow::row::{RowConverter, SortField};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};
use segue_types::{SqlState, SqlType, UserError};

use super::general::{self, failed};
use super::jsonb::build::{Members, Writer};
use super::text;

/// All of them.
pub fn aggregates() -> Vec<Arc<AggregateUDF>> {
    let all = [
        Kind::Mode,
        Kind::Discrete,
        Kind::Continuous,
        Kind::Approximate,
        Kind::JsonArray,
        Kind::JsonObject,
    ];
    let function = |kind| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(Gathering { kind, signature }))
    };
    all.into_iter().map(function).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Mode,
    Discrete,
    Continuous,
    Approximate,
    JsonArray,
    JsonObject,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Gathering {
    kind: Kind,
    signature: Signature,
}

fn fractions(given: &DataType) -> DataType {
    match given {
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
            SqlType::Array(Box::new(SqlType::Double)).arrow_type()
        }
        _ => DataType::Float64,
    }
}

impl AggregateUDFImpl for Gathering {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Mode => "mode",
            Kind::Discrete => "percentile_disc",
            Kind::Continuous => "percentile_cont",
            Kind::Approximate => "approx_percentile",
            Kind::JsonArray => "jsonb_agg",
            Kind::JsonObject => "jsonb_object_agg",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let double = DataType::Float64;
        Ok(match (self.kind, given) {
            (Kind::Mode | Kind::JsonArray, [value]) => vec![value.clone()],
            (Kind::Discrete, [value, at]) => vec![value.clone(), fractions(at)],
            (Kind::Continuous, [value, at]) if value.is_numeric() || value.is_null() => {
                vec![double, fractions(at)]
            }
            (Kind::Approximate, [value, _]) if value.is_numeric() => vec![double; 2],
            (Kind::Approximate, [value, _, _]) if value.is_numeric() => vec![double; 3],
            (Kind::JsonObject, [_, value]) => vec![DataType::Utf8, value.clone()],
            _ => {
                let types = given.iter().map(crate::delta::errors::type_name);
                let types = types.collect::<Vec<_>>().join(", ");
                let message = format!("function {}({types}) does not exist", self.name());
                return Err(failed(SqlState::UNDEFINED_FUNCTION, message));
            }
        })
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal("the type depends on fields".to_owned()))
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        let several = |field: &Field| match arguments.get(1).map(|at| at.data_type()) {
            Some(DataType::List(_)) => {
                let item = Arc::new(field.clone().with_name("item").with_nullable(true));
                Field::new(self.name(), DataType::List(item), true)
            }
            _ => field.clone().with_name(self.name()).with_nullable(true),
        };
        Ok(match self.kind {
            Kind::Mode | Kind::Discrete => Arc::new(several(&arguments[0])),
            Kind::Continuous | Kind::Approximate => {
                Arc::new(several(&Field::new("", DataType::Float64, true)))
            }
            Kind::JsonArray | Kind::JsonObject => general::typed(&SqlType::Jsonb),
        })
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let gathered = args.input_fields.iter().chain(args.ordering_fields);
        let fields = gathered.enumerate().map(|(place, input)| {
            let item = input.as_ref().clone().with_name("item").with_nullable(true);
            let name = format_state_name(args.name, &format!("gathered {place}"));
            let field: FieldRef = Arc::new(Field::new(name, DataType::List(Arc::new(item)), true));
            field
        });
        Ok(fields.collect())
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct && self.order_sensitivity() == AggregateOrderSensitivity::Insensitive {
            let message = format!("DISTINCT in {}() is not supported", self.name());
            return Err(DataFusionError::External(Box::new(UserError::unsupported(message))));
        }
        let mut fields = args.expr_fields.to_vec();
        let order = args.order_bys.iter().map(|order| order.options).collect::<Vec<_>>();
        if self.order_sensitivity() != AggregateOrderSensitivity::Insensitive {
            for order in args.order_bys {
                fields.push(order.expr.return_field(args.schema)?);
            }
        }
        let (result, batches) =
            (args.return_field.data_type().clone(), vec![Vec::new(); fields.len()]);
        let copies = if args.is_distinct { Copies::First } else { Copies::All };
        Ok(Box::new(Gathered { kind: self.kind, fields, result, order, copies, batches }))
    }

    fn supports_within_group_clause(&self) -> bool {
        !matches!(self.kind, Kind::JsonArray | Kind::JsonObject)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        match self.kind {
            // The columns of the order come behind the arguments.
            Kind::JsonArray | Kind::JsonObject => AggregateOrderSensitivity::SoftRequirement,
            _ => AggregateOrderSensitivity::Insensitive,
        }
    }

    /// Ordered input is no better than any other: what is gathered is sorted.
    fn with_beneficial_ordering(
        self: Arc<Self>,
        _: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        Ok(Some(self))
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        ScalarValue::try_from(data_type)
    }
}

/// Which of equal values count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copies {
    All,
    First,
}

/// The values of one group.
#[derive(Debug)]
struct Gathered {
    kind: Kind,
    fields: Vec<FieldRef>,
    result: DataType,
    order: Vec<SortOptions>,
    copies: Copies,
    /// By argument, then by column of the order.
    batches: Vec<Vec<ArrayRef>>,
}

impl Accumulator for Gathered {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for (batches, values) in self.batches.iter_mut().zip(values) {
            batches.push(Arc::clone(values));
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let columns = self.columns()?;
        let result = match self.kind {
            Kind::JsonArray => self.json_array(&self.counted(self.ordered(columns)?)?)?,
            Kind::JsonObject => self.json_object(&self.counted(self.ordered(columns)?)?)?,
            Kind::Mode => mode(&known(&columns[0])?, self.options())?,
            Kind::Discrete => self.at_fractions(&columns, discrete)?,
            Kind::Continuous => self.at_fractions(&columns, continuous)?,
            Kind::Approximate => approximate(&columns)?,
        };
        result.map_or_else(|| ScalarValue::try_from(&self.result), Ok)
    }

    fn size(&self) -> usize {
        let arrays = self.batches.iter().flatten();
        arrays.map(|array| array.get_array_memory_size()).sum::<usize>() + size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let columns = self.columns()?.into_iter().zip(&self.fields);
        let lists = columns.map(|(column, field)| {
            let item = field.as_ref().clone().with_name("item").with_nullable(true);
            let offsets = arrow::buffer::OffsetBuffer::from_lengths([column.len()]);
            let list = arrow::array::ListArray::new(Arc::new(item), offsets, column, None);
            ScalarValue::List(Arc::new(list))
        });
        Ok(lists.collect())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for (batches, lists) in self.batches.iter_mut().zip(states) {
            batches.extend(lists.as_list::<i32>().iter().flatten());
        }
        Ok(())
    }
}

type AtFraction = fn(&ArrayRef, f64) -> Result<ScalarValue>;

impl Gathered {
    /// All values, by argument.
    fn columns(&self) -> Result<Vec<ArrayRef>> {
        let columns = self.batches.iter().zip(&self.fields).map(|(batches, field)| {
            let arrays = batches.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>();
            match arrays.as_slice() {
                [] => Ok(arrow::array::new_empty_array(field.data_type())),
                arrays => Ok(concat(arrays)?),
            }
        });
        columns.collect()
    }

    fn options(&self) -> SortOptions {
        let descending = self.order.first().is_some_and(|options| options.descending);
        SortOptions { descending, nulls_first: false }
    }

    /// The arguments in the order that the call asks for.
    fn ordered(&self, columns: Vec<ArrayRef>) -> Result<Vec<ArrayRef>> {
        let arguments = columns.len() - self.order.len();
        if self.order.is_empty() {
            return Ok(columns);
        }
        let fields = columns[arguments..].iter().zip(&self.order).map(|(column, options)| {
            SortField::new_with_options(column.data_type().clone(), *options)
        });
        let rows = RowConverter::new(fields.collect())?.convert_columns(&columns[arguments..])?;
        let mut places = (0..columns[0].len() as u32).collect::<Vec<_>>();
        places.sort_by(|a, b| rows.row(*a as usize).cmp(&rows.row(*b as usize)));
        let places = UInt32Array::from(places);
        let columns = columns[..arguments].iter();
        columns.map(|column| Ok(take(column, &places, None)?)).collect()
    }

    /// The arguments, each of them once if the call says DISTINCT.
    fn counted(&self, columns: Vec<ArrayRef>) -> Result<Vec<ArrayRef>> {
        if self.copies == Copies::All {
            return Ok(columns);
        }
        let fields = columns.iter().map(|column| SortField::new(column.data_type().clone()));
        let rows = RowConverter::new(fields.collect())?.convert_columns(&columns)?;
        let mut seen = HashSet::new();
        let first = (0..columns[0].len()).filter(|row| seen.insert(rows.row(*row)));
        let first = first.map(|row| row as u32).collect::<UInt32Array>();
        columns.iter().map(|column| Ok(take(column, &first, None)?)).collect()
    }

    /// The value at the fraction, or the values at each of a list of fractions, which are the same in each row.
    fn at_fractions(&self, columns: &[ArrayRef], at: AtFraction) -> Result<Option<ScalarValue>> {
        let values = known(&columns[0])?;
        let fractions = &columns[1];
        if values.is_empty() || fractions.is_null(0) {
            return Ok(None);
        }
        let values = sort(&values, Some(self.options()))?;
        let DataType::List(item) = &self.result else {
            let fraction = fractions.as_primitive::<Float64Type>().value(0);
            return at(&values, checked(fraction)?).map(Some);
        };
        let fractions = fractions.as_list::<i32>().value(0);
        let found = fractions.as_primitive::<Float64Type>().iter().map(|fraction| match fraction {
            Some(fraction) => at(&values, checked(fraction)?),
            None => ScalarValue::try_from(item.data_type()),
        });
        let found = found.collect::<Result<Vec<_>>>()?;
        Ok(Some(ScalarValue::List(ScalarValue::new_list(&found, item.data_type(), true))))
    }

    fn json_array(&self, columns: &[ArrayRef]) -> Result<Option<ScalarValue>> {
        let writer = Writer::new(&columns[0], &self.fields[0])?;
        let items = (0..columns[0].len()).map(|row| writer.json(row)).collect::<Vec<_>>();
        let document = (!items.is_empty()).then(|| format!("[{}]", items.join(", ")));
        Ok(document.map(|document| ScalarValue::Utf8(Some(document))))
    }

    fn json_object(&self, columns: &[ArrayRef]) -> Result<Option<ScalarValue>> {
        let writer = Writer::new(&columns[1], &self.fields[1])?;
        let keys = text::shown(&columns[0])?;
        let keys: &StringArray = keys.as_string();
        let mut members = Members::default();
        for (row, key) in keys.iter().enumerate() {
            let Some(key) = key else {
                let message = "field name must not be null";
                return Err(failed(SqlState::INVALID_PARAMETER_VALUE, message));
            };
            members.put(key, writer.json(row));
        }
        Ok((!keys.is_empty()).then(|| ScalarValue::Utf8(Some(members.document()))))
    }
}

/// The values that are not NULL.
fn known(values: &ArrayRef) -> Result<ArrayRef> {
    Ok(filter(values, &is_not_null(values)?)?)
}

fn checked(fraction: f64) -> Result<f64> {
    if (0.0..=1.0).contains(&fraction) {
        return Ok(fraction);
    }
    let message = format!("percentile value {fraction} is not between 0 and 1");
    Err(failed(SqlState::NUMERIC_OUT_OF_RANGE, message))
}

/// The most frequent value, of equally frequent ones the first in the order.
fn mode(values: &ArrayRef, options: SortOptions) -> Result<Option<ScalarValue>> {
    if values.is_empty() {
        return Ok(None);
    }
    let field = SortField::new_with_options(values.data_type().clone(), options);
    let rows = RowConverter::new(vec![field])?.convert_columns(&[Arc::clone(values)])?;
    let mut order = (0..values.len()).collect::<Vec<_>>();
    order.sort_unstable_by(|a, b| rows.row(*a).cmp(&rows.row(*b)));
    let runs = order.chunk_by(|a, b| rows.row(*a) == rows.row(*b));
    // The first of the longest: `max_by_key` would take the last.
    let longest = runs.reduce(|best, run| if run.len() > best.len() { run } else { best });
    let place = longest.expect("there is a value")[0];
    let one = take(values, &UInt32Array::from(vec![place as u32]), None)?;
    Ok(Some(ScalarValue::try_from_array(&one, 0)?))
}

/// The first value whose place in the order reaches the fraction.
fn discrete(sorted: &ArrayRef, fraction: f64) -> Result<ScalarValue> {
    let place = (fraction * sorted.len() as f64).ceil() as usize;
    ScalarValue::try_from_array(sorted, place.saturating_sub(1))
}

/// The value at the fraction of the way from the first to the last.
fn continuous(sorted: &ArrayRef, fraction: f64) -> Result<ScalarValue> {
    let values = sorted.as_primitive::<Float64Type>();
    let at = fraction * (values.len() - 1) as f64;
    let (low, high) = (values.value(at.floor() as usize), values.value(at.ceil() as usize));
    let value = if low == high { low } else { low + (high - low) * at.fract() };
    Ok(ScalarValue::Float64(Some(value)))
}

/// What `approx_percentile` errs by, relatively, unless told.
const RELATIVE_ERROR: f64 = 0.01;

/// A quantile out of buckets whose bounds grow by a factor, so that the error is relative to the value: the upper
/// bound of the bucket that holds it, as RisingWave gives it.
fn approximate(columns: &[ArrayRef]) -> Result<Option<ScalarValue>> {
    let values = known(&columns[0])?;
    if values.is_empty() || columns[1].is_null(0) {
        return Ok(None);
    }
    let fraction = checked(columns[1].as_primitive::<Float64Type>().value(0))?;
    let error = columns.get(2).map(|error| error.as_primitive::<Float64Type>());
    let error = error.map_or(RELATIVE_ERROR, |error| error.value(0));
    if !(error > 0.0 && error < 1.0) {
        let message = format!("relative error {error} is not between 0 and 1");
        return Err(failed(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    let sorted = sort(&values, None)?;
    let sorted: &Float64Array = sorted.as_primitive();
    let rank = (fraction * (sorted.len() - 1) as f64).floor() as usize;
    let base = (1.0 + error) / (1.0 - error);
    let value = sorted.value(rank);
    let magnitude = value.abs();
    let bound = match magnitude > 0.0 {
        true => power(base, magnitude.log(base).ceil() as i32),
        false => 0.0,
    };
    Ok(Some(ScalarValue::Float64(Some(bound.copysign(value)))))
}

/// The same digits on every machine, which `powi` does not promise.
fn power(base: f64, exponent: i32) -> f64 {
    let (mut square, mut left, mut result) = (base, exponent.unsigned_abs(), 1.0);
    while left > 0 {
        if left % 2 == 1 {
            result *= square;
        }
        square *= square;
        left /= 2;
    }
    if exponent < 0 { 1.0 / result } else { result }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, Int32Array};
    use arrow::compute::SortOptions;
    use datafusion::scalar::ScalarValue;

    use super::{approximate, continuous, discrete, mode};

    #[test]
    fn percentiles_are_found_in_the_order() {
        let sorted: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 3.0, 5.0, 7.0]));
        let at = |fraction| (discrete(&sorted, fraction), continuous(&sorted, fraction));
        let double = |value| ScalarValue::Float64(Some(value));
        let (lower, middle) = at(0.5);
        assert_eq!((lower.expect("there"), middle.expect("there")), (double(3.0), double(4.0)));
        let (first, quarter) = at(0.0);
        assert_eq!((first.expect("there"), quarter.expect("there")), (double(1.0), double(1.0)));
    }

    #[test]
    fn the_mode_is_the_first_of_the_most_frequent() {
        let values: ArrayRef = Arc::new(Int32Array::from(vec![3, 1, 2, 2, 3]));
        let of = |descending| {
            let options = SortOptions { descending, nulls_first: false };
            mode(&values, options).expect("comparable")
        };
        assert_eq!(of(false), Some(ScalarValue::Int32(Some(2))));
        assert_eq!(of(true), Some(ScalarValue::Int32(Some(3))));
    }

    #[test]
    fn an_approximate_percentile_errs_by_its_bound_at_most() {
        let values: ArrayRef = Arc::new(Float64Array::from_iter_values((1..=1000).map(f64::from)));
        let constant = |value| Arc::new(Float64Array::from(vec![value; 1000])) as ArrayRef;
        let found = approximate(&[values, constant(0.5), constant(0.01)]).expect("in range");
        assert_eq!(found, Some(ScalarValue::Float64(Some(502.8074762179866))));
    }
}
