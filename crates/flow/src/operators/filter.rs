//! Filter: linear. A row is kept or not whatever its weight, so a removal meets what the addition met.

use std::sync::Arc;

use arrow::array::{AsArray, Int64Array};
use arrow::compute::{filter, filter_record_batch};
use arrow::datatypes::Int64Type;
use datafusion::error::DataFusionError;
use datafusion::physical_expr::PhysicalExpr;

use super::Operator;
use crate::delta::Delta;
use crate::error::StepError;
use crate::expression::{Failures, evaluate_noting, is_true};

#[derive(Debug)]
pub(crate) struct Filter {
    place: String,
    predicate: Arc<dyn PhysicalExpr>,
    errors: u64,
    several: i64,
}

impl Filter {
    pub(crate) fn new(place: String, predicate: Arc<dyn PhysicalExpr>) -> Filter {
        Filter { place, predicate, errors: 0, several: 0 }
    }

    fn filter(&mut self, delta: &Delta) -> Result<Delta, DataFusionError> {
        let mut failures = Failures::default();
        let predicate = self.predicate.as_ref();
        let mask = is_true(&evaluate_noting(predicate, delta.rows(), 0, &mut failures)?)?;
        self.errors += failures.count;
        self.several += failures.several_in(delta);
        let rows = filter_record_batch(delta.rows(), &mask)?;
        Ok(match delta.weights() {
            None => Delta::inserts(rows),
            Some(weights) => {
                let weights = filter(&Int64Array::new(weights.clone(), None), &mask)?;
                Delta::weighted(rows, weights.as_primitive::<Int64Type>().values().clone())
            }
        })
    }
}

impl Operator for Filter {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        let mut out = Vec::with_capacity(inputs[0].len());
        for delta in inputs[0] {
            let kept = self
                .filter(delta)
                .map_err(|source| StepError::Compute { place: self.place.clone(), source })?;
            if !kept.is_empty() {
                out.push(kept);
            }
        }
        Ok(out)
    }

    fn expression_errors(&self) -> u64 {
        self.errors
    }

    fn several_rows(&self) -> i64 {
        self.several
    }
}
