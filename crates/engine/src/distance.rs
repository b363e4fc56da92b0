//! How many rows lie between two positions: told by them, or guessed from the bytes that rows of the stage have had so
//! far.
//!
//! Invariant: what is guessed is shown to people and decides nothing.

use segue_connect::Distance;
use segue_types::Position;

use crate::meter::StageMeter;
use crate::source::StageRuntime;

/// The rows of a stage that were read, and their bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl Measured {
    pub(crate) fn of(meter: &StageMeter) -> Measured {
        Measured { rows: meter.rows, bytes: meter.bytes }
    }

    /// How many rows so many bytes have, if they are like those before. There is at least one.
    fn rows_in(self, bytes: u64) -> Option<u64> {
        let rows = u128::from(bytes) * u128::from(self.rows);
        match (bytes, self.bytes) {
            (0, _) => Some(0),
            (_, 0) => None,
            (_, all) => u64::try_from(rows.div_ceil(u128::from(all)).max(1)).ok(),
        }
    }
}

impl StageRuntime {
    /// How many records, at most, lie between two positions of a split, where they tell.
    pub(crate) fn records_between(&self, from: &Position, to: &Position) -> Option<u64> {
        match self.connector.distance(&self.config, from, to)? {
            Distance::Records(records) => Some(records),
            Distance::Bytes(_) => None,
        }
    }

    /// The same, guessed where positions are bytes.
    pub(crate) fn rows_between(
        &self,
        measured: Measured,
        from: &Position,
        to: &Position,
    ) -> Option<u64> {
        match self.connector.distance(&self.config, from, to)? {
            Distance::Records(records) => Some(records),
            Distance::Bytes(bytes) => measured.rows_in(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Measured;

    #[test]
    fn bytes_are_as_many_rows_as_those_before_them_were() {
        let measured = Measured { rows: 10, bytes: 1_000 };
        assert_eq!(measured.rows_in(500), Some(5));
        assert_eq!(measured.rows_in(510), Some(6));
        assert_eq!(measured.rows_in(1), Some(1));
        assert_eq!(measured.rows_in(0), Some(0));
        let nothing = Measured { rows: 0, bytes: 0 };
        assert_eq!((nothing.rows_in(7), nothing.rows_in(0)), (None, Some(0)));
        let rejected = Measured { rows: 0, bytes: 9 };
        assert_eq!(rejected.rows_in(7), Some(1), "there is something");
    }
}
