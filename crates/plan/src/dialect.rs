//! Where DataFusion reads SQL otherwise than PostgreSQL: what both the views and the SELECTs put right, in the same
//! way.
//!
//! [`rewrite`] works on the syntax tree, [`Operators`] while expressions get their types, [`Shapes`] on the plan before
//! it is typed, [`Casts`] after.
//! Invariant: a text becomes a value in one way only, that of `segue_formats`, whether it is inserted, copied, cast
//! or compared.

mod asof;
mod bits;
mod bytes;
mod calls;
mod cast;
mod concat;
pub(crate) mod correlated;
mod datetime;
mod extremes;
mod format;
mod frames;
mod gap_fill;
mod gathered;
mod general;
mod interval_format;
mod intervals;
mod items;
mod joined;
mod jsonb;
mod lateral;
mod math;
mod merged;
mod names;
mod operators;
mod parse;
mod patterns;
mod quantified;
mod regexp;
mod regexp_replace;
pub(crate) mod session_frames;
mod sessions;
mod sets;
mod simple;
mod subqueries;
mod syntax;
mod text;
mod ties;
mod value_error;
mod windows;

pub(crate) use windows::signed_micros as fixed_micros;
mod zone;
mod zoned;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::functions::math::signum;
use datafusion::logical_expr::{LogicalPlan, ScalarUDF};
use datafusion::optimizer::AnalyzerRule;
use segue_types::SqlType;

pub use crate::delta::sum_of_reals;
pub use cast::{Casts, is_absolute};
pub use gathered::aggregates;
pub use names::tell_apart;
pub use operators::Operators;
pub use syntax::rewrite;
pub use value_error::value_error;
pub use zone::time_zone;

/// The functions that the rewritten queries call, and those that DataFusion calls otherwise or not at all.
pub fn functions() -> Vec<Arc<ScalarUDF>> {
    let ours = bytes::functions().into_iter().chain(jsonb::functions());
    let ours = ours.chain(items::functions()).chain(regexp::functions());
    let ours = ours.chain(quantified::functions()).chain(concat::functions());
    let ours = ours.chain(math::functions()).chain(bits::functions()).chain(datetime::functions());
    let ours = ours.chain(patterns::functions()).chain(joined::functions());
    let ours = ours.chain(intervals::functions()).chain(names::functions());
    let mut functions = vec![
        Arc::new(cast::function(SqlType::Uuid)),
        Arc::new(cast::function(SqlType::Jsonb)),
        Arc::new(format::function()),
        Arc::new(session_frames::function()),
        Arc::new(zone::function()),
        Arc::new(parse::function()),
        Arc::new(signum().as_ref().clone().with_aliases(["sign"])),
    ];
    functions.extend(ours.map(Arc::new));
    functions
}

/// What has to be put into another form before DataFusion types it.
#[derive(Debug)]
pub struct Shapes;

impl Shapes {
    /// The plan in a form that DataFusion can answer.
    pub fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
        let plan = session_frames::rewrite(plan)?;
        correlated::rewrite(subqueries::rewrite(lateral::rewrite(plan)?)?)
    }
}

impl AnalyzerRule for Shapes {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Shapes::rewrite(plan)
    }

    fn name(&self) -> &str {
        "postgresql_shapes"
    }
}
