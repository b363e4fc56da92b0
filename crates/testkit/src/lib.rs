//! What tests need of the outside: real servers on free ports, a TCP proxy that cuts connections, the Segue
//! process itself, an slt runner.
//!
//! Invariant: nothing started here outlives its handle, and no handle waits without a deadline.

pub mod kafka;
pub mod nats;
pub mod nexmark;
pub mod ports;
pub mod postgres;
pub mod proxy;
pub mod pulsar;
pub mod reading;
pub mod segue;
pub mod slt;
pub mod wait;
