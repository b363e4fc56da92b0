//! The engine: readers feed a step loop, epochs make it durable, published versions show it.
//!
//! ```text
//! readers (tokio tasks) ─▶ inbox ─▶ step thread ─▶ commit thread ─▶ Published ─▶ serve
//!        ▲                            │  ▲
//!        └──────── effects ───────────┘  └─ commands of statements
//! ```
//!
//! Everything that changes belongs to the step thread ([`world`]); the rest of the crate sends it messages.
//! What the thread holds at a step boundary is an epoch, without any protocol: at that moment nothing is in flight.
//!
//! Words defined here: *step thread*, *commit thread*, *job*, *target*.

mod api;
mod backoff;
mod capture;
mod captured;
mod clock;
mod commit;
mod consumer;
mod ddl;
mod distance;
mod dml;
mod engine;
mod filling;
mod gaps;
mod generated;
mod greatest;
mod inbox;
mod job;
mod limits;
mod marks;
mod meeting;
mod memory;
mod meter;
mod outflow;
mod patience;
mod reader;
mod recover;
mod relation;
mod release;
mod resting;
mod scan;
mod source;
mod status;
mod step;
mod world;

pub use api::{Published, StatementContext};
pub use dml::TableWriter;
pub use engine::{Engine, EngineConfig, StartError};
pub use memory::MemoryLimits;
pub use patience::{Asker, Patience};
pub use scan::{Horizon, Scanned, SourceScan, Wanted};
pub use segue_store::DeadLetter;
pub use status::{
    CheckpointStatus, JobStatus, OperatorStatus, SplitStatus, StageStatus, Status,
    WatermarkReached, WatermarkStatus,
};
