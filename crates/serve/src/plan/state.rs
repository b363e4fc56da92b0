//! DataFusion's state of a session: PostgreSQL's dialect and defaults, our catalog, the functions that
//! PostgreSQL's clients call.

use std::sync::{Arc, LazyLock};

use datafusion::common::DataFusionError;
use datafusion::config::Dialect;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, col};
use datafusion::optimizer::Analyzer;
use datafusion::prelude::{Expr, SessionConfig};
use segue_plan::dialect::{Casts, Operators, Shapes};

use super::catalog::Databases;
use super::semantics::CheckedArithmetic;
use super::snapshot::SnapshotCell;
use super::types::Types;
use crate::settings::Settings;

/// The name of the database in plans; clients may call it anything.
pub(crate) const DATABASE: &str = "segue";

/// Who a session is, for the functions that tell.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) pid: i32,
    pub(crate) settings: Arc<Settings>,
}

/// What all sessions share; building it takes milliseconds, cloning it microseconds.
static BASE: LazyLock<SessionState> = LazyLock::new(|| {
    let mut config = SessionConfig::new()
        .with_default_catalog_and_schema(DATABASE, "public")
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(false)
        .with_target_partitions(1);
    let options = config.options_mut();
    options.sql_parser.dialect = Dialect::PostgreSQL;
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.map_string_types_to_utf8view = false;
    options.sql_parser.collect_spans = true;
    options.execution.time_zone = Some("+00:00".to_owned());
    let mut analyzer = Analyzer::new();
    analyzer.rules.insert(0, Arc::new(Shapes));
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_analyzer_rules(analyzer.rules)
        .with_expr_planners(vec![Arc::new(Operators)])
        .with_default_features()
        .with_type_planner(Arc::new(Types))
        .build();
    state.add_analyzer_rule(Arc::new(Casts));
    state.add_analyzer_rule(Arc::new(CheckedArithmetic));
    crate::functions::register_shared(&mut state);
    state
});

/// The state of a session.
pub(crate) fn session_state(identity: &Identity, cell: &Arc<SnapshotCell>) -> Arc<SessionState> {
    let mut state = BASE.clone();
    let (databases, public) = Databases::new(cell);
    state.register_catalog_list(Arc::new(databases));
    crate::functions::register_session(&mut state, identity, cell);
    let state = Arc::new(state);
    public.belongs_to(&state);
    state
}

/// The plan with other column names, where they differ.
pub(crate) fn renamed<'a>(
    plan: LogicalPlan,
    names: impl Iterator<Item = &'a str>,
) -> Result<LogicalPlan, DataFusionError> {
    let columns: Vec<_> = plan.schema().columns();
    let names: Vec<&str> = names.collect();
    if columns.iter().map(|column| column.name.as_str()).eq(names.iter().copied()) {
        return Ok(plan);
    }
    let renamed = columns.into_iter().zip(names).map(|(column, name)| col(column).alias(name));
    LogicalPlanBuilder::from(plan).project(renamed.collect::<Vec<Expr>>())?.build()
}
