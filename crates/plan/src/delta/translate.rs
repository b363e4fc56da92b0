//! Optimised LogicalPlan → operators.
//!
//! Every logical node becomes operators whose output has the node's columns in the node's order, so that an expression
//! over a node's schema is one over its batches. Each object is one input, whatever number of times it is scanned.
//! Types that a relation does not hold (views of text, nanoseconds) may live between stateless operators; what
//! goes into state is cast to the held type, and back after it.

mod aggregate;
mod clock;
mod closing;
mod constant;
mod distinct;
mod ends;
mod grouping;
mod inputs;
mod join;
mod recompute;
mod temporal;
mod times;
mod top_n;
mod unnest;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{
    Distinct, Expr, Filter, LogicalPlan, Projection, TableScan, Union, UserDefinedLogicalNodeCore,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::scalar::ScalarValue;
use segue_flow::{DataflowSpec, Node, OperatorSpec};
use segue_sql::Emission;
use segue_types::{SqlState, UserError};

use super::changes::Changelog;
use super::leaf::Leaf;
use super::physical::{cast_to, column, held_type, physical};
use super::provider::{CatalogProvider, ReadAs, RelationSource};
use super::ticks::TickSource;
use super::{MarkInput, ViewInput, errors, refuse};

use inputs::Inputs;
use times::Times;

/// A dataflow and what its inputs read.
pub(super) struct Translated {
    pub(super) spec: DataflowSpec,
    pub(super) inputs: Vec<ViewInput>,
    pub(super) marks: Vec<MarkInput>,
    pub(super) notices: BTreeSet<String>,
}

/// A node's output, and the columns of it that hold one row per value.
#[derive(Clone, Debug)]
struct Output {
    node: Node,
    key: Vec<usize>,
}

/// What was translated so far.
struct Translator<'a> {
    inputs: Inputs<'a>,
    spec: DataflowSpec,
    notices: BTreeSet<String>,
    /// Inside how many right sides of temporal joins the translation is.
    looked_up: usize,
    /// Nodes that more than one operator reads or will read.
    shared: Vec<Node>,
    /// What stands for leaves of plans that are translated in parts, by their numbers.
    given: Vec<Output>,
    /// The watermarks of nodes that have any.
    times: HashMap<Node, Times>,
    /// What delivers the time, if something asked for it.
    clock: Option<Node>,
    /// When rows are shown.
    emission: Emission,
}

/// The dataflow of `plan`, its relation named as `named`.
pub(super) fn translate(
    plan: &LogicalPlan,
    named: &SchemaRef,
    provider: &CatalogProvider<'_>,
    emission: Emission,
) -> Result<Translated, UserError> {
    let mut translator = Translator::new(plan, provider, emission)?;
    let output = match translator.node(plan) {
        Ok(output) => output,
        Err(error)
            if error.state == SqlState::FEATURE_NOT_SUPPORTED
                && !constant::is_constant(plan)
                && !super::clock::is_in_plan(plan) =>
        {
            // What has no operators may still have a batch plan.
            translator = Translator::new(plan, provider, emission)?;
            translator.whole(plan).map_err(|_| error)?
        }
        Err(error) => return Err(error),
    };
    let output = translator.root(output, named);
    let output = translator.emitted(output)?;
    let Translator { inputs, mut spec, notices, mut times, .. } = translator;
    spec.watermarks = times.remove(&output.node).unwrap_or_default();
    let types = spec.schema_of(output.node);
    let fields = named.fields().iter().zip(types.fields());
    let fields = fields
        .map(|(named, typed)| named.as_ref().clone().with_data_type(typed.data_type().clone()));
    spec.schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    spec.output = output.node;
    spec.key = output.key;
    let (inputs, marks) = inputs.into_view_inputs();
    Ok(Translated { spec, inputs, marks, notices })
}

#[expect(clippy::needless_pass_by_value, reason = "it is the function of a map_err")]
pub(super) fn user(error: DataFusionError) -> UserError {
    errors::user_error(&error, None)
}

impl<'a> Translator<'a> {
    fn new(
        plan: &LogicalPlan,
        provider: &'a CatalogProvider<'_>,
        emission: Emission,
    ) -> Result<Translator<'a>, UserError> {
        let (mut inputs, spec) = Inputs::collect(plan, provider)?;
        let times = inputs.take_times();
        Ok(Translator {
            inputs,
            spec,
            notices: BTreeSet::new(),
            looked_up: 0,
            shared: Vec::new(),
            given: Vec::new(),
            times,
            clock: None,
            emission,
        })
    }
}

impl Translator<'_> {
    fn node(&mut self, plan: &LogicalPlan) -> Result<Output, UserError> {
        if constant::is_constant(plan) && !is_empty(plan) {
            return self.constant(plan);
        }
        match plan {
            LogicalPlan::TableScan(scan) => self.scan(scan),
            LogicalPlan::Projection(projection) => self.projection(projection),
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::SubqueryAlias(alias) => self.node(&alias.input),
            // Rows of a relation have no order, so sorting them changes nothing.
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.node(&sort.input),
            LogicalPlan::Union(union) => self.union(union),
            LogicalPlan::Distinct(Distinct::All(input)) => self.distinct(input),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Window(window) => self.window(window),
            LogicalPlan::Limit(limit) => self.limit(limit),
            LogicalPlan::Unnest(unnest) => self.unnest(unnest),
            LogicalPlan::Subquery(subquery) => self.node(&subquery.subquery),
            LogicalPlan::Extension(extension) => {
                if let Some(changelog) = extension.node.as_any().downcast_ref::<Changelog>() {
                    return self.changelog(changelog);
                }
                let leaf = extension.node.as_any().downcast_ref::<Leaf>();
                let leaf = leaf.ok_or_else(|| UserError::internal("a node of nobody's"))?;
                Ok(self.given[leaf.number()].clone())
            }
            LogicalPlan::EmptyRelation(empty) if !empty.produce_one_row => {
                let schema = Arc::clone(empty.schema.inner());
                let node = self.push(OperatorSpec::UnionAll { inputs: Vec::new(), schema });
                Ok(Output { node, key: Vec::new() })
            }
            other => {
                let what = format!("{} in a query", other.display().to_string().to_lowercase());
                Err(refuse::refusal(&what, "Use a plain view: it is answered when it is read."))
            }
        }
    }

    fn scan(&mut self, scan: &TableScan) -> Result<Output, UserError> {
        assert!(
            scan.filters.is_empty() && scan.fetch.is_none(),
            "no relation takes filters or limits"
        );
        if let Some(ticks) = scan.source.downcast_ref::<TickSource>() {
            return Ok(self.ticks(ticks));
        }
        let source = scan.source.downcast_ref::<RelationSource>();
        let source = source.ok_or_else(|| UserError::internal("a scan of what is no relation"))?;
        if source.read == ReadAs::OfArrival && self.looked_up == 0 {
            let what = "FOR SYSTEM_TIME AS OF PROCTIME() anywhere but on the right side of a join";
            return Err(refuse::refusal(what, "Join the relation to one whose rows arrive."));
        }
        let wanted = inputs::scanned_columns(scan);
        let (input, places) = self.inputs.places(source.object.id, &wanted);
        if places.iter().copied().eq(0..self.spec.schema_of(input.node).fields().len()) {
            return Ok(input);
        }
        Ok(self.pick(&input, &places))
    }

    fn changelog(&mut self, changelog: &Changelog) -> Result<Output, UserError> {
        let input = self.node(&changelog.input)?.node;
        let from = self.spec.schema_of(input);
        let op = changelog.schema().fields().last().map(Arc::clone);
        let fields = from.fields().iter().map(Arc::clone).chain(op);
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let key = changelog.key.clone();
        let node = self.push(OperatorSpec::Changelog { input, key, schema });
        Ok(Output { node, key: Vec::new() })
    }

    /// The columns at `places`, and the key if all of it is among them.
    fn pick(&mut self, input: &Output, places: &[usize]) -> Output {
        let from = self.spec.schema_of(input.node);
        let expressions = places.iter().map(|place| column(&from, *place)).collect();
        let schema = Arc::new(from.project(places).expect("places are within the schema"));
        let at = |key: &usize| places.iter().position(|place| place == key);
        let key = input.key.iter().map(at).collect::<Option<Vec<_>>>().unwrap_or_default();
        Output {
            node: self.push(OperatorSpec::Project { input: input.node, expressions, schema }),
            key,
        }
    }

    fn projection(&mut self, projection: &Projection) -> Result<Output, UserError> {
        let input = self.node(&projection.input)?;
        let from = projection.input.schema();
        let places = projection.expr.iter().map(|expression| plain_column(expression, from));
        let places = places.collect::<Vec<_>>();
        let width = from.fields().len();
        if places.len() == width && places.iter().enumerate().all(|(i, place)| *place == Some(i)) {
            return Ok(input);
        }
        let expressions = projection.expr.iter().map(|expression| physical(expression, from));
        let expressions = expressions.collect::<Result<Vec<_>, _>>().map_err(user)?;
        let at = |key: &usize| places.iter().position(|place| *place == Some(*key));
        let key = input.key.iter().map(at).collect::<Option<Vec<_>>>().unwrap_or_default();
        let schema = Arc::clone(projection.schema.inner());
        Ok(Output { node: self.project(input.node, expressions, &schema)?, key })
    }

    /// A projection whose fields have the names of `named` and the types of the expressions.
    fn project(
        &mut self,
        input: Node,
        expressions: Vec<Arc<dyn PhysicalExpr>>,
        named: &SchemaRef,
    ) -> Result<Node, UserError> {
        let from = self.spec.schema_of(input);
        let fields = expressions.iter().zip(named.fields()).map(|(expression, field)| {
            let data_type = expression.data_type(&from)?;
            Ok(Field::new(field.name(), data_type, true))
        });
        let fields = fields.collect::<Result<Vec<_>, DataFusionError>>().map_err(user)?;
        let schema = Arc::new(Schema::new(fields));
        let (input, expressions) = self.without_pick(input, expressions).map_err(user)?;
        Ok(self.push(OperatorSpec::Project { input, expressions, schema }))
    }

    /// A projection right behind one that only picks columns reads what that one reads.
    fn without_pick(
        &mut self,
        input: Node,
        expressions: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<(Node, Vec<Arc<dyn PhysicalExpr>>), DataFusionError> {
        let is_last = input == Node::Operator(self.spec.operators.len().wrapping_sub(1));
        let Some(OperatorSpec::Project { input: below, expressions: picked, .. }) =
            self.spec.operators.last()
        else {
            return Ok((input, expressions));
        };
        if !is_last || self.shared.contains(&input) || !picked.iter().all(is_column) {
            return Ok((input, expressions));
        }
        let (below, picked) = (*below, picked.clone());
        let fused = expressions.into_iter().map(|expression| over_picked(expression, &picked));
        let fused = fused.collect::<Result<Vec<_>, _>>()?;
        self.spec.operators.pop();
        Ok((below, fused))
    }

    fn filter(&mut self, filter: &Filter) -> Result<Output, UserError> {
        let input = match self.bounded(filter) {
            Some(first) => first?,
            None => self.node(&filter.input)?,
        };
        let node = self.conditions(filter, input.node)?;
        Ok(Output { node, key: input.key })
    }

    fn union(&mut self, union: &Union) -> Result<Output, UserError> {
        let types = union.schema.fields().iter().map(|field| field.data_type().clone());
        let types = types.collect::<Vec<_>>();
        let mut inputs = Vec::with_capacity(union.inputs.len());
        for branch in &union.inputs {
            let output = self.node(branch)?;
            inputs.push(self.cast(output.node, &types));
        }
        let fields =
            union.schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Output { node: self.push(OperatorSpec::UnionAll { inputs, schema }), key: Vec::new() })
    }

    /// The same columns as `types`; nothing if they are of these already.
    fn cast(&mut self, input: Node, types: &[DataType]) -> Node {
        let from = self.spec.schema_of(input);
        let same = from.fields().iter().zip(types).all(|(field, to)| field.data_type() == to);
        if same {
            return input;
        }
        let columns = from.fields().iter().zip(types).enumerate();
        let expressions = columns
            .map(|(place, (field, to))| cast_to(column(&from, place), field.data_type(), to));
        let expressions = expressions.collect();
        let fields = from.fields().iter().zip(types);
        let fields = fields.map(|(field, to)| Field::new(field.name(), to.clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        self.push(OperatorSpec::Project { input, expressions, schema })
    }

    /// The result in the types that a relation holds.
    fn root(&mut self, output: Output, named: &SchemaRef) -> Output {
        let from = self.spec.schema_of(output.node);
        assert_eq!(
            from.fields().len(),
            named.fields().len(),
            "rewrites keep the columns of the result"
        );
        let types =
            from.fields().iter().map(|field| held_type(field.data_type())).collect::<Vec<_>>();
        Output { node: self.cast(output.node, &types), key: output.key }
    }
}

/// Nothing, which needs no constant.
fn is_empty(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::EmptyRelation(empty) if !empty.produce_one_row)
}

/// A column for a batch that would have none.
fn one_column() -> (Arc<dyn PhysicalExpr>, Field) {
    let one: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(ScalarValue::from(true)));
    (one, Field::new("row", DataType::Boolean, true))
}

/// The expression with each column replaced by what was picked for it.
fn over_picked(
    expression: Arc<dyn PhysicalExpr>,
    picked: &[Arc<dyn PhysicalExpr>],
) -> Result<Arc<dyn PhysicalExpr>, DataFusionError> {
    let replaced = expression.transform_down(|part| {
        Ok(match part.downcast_ref::<Column>() {
            // What was picked is a column of another schema: it must not be looked at again.
            Some(column) => {
                let picked = Arc::clone(&picked[column.index()]);
                Transformed::new(picked, true, TreeNodeRecursion::Jump)
            }
            None => Transformed::no(part),
        })
    });
    replaced.data()
}

fn is_column(expression: &Arc<dyn PhysicalExpr>) -> bool {
    expression.downcast_ref::<Column>().is_some()
}

/// The place of the column that an expression is, if it is one.
fn plain_column(expression: &Expr, schema: &DFSchema) -> Option<usize> {
    match expression {
        Expr::Column(column) => schema.index_of_column(column).ok(),
        Expr::Alias(alias) => plain_column(&alias.expr, schema),
        _ => None,
    }
}
