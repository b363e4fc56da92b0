//! Projection: linear, so the delta of the output is the projection of the delta.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::physical_expr::PhysicalExpr;

use super::Operator;
use crate::delta::Delta;
use crate::error::StepError;
use crate::expression::evaluate;

#[derive(Debug)]
pub(crate) struct Project {
    place: String,
    expressions: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
    errors: u64,
}

impl Project {
    pub(crate) fn new(
        place: String,
        expressions: Vec<Arc<dyn PhysicalExpr>>,
        schema: SchemaRef,
    ) -> Project {
        assert_eq!(expressions.len(), schema.fields().len(), "one field per expression");
        Project { place, expressions, schema, errors: 0 }
    }

    fn project(&mut self, delta: &Delta) -> Result<Delta, DataFusionError> {
        let mut columns = Vec::with_capacity(self.expressions.len());
        for expression in &self.expressions {
            columns.push(evaluate(expression.as_ref(), delta.rows(), &mut self.errors)?);
        }
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
}
