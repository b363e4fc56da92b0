//! `FULL JOIN … USING (c)`: `c` is that of the first side that has the row, and stands once in `*`.
//!
//! DataFusion gives the left side's column. The join is written with ON, and `c` without a qualifier as
//! `COALESCE(l.c, r.c)`. What has no name to say `l.c` with is left as it is.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, ExcludeSelectItem, Expr, GroupByExpr, Ident, Join, JoinConstraint,
    JoinOperator, ObjectName, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    TableFactor, VisitMut, VisitorMut, WildcardAdditionalOptions,
};

use super::syntax::call;

/// Rewrites all such joins of a statement or query.
pub(super) fn rewrite<T: VisitMut>(tree: &mut T) {
    let _: ControlFlow<()> = tree.visit(&mut Joins);
}

struct Joins;

impl VisitorMut for Joins {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        body(&mut query.body);
        ControlFlow::Continue(())
    }
}

fn body(of: &mut SetExpr) {
    match of {
        SetExpr::Select(select) => {
            if let Some(merged) = Merged::of(select) {
                merged.apply(select);
            }
        }
        SetExpr::SetOperation { left, right, .. } => {
            body(left);
            body(right);
        }
        _ => {}
    }
}

/// What the joins of one FROM merge.
struct Merged {
    /// The relations, in their order.
    relations: Vec<Ident>,
    columns: Vec<Column>,
    /// What each join is joined by instead.
    constraints: Vec<Option<JoinConstraint>>,
}

struct Column {
    name: Ident,
    /// Those that give it.
    of: Vec<Ident>,
    /// Those that have it, and do not show it.
    hidden_in: Vec<Ident>,
}

impl Column {
    fn value(&self) -> Expr {
        let part =
            |relation: &Ident| Expr::CompoundIdentifier(vec![relation.clone(), self.name.clone()]);
        match self.of.as_slice() {
            [one] => part(one),
            several => call("coalesce", several.iter().map(part).collect()),
        }
    }
}

impl Merged {
    /// `None` where nothing is to be done, or cannot be.
    fn of(select: &Select) -> Option<Merged> {
        let [from] = select.from.as_slice() else { return None };
        let is_full = |join: &Join| {
            matches!(join.join_operator, JoinOperator::FullOuter(JoinConstraint::Using(_)))
        };
        if !from.joins.iter().any(is_full) {
            return None;
        }
        let mut merged = Merged {
            relations: vec![name_of(&from.relation)?],
            columns: Vec::new(),
            constraints: Vec::new(),
        };
        for join in &from.joins {
            let right = name_of(&join.relation)?;
            let constraint = match &join.join_operator {
                JoinOperator::FullOuter(JoinConstraint::Using(columns)) => {
                    Some(merged.using(columns, &right, true)?)
                }
                JoinOperator::Join(JoinConstraint::Using(columns))
                | JoinOperator::Inner(JoinConstraint::Using(columns))
                | JoinOperator::Left(JoinConstraint::Using(columns))
                | JoinOperator::LeftOuter(JoinConstraint::Using(columns)) => {
                    Some(merged.using(columns, &right, false)?)
                }
                JoinOperator::Join(JoinConstraint::On(_))
                | JoinOperator::Inner(JoinConstraint::On(_))
                | JoinOperator::Left(JoinConstraint::On(_))
                | JoinOperator::LeftOuter(JoinConstraint::On(_))
                | JoinOperator::FullOuter(JoinConstraint::On(_))
                | JoinOperator::CrossJoin(_) => None,
                _ => return None,
            };
            merged.constraints.push(constraint);
            merged.relations.push(right);
        }
        Some(merged)
    }

    fn using(
        &mut self,
        columns: &[ObjectName],
        right: &Ident,
        is_full: bool,
    ) -> Option<JoinConstraint> {
        let mut condition: Option<Expr> = None;
        for column in columns {
            let name = column.0.last()?.as_ident()?.clone();
            let place = match self.columns.iter().position(|known| same(&known.name, &name)) {
                Some(place) => place,
                None => {
                    // Of several relations it is not known which one has the column.
                    let [left] = self.relations.as_slice() else { return None };
                    let of = vec![left.clone()];
                    self.columns.push(Column { name: name.clone(), of: of.clone(), hidden_in: of });
                    self.columns.len() - 1
                }
            };
            let known = &mut self.columns[place];
            let equal = Expr::BinaryOp {
                left: Box::new(known.value()),
                op: BinaryOperator::Eq,
                right: Box::new(Expr::CompoundIdentifier(vec![right.clone(), name])),
            };
            known.hidden_in.push(right.clone());
            if is_full {
                known.of.push(right.clone());
            }
            condition = Some(match condition {
                None => equal,
                Some(condition) => Expr::BinaryOp {
                    left: Box::new(condition),
                    op: BinaryOperator::And,
                    right: Box::new(equal),
                },
            });
        }
        condition.map(JoinConstraint::On)
    }

    fn apply(mut self, select: &mut Select) {
        let mut names = Unqualified { columns: &self.columns, depth: 0 };
        let mut visit = |expr: &mut Expr| _ = expr.visit(&mut names);
        for item in &mut select.projection {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let name = match expr {
                        Expr::Identifier(name) => Some(name.clone()),
                        _ => None,
                    };
                    let before = expr.clone();
                    visit(expr);
                    if let Some(alias) = name.filter(|_| *expr != before) {
                        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
                    }
                }
                SelectItem::ExprWithAlias { expr, .. } => visit(expr),
                _ => {}
            }
        }
        select.selection.iter_mut().for_each(&mut visit);
        select.having.iter_mut().for_each(&mut visit);
        if let GroupByExpr::Expressions(exprs, _) = &mut select.group_by {
            exprs.iter_mut().for_each(&mut visit);
        }
        for (join, constraint) in select.from[0].joins.iter_mut().zip(&mut self.constraints) {
            if let Some(constraint) = constraint.take() {
                *constraint_of(&mut join.join_operator) = constraint;
            }
        }
        self.tell_apart(&mut select.projection);
        let items = std::mem::take(&mut select.projection).into_iter();
        select.projection = items.flat_map(|item| self.expanded(item)).collect();
    }

    /// DataFusion tells no column `l.c` from the merged one beside it.
    fn tell_apart(&self, items: &mut [SelectItem]) {
        let shown = items.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(alias.clone()),
            _ => None,
        });
        let shown = shown.collect::<Vec<_>>();
        let is_merged = |name: &Ident| {
            self.columns.iter().any(|column| same(&column.name, name))
                && shown.iter().any(|alias| same(alias, name))
        };
        for item in items {
            if let SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) = item
                && parts.last().is_some_and(is_merged)
            {
                let name = parts.iter().map(|part| part.value.as_str()).collect::<Vec<_>>();
                let alias = Ident::with_quote('"', name.join("."));
                *item = SelectItem::ExprWithAlias {
                    expr: Expr::CompoundIdentifier(parts.clone()),
                    alias,
                };
            }
        }
    }

    /// `*` is the merged columns, then what is left of each relation.
    fn expanded(&self, item: SelectItem) -> Vec<SelectItem> {
        match item {
            SelectItem::Wildcard(options) if options == WildcardAdditionalOptions::default() => {}
            other => return vec![other],
        }
        let merged = self.columns.iter().map(|column| SelectItem::ExprWithAlias {
            expr: column.value(),
            alias: column.name.clone(),
        });
        let rest = self.relations.iter().map(|relation| {
            let hidden = self.columns.iter().filter(|column| column.hidden_in.contains(relation));
            let hidden = hidden.map(|column| ObjectName::from(vec![column.name.clone()]));
            let hidden = hidden.collect::<Vec<_>>();
            let exclude = (!hidden.is_empty()).then_some(ExcludeSelectItem::Multiple(hidden));
            let of = ObjectName::from(vec![relation.clone()]);
            SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(of),
                WildcardAdditionalOptions { opt_exclude: exclude, ..Default::default() },
            )
        });
        merged.chain(rest).collect()
    }
}

/// Puts the merged value for the column's name alone; queries inside have names of their own.
struct Unqualified<'a> {
    columns: &'a [Column],
    depth: usize,
}

impl VisitorMut for Unqualified<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Expr::Identifier(name) = expr
            && let Some(column) = self.columns.iter().find(|column| same(&column.name, name))
        {
            *expr = column.value();
        }
        ControlFlow::Continue(())
    }
}

fn constraint_of(operator: &mut JoinOperator) -> &mut JoinConstraint {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::FullOuter(constraint) => constraint,
        _ => unreachable!("only these are put into another form"),
    }
}

/// The name by which a relation's columns are qualified.
fn name_of(factor: &TableFactor) -> Option<Ident> {
    let (alias, name) = match factor {
        TableFactor::Table { name, alias, .. } => (alias, name.0.last()?.as_ident()),
        TableFactor::Derived { alias, .. } => (alias, None),
        _ => return None,
    };
    alias.as_ref().map(|alias| alias.name.clone()).or_else(|| name.cloned())
}

fn same(a: &Ident, b: &Ident) -> bool {
    let folded = |ident: &Ident| match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    };
    folded(a) == folded(b)
}
