//! GROUPING SETS, ROLLUP and CUBE: one aggregate for each set, over the same input.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, lit};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::scalar::ScalarValue;
use segue_flow::{Node, OperatorSpec};
use segue_types::UserError;

use super::super::physical::{cast_to, column};
use super::{Output, Translator, user};

impl Translator<'_> {
    pub(super) fn grouping_sets(
        &mut self,
        aggregate: &Aggregate,
        sets: &GroupingSet,
    ) -> Result<Output, UserError> {
        let input = self.node(&aggregate.input)?.node;
        self.shared.push(input);
        let keys = sets.distinct_expr().into_iter().cloned().collect::<Vec<_>>();
        let branches = expanded(sets);
        let branches = branches.iter().map(|set| self.grouped_by(aggregate, input, &keys, set));
        let inputs = branches.collect::<Result<Vec<_>, _>>()?;
        let fields = aggregate.schema.fields().iter();
        let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let node = self.push(OperatorSpec::UnionAll { inputs, schema });
        Ok(Output { node, key: Vec::new() })
    }

    /// The groups of one set, in the columns of the whole aggregate.
    fn grouped_by(
        &mut self,
        aggregate: &Aggregate,
        input: Node,
        keys: &[Expr],
        set: &[Expr],
    ) -> Result<Node, UserError> {
        let group = keys.iter().filter(|key| set.contains(key)).cloned().collect::<Vec<_>>();
        let mut calls = aggregate.aggr_expr.clone();
        if group.is_empty() && calls.is_empty() {
            calls.push(count(lit(1)));
        }
        let one = Aggregate::try_new(Arc::clone(&aggregate.input), group.clone(), calls);
        let output = self.aggregate_over(&one.map_err(user)?, input)?;
        let from = self.spec.schema_of(output.node);
        let mut grouping_id = 0_u64;
        let mut columns = Vec::new();
        for (place, key) in keys.iter().enumerate() {
            let field = aggregate.schema.field(place);
            let at = group.iter().position(|grouped| grouped == key);
            grouping_id = grouping_id << 1 | u64::from(at.is_none());
            let expression = match at {
                Some(at) => column(&from, at),
                None => literal(ScalarValue::try_from(field.data_type()).map_err(user)?),
            };
            columns.push((expression, field.as_ref().clone().with_nullable(true)));
        }
        let id = aggregate.schema.field(keys.len());
        let value = ScalarValue::from(grouping_id).cast_to(id.data_type()).map_err(user)?;
        columns.push((literal(value), id.as_ref().clone()));
        for call in 0..aggregate.aggr_expr.len() {
            let (at, field) = (group.len() + call, aggregate.schema.field(keys.len() + 1 + call));
            let expression =
                cast_to(column(&from, at), from.field(at).data_type(), field.data_type());
            let field = Field::new(field.name(), field.data_type().clone(), true);
            columns.push((expression, field));
        }
        Ok(self.columns(output.node, columns))
    }
}

fn literal(value: ScalarValue) -> Arc<dyn PhysicalExpr> {
    Arc::new(Literal::new(value))
}

/// Each set by itself.
fn expanded(sets: &GroupingSet) -> Vec<Vec<Expr>> {
    match sets {
        GroupingSet::GroupingSets(sets) => sets.clone(),
        GroupingSet::Rollup(keys) => (0..=keys.len()).rev().map(|n| keys[..n].to_vec()).collect(),
        GroupingSet::Cube(keys) => {
            let subset = |bits: usize| {
                let kept = keys.iter().enumerate().filter(|(place, _)| bits >> place & 1 == 1);
                kept.map(|(_, key)| key.clone()).collect()
            };
            (0..1_usize << keys.len()).rev().map(subset).collect()
        }
    }
}
