//! The connector contract: what the rest of Segue may know of an external system, and nothing more.
//!
//! A connector is described by data ([`Capabilities`], [`OptionSpec`]) and a handful of calls ([`Connector`],
//! [`StageReader`], [`SplitReader`]). Adding one touches the binary's registry line and nothing else.
//!
//! ```text
//! ReadConfig ──pin──▶ ReadDefinition (stored) ──open──▶ StageReader ──read──▶ SplitReader ──next──▶ ReadEvent
//!                                            └─capture─▶ Capture (bounded queries that cannot be resumed)
//! ```
//!
//! Words defined here: *read configuration*, *read definition*, *handoff*, *capture attempt*.
//! Invariant: a symbolic start (latest, timestamp, earliest) is gone once `pin` has returned.

mod capabilities;
mod config;
mod definition;
mod error;
mod event;
mod registry;

pub use capabilities::{
    Capabilities, HandoffKind, HasData, KnowsData, Latest, Ordering, Replayable, Resume,
};
pub use config::{
    Format, Include, IncludeKind, OnError, OptionSpec, Options, ReadConfig, RowFormat, Start, Stop,
};
pub use definition::{Enumeration, Handoff, ReadDefinition, SplitDefinition, SplitStart};
pub use error::ConnectError;
pub use event::{Distance, ReadEvent, Rejected, Rows};
pub use registry::{Capture, Connector, Registry, SplitReader, StageReader};
pub use segue_types::{Changes, Ops};
