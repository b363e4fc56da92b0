//! information_schema: schemata, tables, columns, views, keys.

use segue_catalog::{Object, RelationKind};
use segue_types::{SqlType, sql_type_of};

use super::cells::{Cell, Kind, Relation, Row, Source, row};
use super::{View, class, oids, view_definition};
use crate::pg_type::pg_type_of;

pub(super) const RELATIONS: &[Relation] = &[
    Relation {
        name: "schemata",
        columns: &[
            ("catalog_name", Kind::Text),
            ("schema_name", Kind::Text),
            ("schema_owner", Kind::Text),
        ],
        source: Source::Catalog(|view| {
            let schema = |(name, _): &(&str, u32)| {
                row![view.identity.database.as_str(), *name, view.identity.user.as_str()]
            };
            oids::NAMESPACES.iter().map(schema).collect()
        }),
    },
    Relation {
        name: "tables",
        columns: &[
            ("table_catalog", Kind::Text),
            ("table_schema", Kind::Text),
            ("table_name", Kind::Text),
            ("table_type", Kind::Text),
            ("self_referencing_column_name", Kind::Text),
            ("reference_generation", Kind::Text),
            ("is_insertable_into", Kind::Text),
            ("is_typed", Kind::Text),
        ],
        source: Source::Catalog(tables),
    },
    Relation {
        name: "columns",
        columns: &[
            ("table_catalog", Kind::Text),
            ("table_schema", Kind::Text),
            ("table_name", Kind::Text),
            ("column_name", Kind::Text),
            ("ordinal_position", Kind::Integer),
            ("column_default", Kind::Text),
            ("is_nullable", Kind::Text),
            ("data_type", Kind::Text),
            ("character_maximum_length", Kind::Integer),
            ("numeric_precision", Kind::Integer),
            ("numeric_scale", Kind::Integer),
            ("datetime_precision", Kind::Integer),
            ("udt_catalog", Kind::Text),
            ("udt_schema", Kind::Text),
            ("udt_name", Kind::Text),
            ("is_identity", Kind::Text),
            ("is_generated", Kind::Text),
            ("is_updatable", Kind::Text),
        ],
        source: Source::Catalog(columns),
    },
    Relation {
        name: "views",
        columns: &[
            ("table_catalog", Kind::Text),
            ("table_schema", Kind::Text),
            ("table_name", Kind::Text),
            ("view_definition", Kind::Text),
            ("check_option", Kind::Text),
            ("is_updatable", Kind::Text),
            ("is_insertable_into", Kind::Text),
        ],
        source: Source::Catalog(views),
    },
    Relation {
        name: "table_constraints",
        columns: &[
            ("constraint_catalog", Kind::Text),
            ("constraint_schema", Kind::Text),
            ("constraint_name", Kind::Text),
            ("table_catalog", Kind::Text),
            ("table_schema", Kind::Text),
            ("table_name", Kind::Text),
            ("constraint_type", Kind::Text),
            ("is_deferrable", Kind::Text),
            ("initially_deferred", Kind::Text),
        ],
        source: Source::Catalog(table_constraints),
    },
    Relation {
        name: "key_column_usage",
        columns: &[
            ("constraint_catalog", Kind::Text),
            ("constraint_schema", Kind::Text),
            ("constraint_name", Kind::Text),
            ("table_catalog", Kind::Text),
            ("table_schema", Kind::Text),
            ("table_name", Kind::Text),
            ("column_name", Kind::Text),
            ("ordinal_position", Kind::Integer),
            ("position_in_unique_constraint", Kind::Integer),
        ],
        source: Source::Catalog(key_column_usage),
    },
    Relation {
        name: "referential_constraints",
        columns: &[
            ("constraint_catalog", Kind::Text),
            ("constraint_schema", Kind::Text),
            ("constraint_name", Kind::Text),
            ("unique_constraint_name", Kind::Text),
        ],
        source: Source::Catalog(|_| Vec::new()),
    },
    Relation {
        name: "routines",
        columns: &[
            ("specific_schema", Kind::Text),
            ("specific_name", Kind::Text),
            ("routine_schema", Kind::Text),
            ("routine_name", Kind::Text),
            ("routine_type", Kind::Text),
        ],
        source: Source::Catalog(|_| Vec::new()),
    },
];

fn tables(view: &View<'_>) -> Vec<Row> {
    let database = view.identity.database.as_str();
    let table = |schema: &str, name: &str, kind: &str, insertable: bool| {
        let insertable = if insertable { "YES" } else { "NO" };
        row![database, schema, name, kind, Cell::Null, Cell::Null, insertable, "NO"]
    };
    let objects = view.relations().map(|object| {
        let (kind, insertable) = match object.relation_kind() {
            RelationKind::Table => ("BASE TABLE", true),
            RelationKind::View => ("VIEW", false),
            RelationKind::MaterializedView => ("MATERIALIZED VIEW", false),
            RelationKind::Source => ("FOREIGN", false),
            RelationKind::Sink => unreachable!("a sink is not shown as a relation"),
        };
        table("public", &object.name, kind, insertable)
    });
    let system = class::system_relations().map(|(schema, name, _, _)| {
        let kind = if schema == "pg_catalog" { "BASE TABLE" } else { "VIEW" };
        table(schema, name, kind, false)
    });
    objects.chain(system).collect()
}

fn columns(view: &View<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for object in view.relations() {
        let table = ("public", object.name.as_str());
        let updatable = object.relation_kind() == RelationKind::Table;
        for (index, field) in object.schema.fields().iter().enumerate() {
            rows.push(column(view, table, index, field, updatable));
        }
    }
    for schema in ["information_schema", "segue", "pg_catalog"] {
        for relation in super::relations(schema).iter().copied().flatten() {
            for (index, field) in relation.schema().fields().iter().enumerate() {
                rows.push(column(view, (schema, relation.name), index, field, false));
            }
        }
    }
    rows
}

fn column(
    view: &View<'_>,
    (schema, table): (&str, &str),
    index: usize,
    field: &arrow::datatypes::Field,
    updatable: bool,
) -> Row {
    let database = view.identity.database.as_str();
    let ty = sql_type_of(field);
    let (precision, scale) = numeric_size(ty.as_ref());
    row![
        database,
        schema,
        table,
        field.name().as_str(),
        index + 1,
        Cell::Null,
        if field.is_nullable() { "YES" } else { "NO" },
        ty.as_ref().map_or_else(|| "text".to_owned(), data_type),
        Cell::Null,
        precision,
        scale,
        Cell::Null,
        database,
        "pg_catalog",
        pg_type_of(field).name(),
        "NO",
        "NEVER",
        if updatable { "YES" } else { "NO" },
    ]
}

/// The standard's names.
fn data_type(ty: &SqlType) -> String {
    match ty {
        SqlType::Numeric { .. } => "numeric".to_owned(),
        SqlType::Timestamp => "timestamp without time zone".to_owned(),
        SqlType::Timestamptz => "timestamp with time zone".to_owned(),
        SqlType::Time => "time without time zone".to_owned(),
        SqlType::Array(_) => "ARRAY".to_owned(),
        SqlType::Struct(_) => "record".to_owned(),
        other => other.to_string(),
    }
}

fn numeric_size(ty: Option<&SqlType>) -> (Option<i32>, Option<i32>) {
    match ty {
        Some(SqlType::SmallInt) => (Some(16), Some(0)),
        Some(SqlType::Integer) => (Some(32), Some(0)),
        Some(SqlType::BigInt) => (Some(64), Some(0)),
        Some(SqlType::Real) => (Some(24), None),
        Some(SqlType::Double) => (Some(53), None),
        Some(ty @ SqlType::Numeric { precision, scale }) if *ty != SqlType::NUMERIC => {
            (Some(i32::from(*precision)), Some(i32::from(*scale)))
        }
        _ => (None, None),
    }
}

fn views(view: &View<'_>) -> Vec<Row> {
    let database = view.identity.database.as_str();
    let catalog = &view.reading.published.catalog;
    catalog
        .iter()
        .filter(|object| object.relation_kind() == RelationKind::View)
        .map(|object| {
            let definition = view_definition(object);
            row![database, "public", object.name.as_str(), definition, "NONE", "NO", "NO"]
        })
        .collect()
}

fn keyed<'a>(view: &'a View<'_>) -> Vec<&'a Object> {
    let objects = view.relations().map(AsRef::as_ref);
    objects.filter(|object| class::has_index(object)).collect()
}

fn table_constraints(view: &View<'_>) -> Vec<Row> {
    let database = view.identity.database.as_str();
    let constraint = |object: &&Object| {
        row![
            database,
            "public",
            format!("{}_pkey", object.name),
            database,
            "public",
            object.name.as_str(),
            "PRIMARY KEY",
            "NO",
            "NO",
        ]
    };
    keyed(view).iter().map(constraint).collect()
}

fn key_column_usage(view: &View<'_>) -> Vec<Row> {
    let database = view.identity.database.as_str();
    let mut rows = Vec::new();
    for object in keyed(view) {
        for (place, column) in object.key.iter().enumerate() {
            rows.push(row![
                database,
                "public",
                format!("{}_pkey", object.name),
                database,
                "public",
                object.name.as_str(),
                object.schema.field(*column).name().as_str(),
                place + 1,
                Cell::Null,
            ]);
        }
    }
    rows
}
