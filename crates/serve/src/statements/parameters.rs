//! `$1`, `$2` …: which there are, what types they have, and their values in a plan.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::prelude::Expr as PlanExpr;
use postgres_types::Type;
use segue_types::{SqlState, SqlType, UserError, sql_type_of};
use sqlparser::ast::{self, CastKind, Expr, LimitClause, Value, VisitMut, VisitorMut};

use crate::errors::user_error;
use crate::plan::Planner;
use crate::prepared::Parameter;

/// Types by 1-based number.
pub(super) type Types = BTreeMap<usize, SqlType>;

/// The number of a placeholder.
pub(super) fn placeholder(expr: &Expr) -> Option<usize> {
    let Expr::Value(value) = expr else { return None };
    let Value::Placeholder(name) = &value.value else { return None };
    name.strip_prefix('$')?.parse().ok().filter(|number| *number > 0)
}

/// How many parameters a statement has: the greatest number that it names.
pub(super) fn count(statement: &ast::Statement) -> usize {
    let mut greatest = 0;
    let _: ControlFlow<()> = ast::visit_expressions(statement, |expr| {
        greatest = greatest.max(placeholder(expr).unwrap_or(0));
        ControlFlow::Continue(())
    });
    greatest
}

/// `CAST($n AS type)` for every placeholder that has a type here.
pub(super) fn with_types(statement: &mut ast::Statement, types: &Types) {
    let _: ControlFlow<()> = ast::visit_expressions_mut(statement, |expr| {
        if let Some(ty) = placeholder(expr).and_then(|number| types.get(&number)) {
            cast(expr, ty);
        }
        ControlFlow::Continue(())
    });
}

/// Wraps an expression in a cast.
pub(super) fn cast(expr: &mut Expr, ty: &SqlType) {
    let inner = std::mem::replace(expr, Expr::value(Value::Null));
    *expr = Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(inner),
        data_type: ast_type(ty),
        array: false,
        format: None,
    };
}

/// A type as the parser writes it.
fn ast_type(ty: &SqlType) -> ast::DataType {
    segue_sql::parse_data_type(&ty.to_string()).map_or(ast::DataType::Text, |ty| *ty.tree)
}

/// LIMIT and OFFSET take whole numbers, which the planner does not infer. Collects the placeholders there.
#[derive(Default)]
struct Limits(Vec<usize>);

impl VisitorMut for Limits {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause {
            let exprs = limit.iter_mut().chain(offset.iter_mut().map(|offset| &mut offset.value));
            for expr in exprs {
                if let Some(number) = placeholder(expr) {
                    self.0.push(number);
                    cast(expr, &SqlType::BigInt);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// What the client said of the parameters' types, and `oid` and `oid[]` for those that are cast to them, which are no
/// types of columns.
pub(super) fn with_oids(query: &ast::Query, client_oids: &[u32]) -> Vec<u32> {
    let mut oids = client_oids.to_vec();
    let mut query = query.clone();
    let _: ControlFlow<()> = ast::visit_expressions_mut(&mut query, |expr| {
        if let Expr::Cast { expr, data_type, .. } = expr
            && let Some(number) = placeholder(expr)
        {
            let oid = match data_type.to_string().to_ascii_lowercase().as_str() {
                "oid" => Type::OID.oid(),
                "oid[]" => Type::OID_ARRAY.oid(),
                _ => return ControlFlow::Continue(()),
            };
            oids.resize(oids.len().max(number), 0);
            if oids[number - 1] == 0 {
                oids[number - 1] = oid;
            }
        }
        ControlFlow::Continue(())
    });
    oids
}

/// The parameters of a statement that needs no plan to know them all.
pub(super) fn agree(types: &Types, client_oids: &[u32]) -> Vec<Parameter> {
    let count = types.keys().next_back().copied().unwrap_or(0);
    let parameter = |number: usize| {
        let client_oid = client_oids.get(number - 1).copied().unwrap_or(0);
        Parameter::agree(client_oid, types.get(&number).cloned())
    };
    (1..=count).map(parameter).collect()
}

/// Plans a statement whose parameters have the client's types, or are inferred; says what they are.
/// `known` are types that the statement's kind gives away, such as those of a target's columns.
pub(super) async fn plan(
    planner: &Planner,
    mut statement: ast::Statement,
    text: &str,
    client_oids: &[u32],
    known: &Types,
) -> Result<(Vec<Parameter>, LogicalPlan), UserError> {
    let count = count(&statement);
    if count == 0 {
        return Ok((Vec::new(), planner.plan(statement, text).await?));
    }
    if count > usize::from(u16::MAX) {
        return Err(UserError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "too many parameters"));
    }
    let mut limits = Limits::default();
    let _: ControlFlow<()> = VisitMut::visit(&mut statement, &mut limits);
    let first = planner.plan(statement.clone(), text).await;
    let (mut inferred, conflicts) = match &first {
        Ok(plan) => {
            let inferred = inferred(plan, text)?;
            (sql_types(&inferred.types), inferred.conflicts)
        }
        // What cannot be planned without types may be planned with them.
        Err(_) => (Types::new(), false),
    };
    inferred.extend(limits.0.into_iter().map(|number| (number, SqlType::BigInt)));
    inferred.extend(known.iter().map(|(number, ty)| (*number, ty.clone())));
    let parameters: Vec<Parameter> = (1..=count)
        .map(|number| {
            let client_oid = client_oids.get(number - 1).copied().unwrap_or(0);
            Parameter::agree(client_oid, inferred.get(&number).cloned())
        })
        .collect();
    let unresolved: Types = (1..=count)
        .filter(|number| conflicts || !inferred.contains_key(number))
        .map(|number| (number, parameters[number - 1].ty.clone()))
        .collect();
    match first {
        Ok(plan) if unresolved.is_empty() => Ok((parameters, plan)),
        _ => {
            with_types(&mut statement, &unresolved);
            Ok((parameters, planner.plan(statement, text).await?))
        }
    }
}

/// The type that a plan expects of each parameter. `conflicts`: one was used as two types, and the plan
/// holds only when it is cast to the one found first.
struct Inferred {
    types: BTreeMap<usize, DataType>,
    conflicts: bool,
}

fn inferred(plan: &LogicalPlan, text: &str) -> Result<Inferred, UserError> {
    let mut found = Inferred { types: BTreeMap::new(), conflicts: false };
    plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let PlanExpr::Placeholder(Placeholder { id, field: Some(field) }) = expr
                    && let Some(number) = id.strip_prefix('$').and_then(|id| id.parse().ok())
                    && *field.data_type() != DataType::Null
                {
                    let known =
                        found.types.entry(number).or_insert_with(|| field.data_type().clone());
                    found.conflicts |= known != field.data_type();
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })
    .map_err(|error| user_error(&error, text))?;
    Ok(found)
}

fn sql_types(types: &BTreeMap<usize, DataType>) -> Types {
    let typed = types.iter().filter_map(|(number, ty)| {
        Some((*number, sql_type_of(&Field::new("", ty.clone(), true))?))
    });
    typed.collect()
}

/// Plans a statement for values that are there already.
pub(super) async fn plan_with_values(
    planner: &Planner,
    statement: ast::Statement,
    text: &str,
    values: &[ScalarValue],
) -> Result<LogicalPlan, UserError> {
    let expected = count(&statement);
    if expected > values.len() {
        return Err(UserError::new(
            SqlState::UNDEFINED_PARAMETER,
            format!("there is no parameter ${expected}"),
        ));
    }
    if expected == 0 {
        return planner.plan(statement, text).await;
    }
    let types: Types = values
        .iter()
        .enumerate()
        .filter_map(|(index, value)| {
            Some((index + 1, sql_type_of(&Field::new("", value.data_type(), true))?))
        })
        .collect();
    let mut statement = statement;
    with_types(&mut statement, &types);
    let plan = planner.plan(statement, text).await?;
    bind(plan, values, text)
}

/// Puts values in the place of a plan's parameters, each in the type that the plan expects.
pub(super) fn bind(
    plan: LogicalPlan,
    values: &[ScalarValue],
    text: &str,
) -> Result<LogicalPlan, UserError> {
    if values.is_empty() {
        return Ok(plan);
    }
    let expected = inferred(&plan, text)?.types;
    let mut bound = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        bound.push(match expected.get(&(index + 1)) {
            Some(ty) if *ty != value.data_type() => {
                value.cast_to(ty).map_err(|error| user_error(&error, text))?
            }
            _ => value.clone(),
        });
    }
    plan.replace_params_with_values(&ParamValues::from(bound))
        .map_err(|error| user_error(&error, text))
}
