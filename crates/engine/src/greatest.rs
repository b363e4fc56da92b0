//! `START AT COLUMNS`: the greatest position per split that the rows of the stage before carry.
//!
//! Invariant: it is taken from the very rows that are delivered: those that are captured, or those of a stage that is
//! read again, complete and pinned as it is, for these columns alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use segue_connect::{
    ConnectError, HandoffKind, ReadEvent, SplitDefinition, SplitStart, StageReader, Start,
};
use segue_types::{Position, SplitId, SqlState, StageIndex, UserError};

use crate::source::{SourceRuntime, StageRuntime};

/// What has been seen so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Greatest {
    split: String,
    position: String,
    found: BTreeMap<String, i64>,
}

impl Greatest {
    /// What the stage after `index` asks for, if it starts by columns.
    pub(crate) fn wanted(source: &SourceRuntime, index: StageIndex) -> Option<Greatest> {
        let next = source.stages.get(index.next().as_usize())?;
        let by_columns = next.handoff.as_ref()?.kind == Some(HandoffKind::Columns);
        match &next.config.start {
            Start::Columns { split, position } if by_columns => {
                Some(Greatest::new(split, position))
            }
            _ => None,
        }
    }

    fn new(split: &str, position: &str) -> Greatest {
        Greatest { split: split.to_owned(), position: position.to_owned(), found: BTreeMap::new() }
    }

    /// Takes rows in. A row without split or position came from nowhere in the log.
    pub(crate) fn take(&mut self, rows: &RecordBatch) -> Result<(), ConnectError> {
        let column = |name: &str, to: &DataType| {
            let column = rows.column_by_name(name).expect("the planner found the column");
            (column.null_count(), cast(column, to).expect("integers and text are cast to both"))
        };
        let (_, splits) = column(&self.split, &DataType::Utf8);
        let (nulls, positions) = column(&self.position, &DataType::Int64);
        if positions.null_count() > nulls {
            return Err(no_number(&self.position));
        }
        let splits = splits.as_string::<i32>().iter();
        for (split, position) in splits.zip(positions.as_primitive::<Int64Type>()) {
            let (Some(split), Some(position)) = (split, position) else { continue };
            match self.found.get_mut(split) {
                Some(greatest) => *greatest = position.max(*greatest),
                None => _ = self.found.insert(split.to_owned(), position),
            }
        }
        Ok(())
    }

    /// Takes in what a stage delivers that was not captured. It is complete and pinned, so another reading tells
    /// the same.
    pub(crate) async fn take_again(
        &mut self,
        stage: &Arc<StageRuntime>,
    ) -> Result<(), ConnectError> {
        let reader = stage.open(&self.projection(stage)).await?;
        for split in &stage.definition.splits {
            self.take_split(reader.as_ref(), split).await?;
        }
        Ok(())
    }

    /// The columns to look at. A keyed read delivers its key in any case.
    fn projection(&self, stage: &StageRuntime) -> Vec<usize> {
        let place = |name: &String| {
            stage.config.schema.index_of(name).expect("the planner found the column")
        };
        let mut columns: Vec<usize> = [&self.split, &self.position].map(place).to_vec();
        columns.extend(&stage.config.key);
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    async fn take_split(
        &mut self,
        reader: &dyn StageReader,
        split: &SplitDefinition,
    ) -> Result<(), ConnectError> {
        let SplitStart::At(from) = &split.start else {
            let message =
                "START AT COLUMNS needs a stage before it that starts at a position of its own";
            return Err(ConnectError::Unsupported(message.to_owned()));
        };
        let mut rows = reader.read(&split.id, from, split.bound.as_ref()).await?;
        loop {
            match rows.next().await? {
                ReadEvent::Rows(rows) => self.take(&rows.changes.rows)?,
                ReadEvent::Progress { .. } => {}
                ReadEvent::Done { .. } => return Ok(()),
            }
        }
    }

    /// The next position of each split.
    pub(crate) fn next(self) -> Vec<(SplitId, Position)> {
        let next = |(split, greatest): (String, i64)| {
            (SplitId::new(split), Position::new(greatest.saturating_add(1).to_string()))
        };
        self.found.into_iter().map(next).collect()
    }
}

fn no_number(column: &str) -> ConnectError {
    let message = format!("column \"{column}\" named in START AT COLUMNS holds what is no number");
    ConnectError::Value(
        UserError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
            .with_hint("A position is the number of the record that the row came from."),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};

    use super::Greatest;

    fn rows(splits: Vec<Option<i32>>, positions: Vec<Option<&str>>) -> RecordBatch {
        let splits: ArrayRef = Arc::new(Int32Array::from(splits));
        let positions: ArrayRef = Arc::new(StringArray::from(positions));
        RecordBatch::try_from_iter_with_nullable([("p", splits, true), ("o", positions, true)])
            .expect("two columns of one length")
    }

    #[test]
    fn each_split_goes_on_after_its_greatest_position_and_rows_from_nowhere_say_nothing() {
        let mut greatest = Greatest::new("p", "o");
        let first = rows(vec![Some(0), Some(1), Some(0)], vec![Some("9"), Some("3"), Some("10")]);
        greatest.take(&first).expect("numbers");
        greatest.take(&rows(vec![None, Some(1)], vec![Some("99"), None])).expect("numbers");
        let next: Vec<String> =
            greatest.next().iter().map(|(split, at)| format!("{split} {at}")).collect();
        assert_eq!(next, ["0 11", "1 4"]);
    }

    #[test]
    fn a_position_that_is_no_number_fails_the_capture() {
        let mut greatest = Greatest::new("p", "o");
        assert!(greatest.take(&rows(vec![Some(0)], vec![Some("ten")])).is_err());
    }
}
