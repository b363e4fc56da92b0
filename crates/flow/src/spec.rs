//! A dataflow as data: numbered inputs, operators in topological order, the relation they end in.
//!
//! The planner builds one; [`crate::Dataflow::new`] makes it run. Expressions are DataFusion's; everything
//! else refers to columns by number, so that arguments and keys are computed by a projection before.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::physical_expr::PhysicalExpr;

use crate::program::Program;

/// One object's dataflow.
#[derive(Clone, Debug)]
pub struct DataflowSpec {
    pub inputs: Vec<InputSpec>,
    /// Each refers only to inputs and to operators before it.
    pub operators: Vec<OperatorSpec>,
    /// Whose output the relation holds.
    pub output: Node,
    /// The relation's columns: the output's types under the user's names.
    pub schema: SchemaRef,
    /// Columns that hold at most one row per value; empty when nothing is promised.
    pub key: Vec<usize>,
    /// Columns of the relation whose times come to an end.
    pub watermarks: Vec<ColumnWatermark>,
}

/// A watermark of a column of the relation: no row changes any more whose time it has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnWatermark {
    pub column: usize,
    /// Delivers the watermark.
    pub node: Node,
}

/// What an operator reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    Input(usize),
    Operator(usize),
}

/// One numbered input.
#[derive(Clone, Debug)]
pub struct InputSpec {
    pub schema: SchemaRef,
    pub kind: InputKind,
}

/// What may arrive at an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputKind {
    /// Rows are only added.
    AppendOnly,
    /// Whole rows are added and taken back.
    Changelog,
    /// Rows are put and removed by key; must feed [`OperatorSpec::Normalise`] and nothing else.
    ByKey,
}

/// An operator and what it reads.
#[derive(Clone, Debug)]
pub enum OperatorSpec {
    /// One expression per output column.
    Project { input: Node, expressions: Vec<Arc<dyn PhysicalExpr>>, schema: SchemaRef },
    /// Rows for which the predicate is true.
    Filter { input: Node, predicate: Arc<dyn PhysicalExpr> },
    /// All rows of all inputs, which agree in their types.
    UnionAll { inputs: Vec<Node>, schema: SchemaRef },
    /// Changes by key become removals of the old row and additions of the new one.
    Normalise { input: usize, key: Vec<usize>, conflict: Conflict },
    /// GROUP BY; without aggregates it is DISTINCT, without keys it has exactly one row.
    /// Output: the keys in order, then the aggregates.
    Aggregate { input: Node, keys: Vec<usize>, aggregates: Vec<AggregateSpec>, schema: SchemaRef },
    /// Output: the columns of both sides, of the left one, or of the left one and a mark, as the kind says.
    Join { left: Node, right: Node, join: JoinSpec, schema: SchemaRef },
    /// The temporal join: rows of the left side, each with what the right side held when it arrived.
    Lookup { left: Node, right: Node, join: JoinSpec, schema: SchemaRef },
    /// What the program makes of its inputs, computed again for each partition that changes. The columns
    /// `key` of the output are those by which its inputs are partitioned.
    Recompute {
        inputs: Vec<PartitionedInput>,
        program: Arc<dyn Program>,
        key: Vec<usize>,
        schema: SchemaRef,
        /// What is recomputed, for plans and errors.
        what: String,
    },
    /// The first rows of each partition.
    TopN { input: Node, top: TopNSpec, schema: SchemaRef },
    /// Rows that are part of the plan.
    Constant { rows: RecordBatch },
    /// A row for each item of the lists in these columns, which go together.
    Unnest { input: Node, lists: Vec<usize>, schema: SchemaRef },
    /// What its input changed, as rows that stay: its columns and what the row did. Rows of one key in a step are an
    /// update.
    Changelog { input: Node, key: Vec<usize>, schema: SchemaRef },
    /// A watermark, or a clock, that arrives as [`crate::Mark`]s.
    Watermark { input: Node, schema: SchemaRef },
    /// The least of several watermarks.
    LeastWatermark { inputs: Vec<Node>, schema: SchemaRef },
    /// The rows whose time in `column` the watermark has not passed when they come.
    DropLate { input: Node, watermark: Node, column: usize },
    /// The rows, once the watermark has passed their time in `column`.
    Withhold { input: Node, watermark: Node, column: usize },
    /// A time every step from the start on, each when the clock has come to it.
    Ticks { clock: Node, start_us: i64, step_us: i64, schema: SchemaRef },
    /// The rows as they come, of which none is ever taken back.
    Settled { input: Node },
    /// An aggregate of which the key at `window` is a time: state that the watermark has passed goes, results stay.
    WindowedAggregate {
        input: Node,
        watermark: Node,
        window: usize,
        keys: Vec<usize>,
        aggregates: Vec<AggregateSpec>,
        schema: SchemaRef,
    },
    /// A join, a top-n or a recomputation whose rows go once the watermark has passed their end; what was put out
    /// stays.
    Forgetting {
        operator: Box<OperatorSpec>,
        watermark: Node,
        /// By input of the operator.
        ends: Vec<Option<End>>,
    },
    /// The rows that are shown at the time of the clock.
    Temporal { input: Node, clock: Node, column: usize, shown: Shown },
}

/// When rows are of no use any more: once the watermark has passed their time in `column` by this much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub column: usize,
    pub later_us: i64,
}

/// When a row is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shown {
    /// From its time on.
    From,
    /// Before its time.
    Until,
}

/// Which rows [`OperatorSpec::TopN`] shows.
#[derive(Clone, Debug)]
pub struct TopNSpec {
    pub partition: Vec<usize>,
    pub order: Vec<SortColumn>,
    pub skip: usize,
    /// `None`: all that follow.
    pub fetch: Option<usize>,
    pub numbers: RowNumbers,
}

/// A column to order by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortColumn {
    pub column: usize,
    pub options: SortOptions,
}

/// Whether rows carry their place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowNumbers {
    None,
    /// As a last column, from 1.
    Last,
}

/// An input of [`OperatorSpec::Recompute`]: rows that agree in `key` are computed together.
#[derive(Clone, Debug)]
pub struct PartitionedInput {
    pub node: Node,
    pub key: Vec<usize>,
}

/// How two sides meet: where their keys are equal and the residual condition, over both sides' columns, is true.
#[derive(Clone, Debug)]
pub struct JoinSpec {
    pub kind: JoinKind,
    pub left_key: Vec<usize>,
    pub right_key: Vec<usize>,
    pub null_keys: NullKeys,
    pub residual: Option<Arc<dyn PhysicalExpr>>,
}

/// What a join puts out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JoinKind {
    /// Pairs.
    Inner,
    /// Pairs, and left rows that meet nothing.
    Left,
    /// Pairs, and rows of both sides that meet nothing.
    Full,
    /// Left rows that meet something.
    Semi,
    /// Left rows that meet nothing.
    Anti,
    /// All left rows, and whether they meet something.
    Mark,
}

/// What a key with a NULL in it meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NullKeys {
    /// Nothing, as with `=`.
    MeetNothing,
    /// The same key, as with IS NOT DISTINCT FROM.
    MeetNull,
}

impl JoinKind {
    /// Lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            JoinKind::Inner => "inner join",
            JoinKind::Left => "left join",
            JoinKind::Full => "full join",
            JoinKind::Semi => "semi join",
            JoinKind::Anti => "anti join",
            JoinKind::Mark => "mark join",
        }
    }
}

/// What a row does where its key exists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Conflict {
    Overwrite,
    /// Nothing, if it is inserted; a put overwrites.
    DoNothing,
    /// What is there and what comes, inserted or put, become one row.
    Resolve(Resolution),
}

/// How two rows of one key become one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resolution {
    pub nulls: Nulls,
    /// Columns that say which row is newer, compared in their order; empty where the one that comes later is.
    pub versions: Vec<usize>,
}

/// What NULL in a newer row means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nulls {
    Replace,
    /// The column stays as it was.
    KeepFormer,
}

/// One aggregate over a column of the input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AggregateSpec {
    pub function: AggregateFunction,
    /// `None` only for COUNT(*).
    pub argument: Option<usize>,
    /// A boolean column: rows where it is not true do not count.
    pub filter: Option<usize>,
}

/// The aggregates that can be maintained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    Count,
    Sum,
    Avg,
    Min,
    Max,
}

impl AggregateFunction {
    /// Lower-case SQL name.
    pub fn name(self) -> &'static str {
        match self {
            AggregateFunction::Count => "count",
            AggregateFunction::Sum => "sum",
            AggregateFunction::Avg => "avg",
            AggregateFunction::Min => "min",
            AggregateFunction::Max => "max",
        }
    }

    /// Whether it is MIN or MAX.
    pub fn is_extremum(self) -> bool {
        matches!(self, AggregateFunction::Min | AggregateFunction::Max)
    }

    /// PostgreSQL's result type, or `None` when there is no such aggregate. `numeric` has at most 38 digits here;
    /// AVG of integers has 16 of them after the point, as PostgreSQL prints it for small values.
    pub fn result_type(self, argument: &DataType) -> Option<DataType> {
        use DataType::{
            Decimal128, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64,
        };
        Some(match self {
            AggregateFunction::Count => Int64,
            AggregateFunction::Sum => match argument {
                Int8 | Int16 | Int32 | UInt8 | UInt16 => Int64,
                Int64 | UInt32 | UInt64 => Decimal128(38, 0),
                Decimal128(_, scale) => Decimal128(38, *scale),
                Float32 => Float32,
                Float64 => Float64,
                _ => return None,
            },
            AggregateFunction::Avg => match argument {
                Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => {
                    Decimal128(38, 16)
                }
                Decimal128(precision, scale) => Decimal128(38, average_scale(*precision, *scale)),
                Float32 | Float64 => Float64,
                _ => return None,
            },
            AggregateFunction::Min | AggregateFunction::Max => {
                crate::aggregate::is_ordered(argument).then(|| argument.clone())?
            }
        })
    }
}

/// As many as 16 digits after the point, but never so many that the integral part of the argument loses room.
fn average_scale(precision: u8, scale: i8) -> i8 {
    let integral = i16::from(precision) - i16::from(scale);
    let room = i8::try_from(38 - integral).expect("a precision is at most 38");
    scale.max(room.min(16))
}

impl DataflowSpec {
    /// The dataflow of a table: rows as they were written, by key if it has one.
    pub fn table(
        schema: SchemaRef,
        key: Vec<usize>,
        conflict: Conflict,
        kind: InputKind,
    ) -> DataflowSpec {
        let keyed = !key.is_empty();
        let kind = if keyed { InputKind::ByKey } else { kind };
        assert!(keyed || kind != InputKind::ByKey, "rows cannot be put by a key that is not there");
        let normalise = OperatorSpec::Normalise { input: 0, key: key.clone(), conflict };
        DataflowSpec {
            inputs: vec![InputSpec { schema: Arc::clone(&schema), kind }],
            operators: if keyed { vec![normalise] } else { Vec::new() },
            output: if keyed { Node::Operator(0) } else { Node::Input(0) },
            schema,
            key,
            watermarks: Vec::new(),
        }
    }

    /// Adds an input that is told how far the watermark of a column of the relation has come.
    pub fn watch(&mut self, column: usize) {
        let schema = crate::mark::mark_schema(self.schema.field(column).data_type());
        self.inputs.push(InputSpec { schema: Arc::clone(&schema), kind: InputKind::AppendOnly });
        let input = Node::Input(self.inputs.len() - 1);
        self.operators.push(OperatorSpec::Watermark { input, schema });
        let node = Node::Operator(self.operators.len() - 1);
        self.watermarks.push(ColumnWatermark { column, node });
    }

    /// Whether some operator computes whole partitions again when a row of theirs changes.
    pub fn recomputes(&self) -> bool {
        self.operators
            .iter()
            .any(|operator| matches!(operator.lasting(), OperatorSpec::Recompute { .. }))
    }

    /// The inputs in the order in which they have to be filled: what a temporal join looks up is there before the rows
    /// that look it up.
    pub fn fill_order(&self) -> Vec<usize> {
        let mut first = vec![false; self.inputs.len()];
        for operator in &self.operators {
            if let OperatorSpec::Lookup { right, .. } = operator {
                self.inputs_below(*right).into_iter().for_each(|input| first[input] = true);
            }
        }
        let mut order = (0..self.inputs.len()).collect::<Vec<_>>();
        order.sort_by_key(|input| !first[*input]);
        order
    }

    fn inputs_below(&self, node: Node) -> Vec<usize> {
        match node {
            Node::Input(input) => vec![input],
            Node::Operator(place) => {
                let inputs = self.operators[place].inputs().into_iter();
                inputs.flat_map(|node| self.inputs_below(node)).collect()
            }
        }
    }

    /// The schema of what a node delivers.
    pub fn schema_of(&self, node: Node) -> SchemaRef {
        match node {
            Node::Input(input) => Arc::clone(&self.inputs[input].schema),
            Node::Operator(operator) => match self.operators[operator].lasting() {
                OperatorSpec::Project { schema, .. }
                | OperatorSpec::UnionAll { schema, .. }
                | OperatorSpec::Aggregate { schema, .. }
                | OperatorSpec::Join { schema, .. }
                | OperatorSpec::Lookup { schema, .. }
                | OperatorSpec::Recompute { schema, .. }
                | OperatorSpec::Ticks { schema, .. }
                | OperatorSpec::TopN { schema, .. }
                | OperatorSpec::Watermark { schema, .. }
                | OperatorSpec::LeastWatermark { schema, .. }
                | OperatorSpec::WindowedAggregate { schema, .. }
                | OperatorSpec::Changelog { schema, .. }
                | OperatorSpec::Unnest { schema, .. } => Arc::clone(schema),
                OperatorSpec::Forgetting { .. } => unreachable!("none is inside another"),
                OperatorSpec::Constant { rows } => rows.schema(),
                OperatorSpec::Filter { input, .. }
                | OperatorSpec::DropLate { input, .. }
                | OperatorSpec::Settled { input }
                | OperatorSpec::Withhold { input, .. }
                | OperatorSpec::Temporal { input, .. } => self.schema_of(*input),
                OperatorSpec::Normalise { input, .. } => Arc::clone(&self.inputs[*input].schema),
            },
        }
    }

    /// Whether a node only ever adds rows.
    pub fn is_append_only(&self, node: Node) -> bool {
        match node {
            Node::Input(input) => self.inputs[input].kind == InputKind::AppendOnly,
            Node::Operator(operator) => match self.operators[operator].lasting() {
                OperatorSpec::Normalise { .. }
                | OperatorSpec::Recompute { .. }
                | OperatorSpec::Temporal { shown: Shown::Until, .. }
                | OperatorSpec::TopN { .. } => false,
                // What is put out is never taken back.
                OperatorSpec::Withhold { .. }
                | OperatorSpec::Changelog { .. }
                | OperatorSpec::Settled { .. } => true,
                OperatorSpec::Join { left, right, join, .. } => match join.kind {
                    JoinKind::Inner | JoinKind::Semi => {
                        self.is_append_only(*left) && self.is_append_only(*right)
                    }
                    JoinKind::Left | JoinKind::Full | JoinKind::Anti | JoinKind::Mark => false,
                },
                OperatorSpec::Lookup { left, .. } => self.is_append_only(*left),
                // A group of an append-only input never dies, and without aggregates it never changes.
                OperatorSpec::Aggregate { input, aggregates, .. }
                | OperatorSpec::WindowedAggregate { input, aggregates, .. } => {
                    aggregates.is_empty() && self.is_append_only(*input)
                }
                other => other.inputs().iter().all(|input| self.is_append_only(*input)),
            },
        }
    }

    /// Whether a node's delta of one step never holds a row twice.
    pub(crate) fn is_consolidated(&self, node: Node) -> bool {
        match node {
            Node::Input(_) => self.is_append_only(node),
            Node::Operator(operator) => match self.operators[operator].lasting() {
                OperatorSpec::Normalise { .. }
                | OperatorSpec::Aggregate { .. }
                | OperatorSpec::Recompute { .. }
                | OperatorSpec::Withhold { .. }
                | OperatorSpec::WindowedAggregate { .. }
                | OperatorSpec::Temporal { .. }
                | OperatorSpec::Ticks { .. }
                | OperatorSpec::TopN { .. } => true,
                OperatorSpec::Filter { input, .. }
                | OperatorSpec::Settled { input }
                | OperatorSpec::DropLate { input, .. } => self.is_consolidated(*input),
                OperatorSpec::Project { .. }
                | OperatorSpec::UnionAll { .. }
                | OperatorSpec::Join { .. }
                | OperatorSpec::Lookup { .. }
                | OperatorSpec::Constant { .. }
                | OperatorSpec::Watermark { .. }
                | OperatorSpec::LeastWatermark { .. }
                | OperatorSpec::Changelog { .. }
                | OperatorSpec::Forgetting { .. }
                | OperatorSpec::Unnest { .. } => self.is_append_only(node),
            },
        }
    }
}

impl OperatorSpec {
    /// What it reads, in order.
    pub fn inputs(&self) -> Vec<Node> {
        match self {
            OperatorSpec::Project { input, .. }
            | OperatorSpec::Filter { input, .. }
            | OperatorSpec::Aggregate { input, .. }
            | OperatorSpec::TopN { input, .. }
            | OperatorSpec::Watermark { input, .. }
            | OperatorSpec::Changelog { input, .. }
            | OperatorSpec::Settled { input }
            | OperatorSpec::Unnest { input, .. } => vec![*input],
            OperatorSpec::DropLate { input, watermark, .. }
            | OperatorSpec::Withhold { input, watermark, .. }
            | OperatorSpec::WindowedAggregate { input, watermark, .. } => {
                vec![*input, *watermark]
            }
            OperatorSpec::Temporal { input, clock, .. } => vec![*input, *clock],
            OperatorSpec::Ticks { clock, .. } => vec![*clock],
            OperatorSpec::Forgetting { operator, watermark, .. } => {
                operator.inputs().into_iter().chain([*watermark]).collect()
            }
            OperatorSpec::Join { left, right, .. } | OperatorSpec::Lookup { left, right, .. } => {
                vec![*left, *right]
            }
            OperatorSpec::Recompute { inputs, .. } => {
                inputs.iter().map(|input| input.node).collect()
            }
            OperatorSpec::Constant { .. } => Vec::new(),
            OperatorSpec::UnionAll { inputs, .. } | OperatorSpec::LeastWatermark { inputs, .. } => {
                inputs.clone()
            }
            OperatorSpec::Normalise { input, .. } => vec![Node::Input(*input)],
        }
    }

    /// The operator itself, where another forgets its rows.
    pub fn lasting(&self) -> &OperatorSpec {
        match self {
            OperatorSpec::Forgetting { operator, .. } => operator,
            lasting => lasting,
        }
    }

    /// Its name in `segue.operators` and in plans.
    pub fn name(&self) -> &'static str {
        match self.lasting() {
            OperatorSpec::Forgetting { .. } => unreachable!("none is inside another"),
            OperatorSpec::Project { .. } => "project",
            OperatorSpec::Filter { .. } => "filter",
            OperatorSpec::UnionAll { .. } => "union all",
            OperatorSpec::Normalise { .. } => "normalise",
            OperatorSpec::Aggregate { aggregates, .. }
            | OperatorSpec::WindowedAggregate { aggregates, .. }
                if aggregates.is_empty() =>
            {
                "distinct"
            }
            OperatorSpec::Aggregate { .. } | OperatorSpec::WindowedAggregate { .. } => "aggregate",
            OperatorSpec::Join { join, .. } => join.kind.name(),
            OperatorSpec::Lookup { .. } => "temporal join",
            OperatorSpec::Recompute { .. } => "recompute",
            OperatorSpec::TopN { .. } => "top n",
            OperatorSpec::Constant { .. } => "constant",
            OperatorSpec::Unnest { .. } => "unnest",
            OperatorSpec::Changelog { .. } => "changelog",
            OperatorSpec::Watermark { .. } => "watermark",
            OperatorSpec::LeastWatermark { .. } => "least watermark",
            OperatorSpec::DropLate { .. } => "drop late",
            OperatorSpec::Settled { .. } => "settled",
            OperatorSpec::Withhold { .. } => "emit on window close",
            OperatorSpec::Temporal { .. } => "temporal filter",
            OperatorSpec::Ticks { .. } => "ticks",
        }
    }
}
