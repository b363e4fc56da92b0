//! Projection: linear, so the delta of the output is the projection of the delta.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::physical_expr::PhysicalExpr;

use super::Operator;
use crate::delta::Delta;
use crate::error::StepError;
use crate::expression::{Failures, evaluate_noting};

#[derive(Debug)]
pub(crate) struct Project {
    place: String,
    expressions: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
    errors: u64,
    several: i64,
}

impl Project {
    pub(crate) fn new(
        place: String,
        expressions: Vec<Arc<dyn PhysicalExpr>>,
        schema: SchemaRef,
    ) -> Project {
        assert_eq!(expressions.len(), schema.fields().len(), "one field per expression");
        Project { place, expressions, schema, errors: 0, several: 0 }
    }

    fn project(&mut self, delta: &Delta) -> Result<Delta, DataFusionError> {
        let mut columns = Vec::with_capacity(self.expressions.len());
        let mut failures = Failures::default();
        for expression in &self.expressions {
            let value = evaluate_noting(expression.as_ref(), delta.rows(), 0, &mut failures)?;
            columns.push(value);
        }
        self.errors += failures.count;
        self.several += failures.several_in(delta);
        let options = RecordBatchOptions::new().with_row_count(Some(delta.len()));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        Ok(delta.with_rows(rows))
    }
}

impl Operator for Project {
    fn step(&mut self, inputs: &[&[Delta]]) -> Result<Vec<Delta>, StepError> {
        let project = |delta| {
            self.project(delta)
                .map_err(|source| StepError::Compute { place: self.place.clone(), source })
        };
        inputs[0].iter().map(project).collect()
    }

    fn expression_errors(&self) -> u64 {
        self.errors
    }

    fn several_rows(&self) -> i64 {
        self.several
    }
}
