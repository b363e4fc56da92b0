//! The order of rows: for each slot, bytes that compare as its row does.
//!
//! The bytes of all slots lie in one buffer, one behind the other; those of slots that went are a gap until half of the
//! buffer is gaps, when it is written anew.

use std::cmp::Ordering;

use arrow::array::ArrayRef;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};

#[derive(Debug)]
pub(super) struct Order {
    converter: RowConverter,
    bytes: Vec<u8>,
    /// By slot: where its bytes lie.
    places: Vec<Place>,
    gaps_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    start: u64,
    len: u32,
}

impl Order {
    /// By columns of these types.
    pub(super) fn new(fields: Vec<SortField>) -> Order {
        let converter = RowConverter::new(fields);
        Order {
            converter: converter.expect("the planner asks for the order of types that have one"),
            bytes: Vec::new(),
            places: Vec::new(),
            gaps_bytes: 0,
        }
    }

    /// Takes in the rows of new slots.
    pub(super) fn add(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<(), ArrowError> {
        let rows = self.converter.convert_columns(columns)?;
        assert_eq!(rows.num_rows(), slots.len(), "a row for each slot");
        let slots_max = slots.iter().max().map_or(0, |slot| *slot as usize + 1);
        if self.places.len() < slots_max {
            self.places.resize(slots_max, Place::default());
        }
        for (row, slot) in rows.iter().zip(slots) {
            let row = row.as_ref();
            let len = u32::try_from(row.len()).expect("a row is shorter than 4 GiB");
            self.places[*slot as usize] = Place { start: self.bytes.len() as u64, len };
            self.bytes.extend_from_slice(row);
        }
        Ok(())
    }

    fn of(&self, slot: u32) -> &[u8] {
        let Place { start, len } = self.places[slot as usize];
        let start = start as usize;
        &self.bytes[start..start + len as usize]
    }

    pub(super) fn compare(&self, one: u32, other: u32) -> Ordering {
        self.of(one).cmp(self.of(other))
    }

    /// Forgets slots that went.
    pub(super) fn forget(&mut self, slots: &[u32]) {
        for slot in slots {
            let place = std::mem::take(&mut self.places[*slot as usize]);
            self.gaps_bytes += place.len as usize;
        }
        if self.gaps_bytes * 2 > self.bytes.len() {
            self.close_gaps();
        }
    }

    fn close_gaps(&mut self) {
        let mut bytes = Vec::with_capacity(self.bytes.len() - self.gaps_bytes);
        for place in self.places.iter_mut().filter(|place| place.len > 0) {
            let start = place.start as usize;
            place.start = bytes.len() as u64;
            bytes.extend_from_slice(&self.bytes[start..start + place.len as usize]);
        }
        self.bytes = bytes;
        self.gaps_bytes = 0;
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.capacity() + self.places.capacity() * size_of::<Place>()
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use arrow::datatypes::DataType;
    use arrow::row::SortField;

    use super::Order;

    fn columns(rows: &[(i64, &str)]) -> Vec<ArrayRef> {
        let numbers: ArrayRef =
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.1)));
        vec![numbers, texts]
    }

    #[test]
    fn slots_compare_as_their_rows_do_also_after_others_went_and_came() {
        let mut order = Order::new([DataType::Int64, DataType::Utf8].map(SortField::new).into());
        order.add(&[0, 1, 2], &columns(&[(7, "b"), (7, "a"), (-1, "z")])).expect("two columns");
        assert_eq!(order.compare(1, 0), Ordering::Less);
        assert_eq!(order.compare(2, 1), Ordering::Less);
        order.forget(&[0, 2]);
        assert_eq!(order.gaps_bytes, 0, "most of it was gaps");
        order.add(&[2], &columns(&[(8, "")])).expect("two columns");
        assert_eq!(order.compare(2, 1), Ordering::Greater);
        assert_eq!(order.compare(1, 1), Ordering::Equal);
    }
}
