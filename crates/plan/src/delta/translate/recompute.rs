//! What has no incremental form: a fragment that DataFusion's batch engine computes for the partitions that change.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DataFusionError};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Window};
use segue_flow::{Node, OperatorSpec, PartitionedInput};
use segue_types::UserError;

use super::super::fragment::Fragment;
use super::super::leaf::Leaf;
use super::super::physical::{cast_to, column, held_type, physical};
use super::super::provider::{ReadAs, RelationSource};
use super::super::refuse::refusal;
use super::{Output, Translator, plain_column, user};

/// How many inputs one recomputation may have.
const MAX_INPUTS: usize = 12;

/// An input of a fragment: a node in held types, the leaf that stands for it, the columns that partition it.
pub(super) struct Input {
    pub(super) node: Node,
    pub(super) leaf: Leaf,
    pub(super) key: Vec<usize>,
}

impl Translator<'_> {
    /// The operator that computes `fragment` over `inputs`; `key` are the output's columns that partition it.
    pub(super) fn recompute(
        &mut self,
        what: &str,
        fragment: &LogicalPlan,
        inputs: Vec<Input>,
        key: Vec<usize>,
    ) -> Result<Node, UserError> {
        if inputs.len() > MAX_INPUTS {
            let what = format!("{what} over more than {MAX_INPUTS} relations");
            return Err(refusal(&what, "Make materialized views of its parts."));
        }
        if key.is_empty() {
            self.notices.insert(format!(
                "{what} is computed again from all of its input at each change of it"
            ));
        }
        let leaves = inputs.iter().map(|input| input.leaf.arrow_schema()).collect();
        let program = Fragment::plan(fragment, leaves).map_err(user)?;
        let names = fragment.schema().fields().iter().zip(program.types());
        let fields = names.map(|(field, held)| Field::new(field.name(), held.clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let inputs =
            inputs.into_iter().map(|input| PartitionedInput { node: input.node, key: input.key });
        let inputs = inputs.collect();
        let what = what.to_owned();
        Ok(self.push(OperatorSpec::Recompute {
            inputs,
            program: Arc::new(program),
            key,
            schema,
            what,
        }))
    }

    /// `node`, whose columns are those of `schema`, as an input of a fragment, with what is computed of it appended.
    pub(super) fn input_of(
        &mut self,
        node: Node,
        schema: &DFSchema,
        computed: &[Expr],
    ) -> Result<Input, UserError> {
        let from = self.spec.schema_of(node);
        let mut columns = Vec::new();
        for (place, field) in from.fields().iter().enumerate() {
            let held = held_type(field.data_type());
            let expression = cast_to(column(&from, place), field.data_type(), &held);
            columns.push((expression, Field::new(field.name(), held, true)));
        }
        let mut fields =
            schema.iter().map(|(q, f)| (q.cloned(), Arc::clone(f))).collect::<Vec<_>>();
        for (place, expression) in computed.iter().enumerate() {
            let planned = physical(expression, schema).map_err(user)?;
            let data_type = planned.data_type(&from).map_err(user)?;
            let held = held_type(&data_type);
            let name = computed_name(place);
            columns.push((cast_to(planned, &data_type, &held), Field::new(&name, held, true)));
            fields.push((None, Arc::new(Field::new(name, data_type, true))));
        }
        let leaf = DFSchema::new_with_metadata(fields, Default::default());
        let leaf = leaf.and_then(|schema| Leaf::new(0, &schema)).map_err(user)?;
        if columns.is_empty() {
            columns.push(super::one_column());
        }
        Ok(Input { node: self.columns(node, columns), leaf, key: Vec::new() })
    }

    pub(super) fn window(&mut self, window: &Window) -> Result<Output, UserError> {
        let mut computed = Computed::default();
        let calls = computed.out_of(&window.window_expr).map_err(user)?;
        let node = self.node(&window.input)?.node;
        if let Some(closed) = self.closed_window(window, node, &calls, &computed)? {
            return Ok(closed);
        }
        let mut input = self.input_of(node, window.input.schema(), &computed.expressions)?;
        input.key = places(&common_partition(&calls), &input.leaf)?;
        let width = window.input.schema().fields().len();
        let extended = width + computed.expressions.len();
        let leaf = Arc::new(input.leaf.clone().into_plan());
        let fragment = LogicalPlan::Window(Window::try_new(calls, leaf).map_err(user)?);
        let key = input.key.clone();
        let node = self.recompute("a window function", &fragment, vec![input], key)?;
        // The computed columns go again.
        let kept = (0..width).chain(extended..fragment.schema().fields().len());
        self.logical(node, &kept.collect::<Vec<_>>(), window.schema.as_ref())
    }

    /// The columns at `places` in the types of `schema`.
    pub(super) fn logical(
        &mut self,
        node: Node,
        places: &[usize],
        schema: &DFSchema,
    ) -> Result<Output, UserError> {
        let from = self.spec.schema_of(node);
        assert_eq!(places.len(), schema.fields().len(), "a column for each of the plan's");
        let columns = places.iter().zip(schema.fields()).map(|(place, field)| {
            let logical = field.data_type();
            let expression =
                cast_to(column(&from, *place), from.field(*place).data_type(), logical);
            (expression, Field::new(field.name(), logical.clone(), true))
        });
        let columns = columns.collect();
        Ok(Output { node: self.columns(node, columns), key: Vec::new() })
    }

    /// Aggregates that the engine has no accumulators for, by group.
    pub(super) fn aggregate_again(
        &mut self,
        aggregate: &Aggregate,
        input: Node,
    ) -> Result<Output, UserError> {
        let mut computed = Computed::default();
        let groups = aggregate.group_expr.iter().map(|key| computed.column(key.clone().unalias()));
        let groups = groups.collect::<Vec<_>>();
        let calls = computed.out_of(&aggregate.aggr_expr).map_err(user)?;
        let mut input = self.input_of(input, aggregate.input.schema(), &computed.expressions)?;
        input.key = places(&groups, &input.leaf)?;
        let leaf = Arc::new(input.leaf.clone().into_plan());
        let fragment = Aggregate::try_new(leaf, groups, calls);
        let fragment = LogicalPlan::Aggregate(fragment.map_err(user)?);
        let keys = (0..aggregate.group_expr.len()).collect::<Vec<_>>();
        let what = match aggregate.aggr_expr.first() {
            Some(call) => format!("aggregate {}()", name_of(call)),
            None => "DISTINCT".to_owned(),
        };
        let node = self.recompute(&what, &fragment, vec![input], keys.clone())?;
        let all = (0..aggregate.schema.fields().len()).collect::<Vec<_>>();
        let output = self.logical(node, &all, aggregate.schema.as_ref())?;
        Ok(Output { key: keys, ..output })
    }

    /// The whole of `plan`, over the relations that it reads.
    pub(super) fn whole(&mut self, plan: &LogicalPlan) -> Result<Output, UserError> {
        let mut inputs = Vec::new();
        let mut failed = None;
        let fragment = plan.clone().transform_up(|node| {
            let LogicalPlan::TableScan(scan) = &node else { return Ok(Transformed::no(node)) };
            let Some(source) = scan.source.downcast_ref::<RelationSource>() else {
                return Ok(Transformed::no(node));
            };
            if source.read == ReadAs::OfArrival {
                failed = Some(UserError::internal("what was read before is not there any more"));
                return Ok(Transformed::no(node));
            }
            let schema = Arc::clone(&scan.projected_schema);
            let output = match self.scan(scan) {
                Ok(output) => output,
                Err(error) => {
                    failed = Some(error);
                    return Ok(Transformed::no(node));
                }
            };
            let input = self.input_of(output.node, &schema, &[]);
            let input = input.map_err(|error| DataFusionError::External(Box::new(error)))?;
            let leaf = Leaf::new(inputs.len(), &schema)?;
            inputs.push(Input { leaf: leaf.clone(), ..input });
            Ok(Transformed::yes(leaf.into_plan()))
        });
        let fragment = fragment.data().map_err(user)?;
        if let Some(error) = failed {
            return Err(error);
        }
        let node = self.recompute("the query", &fragment, inputs, Vec::new())?;
        let all = (0..plan.schema().fields().len()).collect::<Vec<_>>();
        self.logical(node, &all, plan.schema())
    }
}

/// What is computed before a fragment runs: there an expression that fails costs its row alone.
#[derive(Default)]
pub(super) struct Computed {
    pub(super) expressions: Vec<Expr>,
}

fn computed_name(place: usize) -> String {
    format!("computed {place}")
}

impl Computed {
    /// The column that holds `expression`.
    pub(super) fn column(&mut self, expression: Expr) -> Expr {
        if matches!(expression, Expr::Column(_)) {
            return expression;
        }
        let known = self.expressions.iter().position(|known| *known == expression);
        let place = known.unwrap_or_else(|| {
            self.expressions.push(expression);
            self.expressions.len() - 1
        });
        Expr::Column(Column::new_unqualified(computed_name(place)))
    }

    /// A literal stays one: some functions ask for it.
    fn argument(&mut self, expression: &mut Expr) {
        if !matches!(expression, Expr::Literal(..)) {
            *expression = self.column(std::mem::take(expression).unalias());
        }
    }

    /// The calls, over columns and literals alone.
    fn out_of(&mut self, calls: &[Expr]) -> Result<Vec<Expr>, DataFusionError> {
        calls.iter().map(|call| self.call(call.clone())).collect()
    }

    fn call(&mut self, call: Expr) -> Result<Expr, DataFusionError> {
        let replaced = call.transform_down(|part| {
            let mut part = part;
            let parts: Vec<&mut Expr> = match &mut part {
                Expr::AggregateFunction(call) => {
                    let params = &mut call.params;
                    let filter = params.filter.iter_mut().map(|filter| &mut **filter);
                    let order = params.order_by.iter_mut().map(|sort| &mut sort.expr);
                    params.args.iter_mut().chain(filter).chain(order).collect()
                }
                Expr::WindowFunction(call) => {
                    let params = &mut call.params;
                    let filter = params.filter.iter_mut().map(|filter| &mut **filter);
                    let order = params.order_by.iter_mut().map(|sort| &mut sort.expr);
                    let partition = params.partition_by.iter_mut();
                    let arguments = params.args.iter_mut();
                    arguments.chain(filter).chain(order).chain(partition).collect()
                }
                _ => return Ok(Transformed::no(part)),
            };
            parts.into_iter().for_each(|part| self.argument(part));
            Ok(Transformed::new(part, true, TreeNodeRecursion::Jump))
        });
        replaced.data()
    }
}

/// Where these columns are in a leaf.
pub(super) fn places(columns: &[Expr], leaf: &Leaf) -> Result<Vec<usize>, UserError> {
    let place = |column: &Expr| match plain_column(column, leaf.schema()) {
        Some(place) => Ok(place),
        None => Err(UserError::internal(format!("{column} is no column of a leaf"))),
    };
    columns.iter().map(place).collect()
}

/// The expressions by which all of these window functions are partitioned.
pub(super) fn common_partition(windows: &[Expr]) -> Vec<Expr> {
    let partition = |expression: &Expr| match expression.clone().unalias() {
        Expr::WindowFunction(call) => call.params.partition_by,
        _ => Vec::new(),
    };
    let mut all = windows.iter().map(partition);
    let mut common = all.next().unwrap_or_default();
    // All rows agree in a literal.
    common.retain(|expression| matches!(expression, Expr::Column(_)));
    for partition in all {
        common.retain(|expression| partition.contains(expression));
    }
    common
}

fn name_of(call: &Expr) -> String {
    match call.clone().unalias() {
        Expr::AggregateFunction(call) => call.func.name().to_owned(),
        other => other.to_string(),
    }
}
