//! What is not maintained, refused by its name and with the remedy, before anything is translated.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use segue_types::UserError;
use sqlparser::ast::{Query, SetExpr};

use super::clock;

const TIME_FUNCTIONS: &[&str] =
    &["now", "current_timestamp", "current_date", "current_time", "today", "localtimestamp"];

/// The refusal of `what`, which reads as the subject of a sentence.
pub(super) fn refusal(what: &str, hint: &str) -> UserError {
    UserError::unsupported(format!("{what} is not maintained in a materialized view"))
        .with_hint(hint)
}

/// Refuses what the planner would turn into something else.
pub(super) fn query(query: &Query) -> Result<(), UserError> {
    if let Some(with) = &query.with {
        if with.recursive {
            // Its end depends on the data, and a step must end.
            return Err(refusal(
                "WITH RECURSIVE",
                "Write out the steps, or SELECT from a plain view.",
            ));
        }
        with.cte_tables.iter().try_for_each(|table| self::query(&table.query))?;
    }
    body(&query.body)
}

fn body(body: &SetExpr) -> Result<(), UserError> {
    match body {
        SetExpr::Select(_) | SetExpr::Values(_) => Ok(()),
        SetExpr::Query(query) => self::query(query),
        SetExpr::SetOperation { left, right, .. } => {
            self::body(left)?;
            self::body(right)
        }
        _ => Err(refusal("this statement", "A materialized view is defined by a SELECT.")),
    }
}

/// Refuses what only the typed plan shows.
pub(super) fn plan(plan: &LogicalPlan) -> Result<(), UserError> {
    let mut refused = None;
    let walked = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                refused = refused.take().or_else(|| expression_refusal(part));
                Ok(stop_if(refused.is_some()))
            })
        })?;
        Ok(stop_if(refused.is_some()))
    });
    walked.map_err(|error| super::errors::user_error(&error, None))?;
    refused.map_or(Ok(()), Err)
}

fn stop_if(found: bool) -> TreeNodeRecursion {
    if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue }
}

fn expression_refusal(expression: &Expr) -> Option<UserError> {
    if clock::is(expression) {
        return None;
    }
    let Expr::ScalarFunction(call) = expression else { return None };
    let name = call.func.name();
    let by_time = TIME_FUNCTIONS.contains(&name);
    let volatile = call.func.signature().volatility == Volatility::Volatile;
    (by_time || volatile).then(|| {
        let what = format!("{name}(), which gives another value each time,");
        refusal(&what, "Use it in the SELECT that reads the view.")
    })
}

/// Refuses the subqueries that the rewrites could not turn into joins.
pub(super) fn subqueries(plan: &LogicalPlan) -> Result<(), UserError> {
    let mut left = false;
    let walked = plan.apply(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                left |= matches!(
                    part,
                    Expr::ScalarSubquery(_)
                        | Expr::InSubquery(_)
                        | Expr::Exists(_)
                        | Expr::OuterReferenceColumn(..)
                        | Expr::SetComparison(_)
                );
                Ok(stop_if(left))
            })
        })?;
        Ok(stop_if(left))
    });
    walked.map_err(|error| super::errors::user_error(&error, None))?;
    match left {
        true => Err(refusal(
            "a subquery that cannot be turned into a join",
            "Join the relation instead.",
        )),
        false => Ok(()),
    }
}
