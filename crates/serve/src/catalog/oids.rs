//! OIDs: of namespaces, of what belongs to an object (its key's index and constraint), of system relations.

use std::sync::Arc;

use segue_catalog::{Catalog, OID_FIRST, Object};

/// Schemas and their OIDs, as PostgreSQL has them where it has them.
pub(crate) const NAMESPACES: [(&str, u32); 4] =
    [("pg_catalog", 11), ("public", 2200), ("information_schema", 13_000), ("segue", 13_001)];

/// The OID of the one role, the session's user.
pub(super) const ROLE: u32 = 10;
/// The OID of the one database.
pub(super) const DATABASE: u32 = 5;
/// The first OID of system relations that PostgreSQL does not give one.
const SYSTEM_FIRST: u32 = 14_000;
/// From here on the indexes of primary keys, by object id.
const INDEX_FIRST: u32 = 1_000_000_000;
/// From here on the constraints of primary keys, by object id.
const CONSTRAINT_FIRST: u32 = 1_100_000_000;
/// From here on the foreign servers, by object id: what a source reads from.
const SERVER_FIRST: u32 = 1_200_000_000;

/// A schema's OID.
pub(super) fn namespace(name: &str) -> u32 {
    NAMESPACES.iter().find(|(known, _)| *known == name).map_or(0, |(_, oid)| *oid)
}

pub(super) fn index(object: &Object) -> u32 {
    INDEX_FIRST + object.id.0
}

pub(super) fn constraint(object: &Object) -> u32 {
    CONSTRAINT_FIRST + object.id.0
}

pub(super) fn server(object: &Object) -> u32 {
    SERVER_FIRST + object.id.0
}

/// The object behind an OID of its own, of its index or of its constraint.
pub(crate) fn object_of_oid(catalog: &Catalog, oid: u32) -> Option<&Arc<Object>> {
    let id = [SERVER_FIRST, CONSTRAINT_FIRST, INDEX_FIRST]
        .into_iter()
        .find(|first| oid >= *first)
        .map(|first| oid - first);
    match id {
        Some(id) => catalog.by_oid(OID_FIRST + id),
        None => catalog.by_oid(oid),
    }
}

/// The OID of a system relation: PostgreSQL's own for the few that clients know by number.
pub(super) fn system_relation(schema: &str, name: &str, place: usize) -> u32 {
    let known = match name {
        "pg_type" => 1247,
        "pg_attribute" => 1249,
        "pg_proc" => 1255,
        "pg_class" => 1259,
        "pg_authid" => 1260,
        "pg_database" => 1262,
        "pg_constraint" => 2606,
        "pg_namespace" => 2615,
        _ => 0,
    };
    if known != 0 {
        return known;
    }
    let offset = match schema {
        "pg_catalog" => 0,
        "information_schema" => 500,
        _ => 800,
    };
    SYSTEM_FIRST + offset + u32::try_from(place).expect("system relations are few")
}
