//! pg_class: tables, views, materialized views, sources (as foreign tables, so that psql lists them),
//! key indexes.

use segue_catalog::{Catalog, Object, RelationKind};

use super::cells::{Cell, Kind, Relation, Row, Source, row};
use super::{View, oids, relations, statics};

pub(super) const RELATIONS: &[Relation] = &[Relation {
    name: "pg_class",
    columns: &[
        ("oid", Kind::Oid("oid")),
        ("relname", Kind::Text),
        ("relnamespace", Kind::Oid("regnamespace")),
        ("reltype", Kind::Oid("regtype")),
        ("reloftype", Kind::Oid("regtype")),
        ("relowner", Kind::Oid("oid")),
        ("relam", Kind::Oid("oid")),
        ("relfilenode", Kind::Oid("oid")),
        ("reltablespace", Kind::Oid("oid")),
        ("relpages", Kind::Integer),
        ("reltuples", Kind::Real),
        ("relallvisible", Kind::Integer),
        ("reltoastrelid", Kind::Oid("oid")),
        ("relhasindex", Kind::Boolean),
        ("relisshared", Kind::Boolean),
        ("relpersistence", Kind::Char),
        ("relkind", Kind::Char),
        ("relnatts", Kind::SmallInt),
        ("relchecks", Kind::SmallInt),
        ("relhasrules", Kind::Boolean),
        ("relhastriggers", Kind::Boolean),
        ("relhassubclass", Kind::Boolean),
        ("relrowsecurity", Kind::Boolean),
        ("relforcerowsecurity", Kind::Boolean),
        ("relispopulated", Kind::Boolean),
        ("relreplident", Kind::Char),
        ("relispartition", Kind::Boolean),
        ("relrewrite", Kind::Oid("oid")),
        ("relfrozenxid", Kind::Integer),
        ("relminmxid", Kind::Integer),
        ("relacl", Kind::Texts),
        ("reloptions", Kind::Texts),
        ("relpartbound", Kind::Text),
        ("xmin", Kind::Integer),
    ],
    source: Source::Catalog(classes),
}];

/// What differs between one row and another.
struct Class<'a> {
    oid: u32,
    name: &'a str,
    namespace: u32,
    kind: &'a str,
    columns: usize,
    rows: i64,
    has_index: bool,
    access_method: u32,
}

/// The access methods heap and btree.
const HEAP: u32 = 2;
const BTREE: u32 = 403;

fn rows_of(version: &crate::backend::RelationVersion) -> i64 {
    i64::try_from(crate::backend::row_count(version)).unwrap_or(i64::MAX)
}

/// The letter of a relation's kind.
pub(super) fn relkind(object: &Object) -> &'static str {
    match object.relation_kind() {
        RelationKind::Table => "r",
        RelationKind::View => "v",
        RelationKind::MaterializedView => "m",
        RelationKind::Source => "f",
        RelationKind::Sink => unreachable!("a sink is not shown as a relation"),
    }
}

fn classes(view: &View<'_>) -> Vec<Row> {
    let public = oids::namespace("public");
    let mut rows = Vec::new();
    for object in view.relations() {
        let count = view.reading.version(object.id).map_or(-1, rows_of);
        rows.push(class(&Class {
            oid: object.oid(),
            name: &object.name,
            namespace: public,
            kind: relkind(object),
            columns: object.schema.fields().len(),
            rows: count,
            has_index: has_index(object),
            access_method: if object.is_stored() { HEAP } else { 0 },
        }));
        if has_index(object) {
            rows.push(class(&Class {
                oid: oids::index(object),
                name: &format!("{}_pkey", object.name),
                namespace: public,
                kind: "i",
                columns: object.key.len(),
                rows: count,
                has_index: false,
                access_method: BTREE,
            }));
        }
    }
    for (schema, name, oid, columns) in system_relations() {
        rows.push(class(&Class {
            oid,
            name,
            namespace: oids::namespace(schema),
            kind: if schema == "pg_catalog" { "r" } else { "v" },
            columns,
            rows: -1,
            has_index: false,
            access_method: 0,
        }));
    }
    rows
}

/// Whether an object shows a primary key. Of a source it is declared, but nothing is stored that an
/// index could be on; of a materialized view it is derived, and PostgreSQL has no such thing.
pub(super) fn has_index(object: &Object) -> bool {
    object.relation_kind() == RelationKind::Table && !object.key.is_empty()
}

/// Schema, name, OID and number of columns of every system relation.
pub(super) fn system_relations() -> impl Iterator<Item = (&'static str, &'static str, u32, usize)> {
    let made = ["pg_catalog", "information_schema", "segue"].into_iter().flat_map(|schema| {
        let all = relations(schema).iter().copied().flatten().enumerate();
        all.map(move |(place, relation)| {
            let oid = oids::system_relation(schema, relation.name, place);
            (schema, relation.name, oid, relation.columns.len())
        })
    });
    let fixed = statics::NAMES.iter().enumerate().map(|(place, name)| {
        ("pg_catalog", *name, oids::system_relation("pg_catalog", name, 100 + place), 0)
    });
    made.chain(fixed)
}

/// Whether a system relation is found without its schema.
pub(crate) fn is_on_search_path(oid: u32) -> bool {
    system_relations().any(|(schema, _, known, _)| known == oid && schema == "pg_catalog")
}

/// The OID of a relation by its name, qualified or not.
pub(crate) fn class_oid(catalog: &Catalog, name: &str) -> Option<u32> {
    let name = name.replace('"', "");
    let (schema, name) = name.rsplit_once('.').unwrap_or(("", &name));
    let known = |wanted: &str| schema.is_empty() || schema.ends_with(wanted);
    if known("public")
        && let Some(object) = catalog.by_name(name)
    {
        return Some(object.oid());
    }
    system_relations()
        .find(|(owner, relation, _, _)| {
            *relation == name && (*owner == schema || (schema.is_empty() && *owner == "pg_catalog"))
        })
        .map(|(_, _, oid, _)| oid)
}

fn class(of: &Class<'_>) -> Row {
    row![
        of.oid,
        of.name,
        of.namespace,
        0,
        0,
        oids::ROLE,
        of.access_method,
        of.oid,
        0,
        0,
        of.rows,
        0,
        0,
        of.has_index,
        false,
        "p",
        of.kind,
        of.columns,
        0,
        matches!(of.kind, "v" | "m"),
        false,
        false,
        false,
        false,
        true,
        if of.kind == "r" { "d" } else { "n" },
        false,
        0,
        0,
        0,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        0,
    ]
}
