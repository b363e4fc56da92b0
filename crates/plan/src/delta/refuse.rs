//! What is not maintained yet, refused by its name and with the remedy, before anything is translated.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, Volatility};
use segue_types::UserError;
use sqlparser::ast::{self, Query, SetExpr, SetOperator};

const TIME_FUNCTIONS: &[&str] =
    &["now", "current_timestamp", "current_date", "current_time", "today", "localtimestamp"];

/// The refusal of `what`, which reads as the subject of a sentence.
pub(super) fn refusal(what: &str, hint: &str) -> UserError {
    UserError::unsupported(format!("{what} is not maintained in a materialized view"))
        .with_hint(hint)
}

/// Refuses what the planner would turn into something whose name the user does not know.
pub(super) fn query(query: &Query) -> Result<(), UserError> {
    if query.limit_clause.is_some() || query.fetch.is_some() {
        return Err(limit());
    }
    if let Some(with) = &query.with {
        if with.recursive {
            return Err(refusal(
                "WITH RECURSIVE",
                "Write out the steps, or SELECT from a plain view.",
            ));
        }
        with.cte_tables.iter().try_for_each(|table| self::query(&table.query))?;
    }
    body(&query.body)
}

fn limit() -> UserError {
    refusal(
        "LIMIT",
        "Leave it out of the view and put ORDER BY and LIMIT into the SELECT that reads it.",
    )
}

fn body(body: &SetExpr) -> Result<(), UserError> {
    match body {
        SetExpr::Select(select) => self::select(select),
        SetExpr::Query(query) => self::query(query),
        SetExpr::SetOperation { op, left, right, .. } => {
            match op {
                SetOperator::Union => {}
                SetOperator::Except | SetOperator::Minus => {
                    return Err(refusal("EXCEPT", "Use a plain view, or UNION ALL and GROUP BY."));
                }
                SetOperator::Intersect => {
                    return Err(refusal(
                        "INTERSECT",
                        "Use a plain view, or UNION ALL and GROUP BY.",
                    ));
                }
            }
            self::body(left)?;
            self::body(right)
        }
        SetExpr::Values(_) => Err(refusal("VALUES", "INSERT the rows into a table and read that.")),
        _ => Err(refusal("this statement", "A materialized view is defined by a SELECT.")),
    }
}

fn select(select: &ast::Select) -> Result<(), UserError> {
    if matches!(select.distinct, Some(ast::Distinct::On(_))) {
        let hint = "Use GROUP BY with min() or max(), or a plain view.";
        return Err(refusal("DISTINCT ON", hint));
    }
    let sets = match &select.group_by {
        ast::GroupByExpr::All(modifiers) => !modifiers.is_empty(),
        ast::GroupByExpr::Expressions(keys, modifiers) => {
            let is_set = |key: &ast::Expr| {
                matches!(
                    key,
                    ast::Expr::GroupingSets(_) | ast::Expr::Cube(_) | ast::Expr::Rollup(_)
                )
            };
            !modifiers.is_empty() || keys.iter().any(is_set)
        }
    };
    if sets {
        let hint = "Write one SELECT with GROUP BY for each set, joined by UNION ALL.";
        return Err(refusal("GROUPING SETS, CUBE or ROLLUP", hint));
    }
    if select.from.is_empty() {
        return Err(refusal("a SELECT without FROM", "Use a plain view for constants."));
    }
    let joins = select.from.len() > 1 || select.from.iter().any(|table| !table.joins.is_empty());
    if joins { Err(join()) } else { Ok(()) }
}

fn join() -> UserError {
    refusal("a join", "Use a plain view: its join is answered when it is read.")
}

/// Refuses what only the typed plan shows.
pub(super) fn plan(plan: &LogicalPlan) -> Result<(), UserError> {
    let mut refused = None;
    let walked = plan.apply(|node| {
        refused = node_refusal(node);
        if refused.is_none() {
            node.apply_expressions(|expression| {
                expression.apply(|part| {
                    refused = expression_refusal(part);
                    Ok(stop_if(refused.is_some()))
                })
            })?;
        }
        Ok(stop_if(refused.is_some()))
    });
    walked.map_err(|error| super::errors::user_error(&error, None))?;
    refused.map_or(Ok(()), Err)
}

fn stop_if(found: bool) -> TreeNodeRecursion {
    if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue }
}

fn node_refusal(node: &LogicalPlan) -> Option<UserError> {
    match node {
        LogicalPlan::Join(_) => Some(join()),
        LogicalPlan::Window(_) => Some(window()),
        LogicalPlan::Limit(_) => Some(limit()),
        LogicalPlan::Distinct(Distinct::On(_)) => {
            Some(refusal("DISTINCT ON", "Use GROUP BY with min() or max(), or a plain view."))
        }
        LogicalPlan::Unnest(_) => {
            Some(refusal("unnest()", "Use it in the SELECT that reads the view."))
        }
        LogicalPlan::RecursiveQuery(_) => Some(refusal("WITH RECURSIVE", "Write out the steps.")),
        LogicalPlan::Values(_) => {
            Some(refusal("VALUES", "INSERT the rows into a table and read that."))
        }
        LogicalPlan::EmptyRelation(empty) if empty.produce_one_row => {
            Some(refusal("a SELECT without FROM", "Use a plain view for constants."))
        }
        _ => None,
    }
}

fn window() -> UserError {
    refusal("a window function", "Use a plain view: its window is computed when it is read.")
}

fn expression_refusal(expression: &Expr) -> Option<UserError> {
    match expression {
        Expr::ScalarSubquery(_)
        | Expr::InSubquery(_)
        | Expr::Exists(_)
        | Expr::SetComparison(_) => Some(refusal(
            "a subquery in an expression",
            "Use a plain view, or a view for each part.",
        )),
        Expr::WindowFunction(_) => Some(window()),
        Expr::ScalarFunction(call) => {
            let name = call.func.name();
            let by_time = TIME_FUNCTIONS.contains(&name);
            let volatile = call.func.signature().volatility == Volatility::Volatile;
            (by_time || volatile).then(|| {
                let what = format!("{name}(), which gives another value each time,");
                refusal(&what, "Use it in the SELECT that reads the view.")
            })
        }
        _ => None,
    }
}
