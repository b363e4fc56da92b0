//! The connector against a real PostgreSQL. One server serves all tests of this binary, each in tables of
//! its own.

mod failures;
mod refusals;
mod snapshot;
mod support;
mod tls;
mod types;
