//! The catalog as DataFusion's planner sees it: base relations to scan, views to plan in their place.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::catalog::TableFunctionArgs;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DFSchema, DataFusionError, Result, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, TypePlanner};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, LogicalPlanBuilder, ScalarUDF, TableSource,
    WindowUDF,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use segue_catalog::{Catalog, Object, ObjectKind, SYSTEM_SCHEMA, USER_SCHEMA};
use segue_sql::{Emission, Statement};
use segue_types::{ObjectId, SqlState, UserError};
use sqlparser::ast;

use super::changes::{CHANGES_OF, Changelog};
use super::{functions, logical_plan, names};
use crate::dialect;

/// DataFusion's own functions and expression planners.
static BUILT_IN: LazyLock<SessionState> = LazyLock::new(|| {
    let mut state = SessionStateBuilder::new()
        .with_expr_planners(vec![Arc::new(dialect::Operators)])
        .with_default_features()
        .build();
    register_functions(&mut state);
    state
});

/// Adds the functions that are not DataFusion's.
pub(super) fn register_functions(state: &mut SessionState) {
    for function in dialect::functions() {
        state.register_udf(function).expect("the registry takes every function");
    }
    for function in dialect::aggregates() {
        state.register_udaf(function).expect("the registry takes every function");
    }
}

/// One planning over one catalog; remembers which objects were named.
pub(super) struct CatalogProvider<'a> {
    catalog: &'a Catalog,
    options: ConfigOptions,
    named: RefCell<BTreeSet<ObjectId>>,
    /// Views that are being planned at the moment, so that names inside them are not taken for the user's.
    depth: RefCell<usize>,
}

/// A relation that holds rows or reads them.
#[derive(Debug)]
pub(super) struct RelationSource {
    pub(super) object: Arc<Object>,
    pub(super) read: ReadAs,
}

/// At which time a relation is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadAs {
    /// As it changes.
    Changing,
    /// As it is when the rows of the other side of a join arrive.
    OfArrival,
}

/// Ends the name of a relation that is read as of arrival.
pub(super) const OF_ARRIVAL: char = '\u{1}';

/// A view, planned.
struct ViewSource {
    schema: SchemaRef,
    plan: LogicalPlan,
}

impl TableSource for RelationSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.object.schema)
    }
}

impl TableSource for ViewSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        Some(Cow::Borrowed(&self.plan))
    }
}

impl<'a> CatalogProvider<'a> {
    pub(super) fn new(catalog: &'a Catalog) -> CatalogProvider<'a> {
        CatalogProvider {
            catalog,
            options: ConfigOptions::default(),
            named: RefCell::default(),
            depth: RefCell::default(),
        }
    }

    pub(super) fn catalog(&self) -> &Catalog {
        self.catalog
    }

    /// The objects that the query itself names.
    pub(super) fn named(&self) -> BTreeSet<ObjectId> {
        self.named.borrow().clone()
    }

    fn resolve(&self, name: &TableReference) -> Result<Arc<Object>, UserError> {
        match name.schema() {
            None | Some(USER_SCHEMA) => Ok(Arc::clone(self.catalog.resolve(name.table())?)),
            Some(schema @ (SYSTEM_SCHEMA | "pg_catalog" | "information_schema")) => {
                let message =
                    format!("a view cannot read the system relation {schema}.{}", name.table());
                Err(UserError::unsupported(message).with_hint("SELECT from it directly."))
            }
            Some(schema) => {
                let message = format!("schema \"{schema}\" does not exist");
                Err(UserError::new(SqlState::UNDEFINED_SCHEMA, message)
                    .with_hint("There is one schema for objects, public."))
            }
        }
    }

    /// What a relation changes, as rows.
    fn changes_of(&self, name: &TableReference) -> Result<Arc<dyn TableSource>> {
        let source = self.get_table_source(name.clone())?;
        let key = source.downcast_ref::<RelationSource>();
        let key = key.map_or_else(Vec::new, |relation| relation.object.key.clone());
        let input = LogicalPlanBuilder::scan(name.clone(), source, None)?.build()?;
        let plan = Changelog::plan(input, key)?;
        let fields = plan.schema().fields().clone();
        Ok(Arc::new(ViewSource { schema: Arc::new(Schema::new(fields)), plan }))
    }

    /// The plan of a view's definition, under the view's column names.
    fn plan_of(&self, view: &Object) -> Result<LogicalPlan, UserError> {
        let (query, _) = view_query(view)?;
        *self.depth.borrow_mut() += 1;
        let plan = logical_plan(self, &query);
        *self.depth.borrow_mut() -= 1;
        let plan = plan?;
        let columns = plan.schema().columns();
        let renamed = columns.into_iter().zip(view.schema.fields());
        let renamed = renamed.map(|(column, field)| Expr::Column(column).alias(field.name()));
        LogicalPlanBuilder::from(plan)
            .project(renamed)
            .and_then(LogicalPlanBuilder::build)
            .map_err(|error| super::errors::user_error(&error, None))
    }
}

/// The query in a view's stored definition, and when its rows are shown.
pub(super) fn view_query(view: &Object) -> Result<(ast::Query, Emission), UserError> {
    let statement = segue_sql::parse(&view.definition)?.pop();
    match statement {
        Some(Statement::CreateView(create) | Statement::CreateMaterializedView(create)) => {
            Ok((*create.query.tree, create.emission))
        }
        _ => Err(UserError::internal(format!("the definition of \"{}\" is no view's", view.name))),
    }
}

/// The name without the mark at its end; `None` when it has none.
fn without_mark(name: &TableReference, mark: char) -> Option<TableReference> {
    let table = name.table().strip_suffix(mark)?.to_owned();
    Some(match name.schema() {
        None => TableReference::bare(table),
        Some(schema) => TableReference::partial(schema.to_owned(), table),
    })
}

fn not_readable(name: &str) -> UserError {
    UserError::new(SqlState::WRONG_OBJECT_TYPE, format!("sink \"{name}\" cannot be read"))
        .with_hint("Read the table that it feeds.")
}

fn external(error: UserError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl ContextProvider for CatalogProvider<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        if let Some(name) = without_mark(&name, CHANGES_OF) {
            return self.changes_of(&name);
        }
        let (name, read) = match without_mark(&name, OF_ARRIVAL) {
            Some(name) => (name, ReadAs::OfArrival),
            None => (name, ReadAs::Changing),
        };
        let object = self.resolve(&name).map_err(external)?;
        if *self.depth.borrow() == 0 {
            self.named.borrow_mut().insert(object.id);
        }
        match object.kind {
            ObjectKind::View => {
                let plan = self.plan_of(&object).map_err(external)?;
                Ok(Arc::new(ViewSource { schema: Arc::clone(&object.schema), plan }))
            }
            ObjectKind::Sink(_) => Err(external(not_readable(&object.name))),
            _ => Ok(Arc::new(RelationSource { object, read })),
        }
    }

    fn get_table_function_source(
        &self,
        name: &str,
        args: Vec<Expr>,
    ) -> Result<Arc<dyn TableSource>> {
        let name = name.to_lowercase();
        if matches!(name.as_str(), "tumble" | "hop" | "session" | "gap_fill") {
            let message = format!("{name}() cannot be called with these arguments");
            let hint = match name.as_str() {
                "gap_fill" => {
                    "gap_fill(relation, time column, step [, interpolate(column) | locf(column) | keepnull(column) \
                     | partition_by(column, …), …]) takes an interval without months."
                }
                _ => {
                    "tumble(relation, time column, size [, offset]), hop(relation, time column, step, size \
                     [, offset]) and session(relation, time column, gap [, column, …]) take intervals without \
                     months; a hop's size is a multiple of its step."
                }
            };
            let error = UserError::new(SqlState::INVALID_PARAMETER_VALUE, message).with_hint(hint);
            return Err(external(error));
        }
        if let Some(ticks) = super::ticks::of(&name, &args)? {
            return Ok(Arc::new(ticks));
        }
        let Some(function) = BUILT_IN.table_functions().get(&name) else {
            let message = format!("table function {name}() does not exist");
            return Err(external(UserError::new(SqlState::UNDEFINED_FUNCTION, message)));
        };
        let args = args.into_iter().map(constant_of).collect::<Result<Vec<_>>>()?;
        let provider =
            function.create_table_provider_with_args(TableFunctionArgs::new(&args, &*BUILT_IN))?;
        Ok(provider_as_source(provider))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        BUILT_IN.expr_planners()
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(SegueTypes))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        BUILT_IN.scalar_functions().get(name).cloned()
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        BUILT_IN.higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        functions::aggregate(name).or_else(|| BUILT_IN.aggregate_functions().get(name).cloned())
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        BUILT_IN.window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _variable_names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        &self.options
    }

    fn udf_names(&self) -> Vec<String> {
        BUILT_IN.scalar_functions().keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        BUILT_IN.higher_order_functions().keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        BUILT_IN.aggregate_functions().keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        BUILT_IN.window_functions().keys().cloned().collect()
    }
}

/// The argument of a table function, computed: it takes literals alone.
pub(super) fn constant_of(expression: Expr) -> Result<Expr> {
    let context = SimplifyContext::builder().with_schema(Arc::new(DFSchema::empty())).build();
    ExprSimplifier::new(context).simplify(expression)
}

/// Type names mean what they mean in CREATE TABLE.
#[derive(Debug)]
struct SegueTypes;

impl TypePlanner for SegueTypes {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> Result<Option<FieldRef>> {
        let known = segue_sql::parse_type(&sql_type.to_string()).ok();
        Ok(known.map(|known| Arc::new(known.field(names::UNNAMED, true))))
    }
}
