//! The catalog: what objects exist, what each depends on, and which names are taken.
//!
//! A [`Catalog`] is an immutable snapshot. DDL makes the next one with [`Catalog::with`] or
//! [`Catalog::without`], writes the changed [`Object`]s with an epoch, and publishes the new snapshot
//! once that epoch is durable.
//!
//! Words defined here: *object*, *relation kind*, *dependent*, *drop order*.
//! Invariants: a name belongs to at most one object, whatever its kind; an id is never given out twice;
//! every dependency exists, and none leads back to where it came from. Nothing here does I/O.

mod drop;
mod error;
mod object;
mod record;
mod snapshot;

pub use drop::DropBehavior;
pub use error::{CatalogError, Verb};
pub use object::{
    CaptureSwitch, ConsumerRef, Mutability, Object, ObjectGap, ObjectKind, ObjectState, OnConflict,
    RelationKind, Removals, Settings, SinkObject, SourceObject, StageObject, TableObject,
};
pub use record::{OBJECT_FORMAT, RecordError};
pub use snapshot::Catalog;

/// The one schema that users create objects in.
pub const USER_SCHEMA: &str = "public";
/// The schema of the system relations.
pub const SYSTEM_SCHEMA: &str = "segue";
/// The relations of [`SYSTEM_SCHEMA`].
pub const SYSTEM_RELATIONS: [&str; 10] = [
    "checkpoints",
    "compatibility",
    "connectors",
    "dead_letters",
    "gaps",
    "jobs",
    "operators",
    "sources",
    "splits",
    "stages",
];
/// The PostgreSQL OID of object 0; PostgreSQL itself gives out smaller ones only to built-in objects.
pub const OID_FIRST: u32 = 16384;
