//! What reads no relation (VALUES, generate_series, a SELECT without FROM) is computed when the view is planned.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{Field, Schema};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use segue_flow::OperatorSpec;
use segue_types::UserError;

use super::super::fragment;
use super::super::provider::RelationSource;
use super::super::refuse::refusal;
use super::super::ticks::TickSource;
use super::{Output, Translator, user};

/// More rows than these belong into a table.
const MAX_ROWS: usize = 1_000_000;

/// Whether a plan reads nothing that may change.
pub(super) fn is_constant(plan: &LogicalPlan) -> bool {
    let mut reads = false;
    let walked = plan.apply_with_subqueries(|node| {
        reads |= match node {
            LogicalPlan::TableScan(scan) => {
                scan.source.downcast_ref::<RelationSource>().is_some()
                    || scan.source.downcast_ref::<TickSource>().is_some()
            }
            LogicalPlan::Extension(_) => true,
            _ => false,
        };
        Ok(if reads { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    walked.is_ok() && !reads
}

impl Translator<'_> {
    pub(super) fn constant(&mut self, plan: &LogicalPlan) -> Result<Output, UserError> {
        let batches = fragment::constant(plan, MAX_ROWS).map_err(user)?;
        let rows = batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        if rows > MAX_ROWS {
            let what = format!("a constant of more than {MAX_ROWS} rows");
            return Err(refusal(&what, "INSERT the rows into a table and read that."));
        }
        let logical = plan.schema().fields();
        let rows = match batches.first() {
            Some(first) => concat_batches(&first.schema(), &batches).expect("one plan, one schema"),
            None => {
                let held = |field: &Arc<Field>| {
                    let held = super::held_type(field.data_type());
                    Field::new(field.name(), held, true)
                };
                let fields = logical.iter().map(held).collect::<Vec<_>>();
                RecordBatch::new_empty(Arc::new(Schema::new(fields)))
            }
        };
        let fields = logical.iter().zip(rows.columns());
        let fields = fields
            .map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let rows = RecordBatch::try_new_with_options(schema, rows.columns().to_vec(), &options)
            .expect("its own types");
        let node = self.push(OperatorSpec::Constant { rows });
        let types = logical.iter().map(|field| field.data_type().clone()).collect::<Vec<_>>();
        Ok(Output { node: self.cast(node, &types), key: Vec::new() })
    }
}
