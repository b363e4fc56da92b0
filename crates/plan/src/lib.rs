//! Statements to plans, without I/O: stages of a source (by the capability and compatibility tables), and views.
//!
//! Invariant: everything a user can have got wrong about a statement is refused here, with the place, the rule and the
//! remedy, before anything outside is touched.

mod declared;
pub mod delta;
pub mod dialect;
pub mod generated;
pub mod sink;
pub mod stages;
pub mod tables;
pub mod watermark;
