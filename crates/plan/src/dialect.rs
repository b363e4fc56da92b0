//! Where DataFusion reads SQL otherwise than PostgreSQL: what both the views and the SELECTs put right, in the same
//! way.
//!
//! [`rewrite`] works on the syntax tree, [`Operators`] while expressions get their types, [`Casts`] on the typed plan.
//! Invariant: a text becomes a value in one way only, that of `segue_formats`, whether it is inserted, copied, cast
//! or compared.

mod bytes;
mod calls;
mod cast;
mod format;
mod jsonb;
mod operators;
mod parse;
mod sessions;
mod sets;
mod simple;
mod syntax;
mod text;
mod value_error;
mod windows;

pub(crate) use windows::signed_micros as fixed_micros;
mod zone;

use std::sync::Arc;

use datafusion::functions::math::signum;
use datafusion::logical_expr::ScalarUDF;
use segue_types::SqlType;

pub use cast::Casts;
pub use operators::Operators;
pub use syntax::rewrite;
pub use value_error::value_error;

/// The functions that the rewritten queries call, and those that DataFusion calls otherwise or not at all.
pub fn functions() -> Vec<Arc<ScalarUDF>> {
    let ours = bytes::functions().into_iter().chain(jsonb::functions());
    let mut functions = vec![
        Arc::new(cast::function(SqlType::Uuid)),
        Arc::new(cast::function(SqlType::Jsonb)),
        Arc::new(format::function()),
        Arc::new(zone::function()),
        Arc::new(parse::function()),
        Arc::new(signum().as_ref().clone().with_aliases(["sign"])),
    ];
    functions.extend(ours.map(Arc::new));
    functions
}
