//! Functions that PostgreSQL's clients call and DataFusion does not have.
//!
//! Most answer a constant: there is one role, one database, no triggers, no sequences. Those that tell
//! something of the catalog or of the session are registered for each session.

mod aggregates;
mod checked;
mod constants;
mod definitions;
mod series;
mod session;
mod simple;
mod size;
mod widened;

use std::sync::Arc;

use datafusion::catalog::TableFunctionImpl;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::functions_table::generate_series::{GenerateSeriesFunc, RangeFunc};
use datafusion::logical_expr::ScalarUDF;
use datafusion_pg_catalog::pg_catalog::array_bounds_udf::{
    create_array_lower_udf, create_array_upper_udf,
};
use datafusion_pg_catalog::pg_catalog::format_type::create_format_type_udf;
use datafusion_pg_catalog::pg_catalog::quote_ident_udf::{
    create_parse_ident_udf, create_quote_ident_udf,
};

pub(crate) use checked::{checked, first_of_chain};
use series::{Last, Series};

use crate::plan::{Identity, SnapshotCell};

/// What all sessions share.
pub(crate) fn register_shared(state: &mut SessionState) {
    let ready_made = [
        create_format_type_udf(),
        create_quote_ident_udf(),
        create_parse_ident_udf(),
        create_array_upper_udf(),
        create_array_lower_udf(),
    ];
    let ours = constants::functions().into_iter().chain(size::functions());
    for function in ready_made.into_iter().chain(ours) {
        register(state, function);
    }
    for function in segue_plan::dialect::functions() {
        state.register_udf(function).expect("a session's registry takes every function");
    }
    for function in segue_plan::dialect::aggregates() {
        state.register_udaf(function).expect("a session's registry takes every function");
    }
    for function in aggregates::functions() {
        state.register_udaf(Arc::new(function)).expect("a session's registry takes every function");
    }
    let series = |inner: Arc<dyn TableFunctionImpl>, last| Arc::new(Series { inner, last });
    state.register_udtf("generate_series", series(Arc::new(GenerateSeriesFunc {}), Last::Included));
    state.register_udtf("range", series(Arc::new(RangeFunc {}), Last::Excluded));
    state.register_udtf("pg_get_keywords", crate::catalog::keywords());
}

/// What tells of a session or of the catalog.
pub(crate) fn register_session(
    state: &mut SessionState,
    identity: &Identity,
    cell: &Arc<SnapshotCell>,
) {
    let functions = session::functions(identity).into_iter().chain(definitions::functions(cell));
    for function in functions {
        register(state, function);
    }
}

fn register(state: &mut SessionState, function: ScalarUDF) {
    state.register_udf(Arc::new(function)).expect("a session's registry takes every function");
}
