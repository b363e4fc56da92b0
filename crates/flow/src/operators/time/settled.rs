//! Rows that are final, whatever the operator before says of its own: none of them is taken back.

use super::super::Operator;
use crate::delta::Delta;
use crate::error::StepError;

#[derive(Debug)]
pub(crate) struct Settled {
    place: String,
}

impl Settled {
    pub(crate) fn new(place: String) -> Settled {
        Settled { place }
    }
}

impl Operator for Settled {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        let settled = inputs[0].iter().map(|delta| match delta.weights() {
            Some(weights) if weights.iter().any(|weight| *weight < 0) => {
                Err(StepError::NotAppendOnly { place: self.place.clone() })
            }
            _ => Ok(delta.clone()),
        });
        settled.collect()
    }
}
