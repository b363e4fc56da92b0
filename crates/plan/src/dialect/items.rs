//! Lists that stand behind sets: what `unnest` makes rows of.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, UInt32Array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ScalarUDF};
use segue_types::SqlType;

use super::general;

/// `list_items`: the items of lists in lists, as `unnest` gives them.
pub(super) const ITEMS: &str = "list_items";
/// `list_ordinals`: 1, 2, … for the items of a list.
pub(super) const ORDINALS: &str = "list_ordinals";
/// `list_or_null`: a list of one NULL in the place of a list that would give no row.
const OR_NULL: &str = "list_or_null";
/// `list_subscripts`: the places in a dimension of a list.
pub(super) const SUBSCRIPTS: &str = "list_subscripts";

/// All of them.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let flat: general::Returns = |fields| Ok(Arc::new(flattened_field(&fields[0])));
    let places: general::Returns = |_| Ok(general::typed(&list_of_places()));
    vec![
        general::function(ITEMS, one_list, flat, |columns, _| flattened(&columns[0])),
        general::function(ORDINALS, one_list, places, |columns, _| ordinals(&columns[0])),
        or_null_function(),
        general::function(SUBSCRIPTS, list_and_place, places, |columns, _| subscripts(columns)),
    ]
}

fn or_null_function() -> ScalarUDF {
    let same: general::Returns = |fields| Ok(Arc::clone(&fields[0]));
    general::function(OR_NULL, one_list, same, |columns, _| or_null(&columns[0]))
}

/// `list_or_null(list)`
pub(super) fn or_null_of(list: Expr) -> Expr {
    let function = Arc::new(or_null_function());
    Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![list]))
}

fn list_of_places() -> SqlType {
    SqlType::Array(Box::new(SqlType::BigInt))
}

fn one_list(given: &[DataType]) -> Option<Vec<DataType>> {
    let [given] = given else { return None };
    Some(vec![as_list(given)?])
}

fn list_and_place(given: &[DataType]) -> Option<Vec<DataType>> {
    let (list, place, reverse) = match given {
        [list, place] => (list, place, None),
        [list, place, DataType::Boolean] => (list, place, Some(DataType::Boolean)),
        _ => return None,
    };
    let types = [as_list(list)?, DataType::Int64].into_iter().chain(reverse);
    place.is_integer().then(|| types.collect())
}

/// The places in a dimension, which is the same one in every row, from the first or from the last on.
fn subscripts(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let dimensions = columns[1].as_primitive::<Int64Type>();
    let dimension = if dimensions.is_valid(0) { dimensions.value(0) } else { 0 };
    let mut list = Arc::clone(&columns[0]);
    for _ in 1..dimension {
        list = inner(&list)?;
    }
    if dimension < 1 {
        return Ok(arrow::array::new_null_array(&list_of_places().arrow_type(), list.len()));
    }
    let places = ordinals(&list)?;
    let is_reversed = |reverse: &ArrayRef| reverse.is_valid(0) && reverse.as_boolean().value(0);
    if !columns.get(2).is_some_and(is_reversed) {
        return Ok(places);
    }
    let rising = places.as_list::<i32>();
    let falling = (0..rising.len()).flat_map(|row| (1..=i64::from(rising.value_length(row))).rev());
    let falling = Arc::new(Int64Array::from_iter_values(falling));
    let item: FieldRef = Arc::new(SqlType::BigInt.field("item", true));
    let (offsets, nulls) = (rising.offsets().clone(), rising.nulls().cloned());
    Ok(Arc::new(ListArray::new(item, offsets, falling, nulls)))
}

/// Lists of any kind as the one that relations hold.
fn as_list(given: &DataType) -> Option<DataType> {
    match given {
        DataType::List(_) => Some(given.clone()),
        DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => Some(DataType::List(Arc::clone(item))),
        _ => None,
    }
}

fn flattened_field(field: &Field) -> Field {
    match field.data_type() {
        DataType::List(item) if as_list(item.data_type()).is_some() => {
            flattened_field(&item.as_ref().clone())
        }
        _ => field.clone().with_nullable(true),
    }
}

/// All items of the lists in a list, in their order.
pub(super) fn flattened(array: &ArrayRef) -> Result<ArrayRef> {
    let list = array.as_list::<i32>();
    let Some(inner) = as_list(list.values().data_type()) else { return Ok(Arc::clone(array)) };
    let inner = cast(list.values(), &inner)?;
    let inner = inner.as_list::<i32>();
    let mut lengths = Vec::with_capacity(list.len());
    let mut items = Vec::<u32>::new();
    for row in 0..list.len() {
        let before = items.len();
        if list.is_valid(row) {
            for place in list.value_offsets()[row]..list.value_offsets()[row + 1] {
                let place = place as usize;
                if inner.is_valid(place) {
                    let offsets = inner.value_offsets();
                    items.extend(offsets[place] as u32..offsets[place + 1] as u32);
                }
            }
        }
        lengths.push(items.len() - before);
    }
    let DataType::List(item) = inner.data_type() else { unreachable!("it was cast to a list") };
    let items = take(inner.values(), &UInt32Array::from(items), None)?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    let flat: ArrayRef =
        Arc::new(ListArray::new(Arc::clone(item), offsets, items, list.nulls().cloned()));
    flattened(&flat)
}

/// The first of the lists in each list: all are of one length.
fn inner(array: &ArrayRef) -> Result<ArrayRef> {
    let list = array.as_list::<i32>();
    let first = (0..list.len()).map(|row| {
        let empty = list.is_null(row) || list.value_length(row) == 0;
        (!empty).then(|| list.value_offsets()[row] as u32)
    });
    let first = take(list.values(), &first.collect::<UInt32Array>(), None)?;
    let none = list_of_places().arrow_type();
    Ok(match as_list(first.data_type()) {
        Some(ty) => cast(&first, &ty)?,
        None => arrow::array::new_null_array(&none, list.len()),
    })
}

fn ordinals(array: &ArrayRef) -> Result<ArrayRef> {
    let list = array.as_list::<i32>();
    let length = |row| if list.is_valid(row) { list.value_length(row) } else { 0 };
    let lengths = (0..list.len()).map(length).collect::<Vec<_>>();
    let places = lengths.iter().flat_map(|length| 1..=i64::from(*length));
    let places = Int64Array::from_iter_values(places);
    let item: FieldRef = Arc::new(Field::clone(&SqlType::BigInt.field("item", true)));
    let offsets = OffsetBuffer::from_lengths(lengths.into_iter().map(|length| length as usize));
    Ok(Arc::new(ListArray::new(item, offsets, Arc::new(places), list.nulls().cloned())))
}

fn or_null(array: &ArrayRef) -> Result<ArrayRef> {
    let list = array.as_list::<i32>();
    let DataType::List(item) = array.data_type() else { unreachable!("the signature says so") };
    let mut lengths = Vec::with_capacity(list.len());
    let mut items = Vec::<Option<u32>>::new();
    for row in 0..list.len() {
        let before = items.len();
        if list.is_valid(row) {
            let offsets = list.value_offsets();
            items.extend((offsets[row] as u32..offsets[row + 1] as u32).map(Some));
        }
        if items.len() == before {
            items.push(None);
        }
        lengths.push(items.len() - before);
    }
    let items = take(list.values(), &UInt32Array::from(items), None)?;
    let item = Arc::new(item.as_ref().clone().with_nullable(true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::new(item, offsets, items, None::<NullBuffer>)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, ArrayRef, AsArray, ListArray};
    use arrow::datatypes::{Int32Type, Int64Type};

    use super::{or_null, ordinals};

    #[test]
    fn lists_are_counted_and_never_left_without_a_row() {
        let rows = vec![Some(vec![Some(7), None]), None, Some(vec![])];
        let list: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows));
        let places = ordinals(&list).expect("a list");
        let places = places.as_list::<i32>();
        assert_eq!(places.value(0).as_primitive::<Int64Type>().values().to_vec(), [1, 2]);
        assert!(places.is_null(1) && places.value(2).is_empty());
        let filled = or_null(&list).expect("a list");
        let filled = filled.as_list::<i32>();
        assert_eq!((0..3).map(|row| filled.value_length(row)).collect::<Vec<_>>(), [2, 1, 1]);
        assert!(filled.value(1).is_null(0) && filled.value(2).is_null(0));
    }
}
