//! Joins: keys and residual conditions to the join operator, which knows left, full, semi, anti and mark joins.
//!
//! A side is a node in held types with the computed keys as further columns. What the operator puts out is picked and
//! cast back to the logical columns. A right join is a left one with its sides exchanged. NOT IN is three anti joins:
//! against what is equal, against a NULL among the values, and for a NULL by itself against there being any value.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, JoinType, NullEquality};
use datafusion::logical_expr::{Expr, Join, LogicalPlan};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, IsNullExpr, Literal};
use segue_flow::{JoinKind, JoinSpec, Node, NullKeys, OperatorSpec};
use segue_types::UserError;

use super::super::errors::type_name;
use super::super::physical::{cast_to, column, held_type, physical};
use super::super::refuse::refusal;
use super::{Output, Translator, plain_column, user};

/// One side, ready for the operator.
pub(super) struct Side {
    pub(super) node: Node,
    /// The logical columns' types; they come first.
    pub(super) logical: Vec<DataType>,
    pub(super) key: Vec<usize>,
    /// Columns that hold at most one row per value.
    pub(super) unique: Vec<usize>,
}

impl Side {
    pub(super) fn width(&self) -> usize {
        self.logical.len()
    }

    /// Whether at most one row of this side has a given key.
    fn is_unique_by_key(&self) -> bool {
        !self.unique.is_empty() && self.unique.iter().all(|column| self.key.contains(column))
    }
}

impl Translator<'_> {
    pub(super) fn join(&mut self, join: &Join) -> Result<Output, UserError> {
        let (kind, exchanged) = match join.join_type {
            JoinType::Inner => (JoinKind::Inner, false),
            JoinType::Left => (JoinKind::Left, false),
            JoinType::Right => (JoinKind::Left, true),
            JoinType::Full => (JoinKind::Full, false),
            JoinType::LeftSemi => (JoinKind::Semi, false),
            JoinType::RightSemi => (JoinKind::Semi, true),
            JoinType::LeftAnti => (JoinKind::Anti, false),
            JoinType::RightAnti => (JoinKind::Anti, true),
            JoinType::LeftMark => (JoinKind::Mark, false),
            JoinType::RightMark => (JoinKind::Mark, true),
        };
        if join.null_aware {
            return self.not_in(join);
        }
        let left_keys = join.on.iter().map(|(left, _)| left).collect::<Vec<_>>();
        let right_keys = join.on.iter().map(|(_, right)| right).collect::<Vec<_>>();
        let mut left = (&*join.left, self.side(&join.left, &left_keys)?);
        let is_temporal = super::temporal::is_temporal(&join.right);
        self.looked_up += usize::from(is_temporal);
        let mut right = (&*join.right, self.side(&join.right, &right_keys)?);
        self.looked_up -= usize::from(is_temporal);
        if exchanged {
            std::mem::swap(&mut left, &mut right);
        }
        let residual = join.filter.as_ref();
        let residual =
            residual.map(|filter| self.residual(filter, (left.0, &left.1), (right.0, &right.1)));
        let spec = JoinSpec {
            kind,
            left_key: left.1.key.clone(),
            right_key: right.1.key.clone(),
            null_keys: match join.null_equality {
                NullEquality::NullEqualsNothing => NullKeys::MeetNothing,
                NullEquality::NullEqualsNull => NullKeys::MeetNull,
            },
            residual: residual.transpose()?,
        };
        self.check_keys(&left.1, &right.1)?;
        let asks_whether = matches!(kind, JoinKind::Semi | JoinKind::Anti | JoinKind::Mark);
        if asks_whether && spec.left_key.is_empty() && spec.residual.is_none() {
            // Whether there is any row at all: one stands for all.
            right.1 = self.any(right.1.node);
        }
        let node = if is_temporal {
            self.lookup(kind, exchanged, &left.1, &right.1, spec)?
        } else {
            self.push_join(&left.1, &right.1, spec)
        };
        Ok(self.picked(node, kind, exchanged, &left.1, &right.1))
    }

    /// The node of `plan` in held types, with the keys among its columns.
    fn side(&mut self, plan: &LogicalPlan, keys: &[&Expr]) -> Result<Side, UserError> {
        let output = self.node(plan)?;
        let from = self.spec.schema_of(output.node);
        let logical = from.fields().iter().map(|field| field.data_type().clone());
        let logical = logical.collect::<Vec<_>>();
        let mut columns = Vec::with_capacity(logical.len() + keys.len());
        for (place, field) in from.fields().iter().enumerate() {
            let held = held_type(field.data_type());
            let expression = cast_to(column(&from, place), field.data_type(), &held);
            columns.push((expression, Field::new(field.name(), held, true)));
        }
        let mut key = Vec::with_capacity(keys.len());
        for expression in keys {
            if let Some(place) = plain_column(expression, plan.schema()) {
                key.push(place);
                continue;
            }
            let planned = physical(expression, plan.schema()).map_err(user)?;
            let data_type = planned.data_type(&from).map_err(user)?;
            let held = held_type(&data_type);
            key.push(columns.len());
            let name = expression.schema_name().to_string();
            columns.push((cast_to(planned, &data_type, &held), Field::new(name, held, true)));
        }
        if columns.is_empty() {
            columns.push(super::one_column());
        }
        let node = self.columns(output.node, columns);
        Ok(Side { node, logical, key, unique: output.key })
    }

    /// A projection to these columns, nothing if they are those that are there.
    pub(super) fn columns(
        &mut self,
        input: Node,
        columns: Vec<(Arc<dyn PhysicalExpr>, Field)>,
    ) -> Node {
        let width = self.spec.schema_of(input).fields().len();
        let same = columns.len() == width
            && columns.iter().enumerate().all(|(place, (expression, _))| {
                expression.downcast_ref::<Column>().is_some_and(|column| column.index() == place)
            });
        if same {
            return input;
        }
        let (expressions, fields): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let schema = Arc::new(Schema::new(fields));
        self.push(OperatorSpec::Project { input, expressions, schema })
    }

    fn check_keys(&self, left: &Side, right: &Side) -> Result<(), UserError> {
        let types = |side: &Side| {
            let schema = self.spec.schema_of(side.node);
            side.key.iter().map(|key| schema.field(*key).data_type().clone()).collect::<Vec<_>>()
        };
        for (left, right) in types(left).iter().zip(types(right)) {
            if *left != right {
                let what = format!("a join of {} with {}", type_name(left), type_name(&right));
                return Err(refusal(&what, "Cast one side to the type of the other."));
            }
        }
        Ok(())
    }

    /// The residual condition over the operator's columns of both sides.
    fn residual(
        &self,
        filter: &Expr,
        left: (&LogicalPlan, &Side),
        right: (&LogicalPlan, &Side),
    ) -> Result<Arc<dyn PhysicalExpr>, UserError> {
        let schema = left.0.schema().join(right.0.schema()).map_err(user)?;
        let planned = physical(filter, &schema).map_err(user)?;
        let left_schema = self.spec.schema_of(left.1.node);
        let right_schema = self.spec.schema_of(right.1.node);
        let at = |place: usize| match place.checked_sub(left.1.width()) {
            None => (place, left_schema.field(place).data_type(), &left.1.logical[place]),
            Some(place) => {
                let held = right_schema.field(place).data_type();
                (left_schema.fields().len() + place, held, &right.1.logical[place])
            }
        };
        let moved = planned.transform_up(|part| {
            Ok(match part.downcast_ref::<Column>() {
                Some(column) => {
                    let (place, held, logical) = at(column.index());
                    let moved: Arc<dyn PhysicalExpr> = Arc::new(Column::new(column.name(), place));
                    Transformed::new(
                        cast_to(moved, held, logical),
                        true,
                        datafusion::common::tree_node::TreeNodeRecursion::Jump,
                    )
                }
                None => Transformed::no(part),
            })
        });
        moved.data().map_err(|error: DataFusionError| user(error))
    }

    fn join_schema(&self, left: &Side, right: &Side, kind: JoinKind) -> SchemaRef {
        let schemas = [self.spec.schema_of(left.node), self.spec.schema_of(right.node)];
        let mut fields = schemas[0].fields().to_vec();
        match kind {
            JoinKind::Inner | JoinKind::Left | JoinKind::Full => {
                fields.extend(schemas[1].fields().iter().cloned());
            }
            JoinKind::Mark => fields.push(Arc::new(Field::new("mark", DataType::Boolean, true))),
            JoinKind::Semi | JoinKind::Anti => {}
        }
        let nullable = fields.iter().map(|field| field.as_ref().clone().with_nullable(true));
        Arc::new(Schema::new(nullable.collect::<Vec<_>>()))
    }

    pub(super) fn push_join(&mut self, left: &Side, right: &Side, join: JoinSpec) -> Node {
        let schema = self.join_schema(left, right, join.kind);
        if left.key.is_empty() && right.key.is_empty() && !self.is_one_row(right.node) {
            self.notices.insert(
                "a join without an equality compares every row of one side with every row of the other"
                    .to_owned(),
            );
        }
        self.push(OperatorSpec::Join { left: left.node, right: right.node, join, schema })
    }

    fn lookup(
        &mut self,
        kind: JoinKind,
        exchanged: bool,
        left: &Side,
        right: &Side,
        join: JoinSpec,
    ) -> Result<Node, UserError> {
        if exchanged || !matches!(kind, JoinKind::Inner | JoinKind::Left) {
            let hint = "Make it an inner or a left join.";
            return Err(refusal("a temporal join other than INNER and LEFT", hint));
        }
        let schema = self.join_schema(left, right, kind);
        Ok(self.push(OperatorSpec::Lookup { left: left.node, right: right.node, join, schema }))
    }

    /// The logical columns out of what the operator puts out.
    fn picked(
        &mut self,
        node: Node,
        kind: JoinKind,
        exchanged: bool,
        left: &Side,
        right: &Side,
    ) -> Output {
        let from = self.spec.schema_of(node);
        let left_width = self.spec.schema_of(left.node).fields().len();
        let of_left = (0..left.width()).map(|place| (place, left.logical[place].clone()));
        let of_right =
            (0..right.width()).map(|place| (left_width + place, right.logical[place].clone()));
        let places: Vec<(usize, DataType)> = match (kind, exchanged) {
            (JoinKind::Semi | JoinKind::Anti, _) => of_left.collect(),
            (JoinKind::Mark, _) => of_left.chain([(left_width, DataType::Boolean)]).collect(),
            (_, false) => of_left.chain(of_right).collect(),
            (_, true) => of_right.chain(of_left).collect(),
        };
        let unique = unique_of(kind, left, right, left_width);
        let at = |column: &usize| places.iter().position(|(place, _)| place == column);
        let key = unique.iter().map(at).collect::<Option<Vec<_>>>().unwrap_or_default();
        let columns = places.iter().map(|(place, logical)| {
            let field = from.field(*place);
            let expression = cast_to(column(&from, *place), field.data_type(), logical);
            (expression, Field::new(field.name(), logical.clone(), true))
        });
        let columns = columns.collect();
        Output { node: self.columns(node, columns), key }
    }

    /// `a NOT IN (SELECT b …)`, where a NULL on either side makes the answer unknown.
    fn not_in(&mut self, join: &Join) -> Result<Output, UserError> {
        let ([(value, among)], None) = (join.on.as_slice(), &join.filter) else {
            let hint = "Use NOT EXISTS.";
            return Err(refusal("a NOT IN whose subquery refers to the query around it", hint));
        };
        let mut left = self.side(&join.left, &[value])?;
        let right = self.side(&join.right, &[among])?;
        self.check_keys(&left, &right)?;
        let anti = |left_key: Vec<usize>, right_key, residual| JoinSpec {
            kind: JoinKind::Anti,
            left_key,
            right_key,
            null_keys: NullKeys::MeetNothing,
            residual,
        };
        let (value, among) = (left.key[0], right.key[0]);
        let value_column = column(&self.spec.schema_of(left.node), value);
        let among_column = column(&self.spec.schema_of(right.node), among);
        left.node = self.push_join(&left, &right, anti(vec![value], vec![among], None));
        let predicate = Arc::new(IsNullExpr::new(among_column));
        let nulls = self.push(OperatorSpec::Filter { input: right.node, predicate });
        let nulls = self.any(nulls);
        left.node = self.push_join(&left, &nulls, anti(Vec::new(), Vec::new(), None));
        let some = self.any(right.node);
        let alone: Arc<dyn PhysicalExpr> = Arc::new(IsNullExpr::new(value_column));
        left.node = self.push_join(&left, &some, anti(Vec::new(), Vec::new(), Some(alone)));
        let node = left.node;
        Ok(self.picked(node, JoinKind::Anti, false, &left, &some))
    }

    /// One row if there is any.
    fn any(&mut self, input: Node) -> Side {
        let input = self.columns(input, vec![super::one_column()]);
        let schema = self.spec.schema_of(input);
        let aggregates = Vec::new();
        let node = self.push(OperatorSpec::Aggregate { input, keys: vec![0], aggregates, schema });
        Side { node, logical: vec![DataType::Boolean], key: Vec::new(), unique: Vec::new() }
    }

    /// Whether a node has at most one row, whatever its input.
    fn is_one_row(&self, node: Node) -> bool {
        let Node::Operator(place) = node else { return false };
        match &self.spec.operators[place] {
            OperatorSpec::Project { input, .. } => self.is_one_row(*input),
            OperatorSpec::Filter { input, .. } => self.is_one_row(*input),
            OperatorSpec::Aggregate { input, keys, aggregates, .. } => {
                keys.is_empty() || aggregates.is_empty() && self.is_constant(*input)
            }
            OperatorSpec::Constant { rows } => rows.num_rows() <= 1,
            _ => false,
        }
    }

    /// Whether all columns of a node are literals.
    fn is_constant(&self, node: Node) -> bool {
        let Node::Operator(place) = node else { return false };
        match &self.spec.operators[place] {
            OperatorSpec::Project { expressions, .. } => {
                expressions.iter().all(|expression| expression.downcast_ref::<Literal>().is_some())
            }
            _ => false,
        }
    }
}

/// The operator's columns that hold at most one row per value.
fn unique_of(kind: JoinKind, left: &Side, right: &Side, left_width: usize) -> Vec<usize> {
    let of_right = || right.unique.iter().map(|column| left_width + column);
    match kind {
        JoinKind::Semi | JoinKind::Anti | JoinKind::Mark => left.unique.clone(),
        // Rows that meet nothing have NULLs on either side, and so might be taken for one another.
        JoinKind::Full => Vec::new(),
        JoinKind::Inner | JoinKind::Left if right.is_unique_by_key() => left.unique.clone(),
        JoinKind::Inner if left.is_unique_by_key() => of_right().collect(),
        JoinKind::Inner | JoinKind::Left => match (left.unique.is_empty(), right.unique.is_empty())
        {
            (false, false) => left.unique.iter().copied().chain(of_right()).collect(),
            _ => Vec::new(),
        },
    }
}
