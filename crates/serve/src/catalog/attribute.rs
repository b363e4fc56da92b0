//! pg_attribute and pg_attrdef: the columns of every relation.

use arrow::datatypes::Field;
use segue_types::sql_type_of;

use super::cells::{Cell, Kind, Relation, Row, Source, row};
use super::{View, class, oids, relation};
use crate::pg_type::{pg_type_of, type_modifier, type_size};

pub(super) const RELATIONS: &[Relation] = &[
    Relation {
        name: "pg_attribute",
        columns: &[
            ("attrelid", Kind::Oid("regclass")),
            ("attname", Kind::Text),
            ("atttypid", Kind::Oid("regtype")),
            ("attstattarget", Kind::SmallInt),
            ("attlen", Kind::SmallInt),
            ("attnum", Kind::SmallInt),
            ("attndims", Kind::Integer),
            ("attcacheoff", Kind::Integer),
            ("atttypmod", Kind::Integer),
            ("attbyval", Kind::Boolean),
            ("attalign", Kind::Char),
            ("attstorage", Kind::Char),
            ("attcompression", Kind::Char),
            ("attnotnull", Kind::Boolean),
            ("atthasdef", Kind::Boolean),
            ("atthasmissing", Kind::Boolean),
            ("attidentity", Kind::Char),
            ("attgenerated", Kind::Char),
            ("attisdropped", Kind::Boolean),
            ("attislocal", Kind::Boolean),
            ("attinhcount", Kind::Integer),
            ("attcollation", Kind::Oid("oid")),
            ("attacl", Kind::Texts),
            ("attoptions", Kind::Texts),
            ("attfdwoptions", Kind::Texts),
            ("attmissingval", Kind::Text),
        ],
        source: Source::Catalog(attributes),
    },
    Relation {
        name: "pg_attrdef",
        columns: &[
            ("oid", Kind::Oid("oid")),
            ("adrelid", Kind::Oid("regclass")),
            ("adnum", Kind::SmallInt),
            ("adbin", Kind::Text),
        ],
        source: Source::Catalog(|_| Vec::new()),
    },
];

/// The collation of text columns; every other type has none.
const DEFAULT_COLLATION: u32 = 100;

fn attributes(view: &View<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for object in view.relations() {
        for (index, field) in object.schema.fields().iter().enumerate() {
            rows.push(attribute(object.oid(), index, field));
        }
        if class::has_index(object) {
            for (index, column) in object.key.iter().enumerate() {
                rows.push(attribute(oids::index(object), index, object.schema.field(*column)));
            }
        }
    }
    for (schema, name, oid, _) in class::system_relations() {
        let Some(relation) = relation(schema, name) else { continue };
        for (index, field) in relation.schema().fields().iter().enumerate() {
            rows.push(attribute(oid, index, field));
        }
    }
    rows
}

fn attribute(relation: u32, index: usize, field: &Field) -> Row {
    let ty = pg_type_of(field);
    let modifier = sql_type_of(field).as_ref().map_or(-1, type_modifier);
    let size = type_size(&ty);
    let is_array = matches!(ty.kind(), postgres_types::Kind::Array(_));
    let is_text = ty == postgres_types::Type::TEXT;
    row![
        relation,
        field.name().as_str(),
        ty.oid(),
        -1,
        size,
        index + 1,
        i32::from(is_array),
        -1,
        modifier,
        (1..=8).contains(&size),
        if size == 8 { "d" } else { "i" },
        if size > 0 { "p" } else { "x" },
        "",
        !field.is_nullable(),
        false,
        false,
        "",
        "",
        false,
        true,
        0,
        if is_text { DEFAULT_COLLATION } else { 0 },
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
    ]
}
