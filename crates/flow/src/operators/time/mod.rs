//! Operators that know of time: watermarks, what waits for them, and what a clock lets in and out.
//!
//! All of them work by marks that arrive as rows, so the same input gives the same output, whenever it runs.
//! None is partitioned by a key: whoever spreads a dataflow gives each part every mark.

mod forgetting;
mod late;
mod settled;
mod temporal;
mod ticks;
mod waiting;
mod watermark;
mod withhold;

pub(crate) use forgetting::{Forget, Forgetting};
pub(crate) use late::{DropLate, Untimed, split_late};
pub(crate) use settled::Settled;
pub(crate) use temporal::Temporal;
pub(crate) use ticks::Ticks;
pub(crate) use watermark::{Least, Watermark};
pub(crate) use withhold::Withhold;
