//! pg_constraint and pg_index: the primary keys of tables.

use segue_catalog::Object;

use super::cells::{Cell, Kind, Relation, Row, Source, row};
use super::{View, class, oids};

pub(super) const RELATIONS: &[Relation] = &[
    Relation {
        name: "pg_constraint",
        columns: &[
            ("oid", Kind::Oid("oid")),
            ("conname", Kind::Text),
            ("connamespace", Kind::Oid("regnamespace")),
            ("contype", Kind::Char),
            ("condeferrable", Kind::Boolean),
            ("condeferred", Kind::Boolean),
            ("convalidated", Kind::Boolean),
            ("conrelid", Kind::Oid("regclass")),
            ("contypid", Kind::Oid("regtype")),
            ("conindid", Kind::Oid("regclass")),
            ("conparentid", Kind::Oid("oid")),
            ("confrelid", Kind::Oid("regclass")),
            ("confupdtype", Kind::Char),
            ("confdeltype", Kind::Char),
            ("confmatchtype", Kind::Char),
            ("conislocal", Kind::Boolean),
            ("coninhcount", Kind::Integer),
            ("connoinherit", Kind::Boolean),
            ("conkey", Kind::SmallInts),
            ("confkey", Kind::SmallInts),
            ("conpfeqop", Kind::Oids),
            ("conppeqop", Kind::Oids),
            ("conffeqop", Kind::Oids),
            ("confdelsetcols", Kind::SmallInts),
            ("conexclop", Kind::Oids),
            ("conbin", Kind::Text),
        ],
        source: Source::Catalog(constraints),
    },
    Relation {
        name: "pg_index",
        columns: &[
            ("indexrelid", Kind::Oid("regclass")),
            ("indrelid", Kind::Oid("regclass")),
            ("indnatts", Kind::SmallInt),
            ("indnkeyatts", Kind::SmallInt),
            ("indisunique", Kind::Boolean),
            ("indnullsnotdistinct", Kind::Boolean),
            ("indisprimary", Kind::Boolean),
            ("indisexclusion", Kind::Boolean),
            ("indimmediate", Kind::Boolean),
            ("indisclustered", Kind::Boolean),
            ("indisvalid", Kind::Boolean),
            ("indcheckxmin", Kind::Boolean),
            ("indisready", Kind::Boolean),
            ("indislive", Kind::Boolean),
            ("indisreplident", Kind::Boolean),
            ("indkey", Kind::SmallInts),
            ("indcollation", Kind::Oids),
            ("indclass", Kind::Oids),
            ("indoption", Kind::SmallInts),
            ("indexprs", Kind::Text),
            ("indpred", Kind::Text),
        ],
        source: Source::Catalog(indexes),
    },
    Relation {
        name: "pg_indexes",
        columns: &[
            ("schemaname", Kind::Text),
            ("tablename", Kind::Text),
            ("indexname", Kind::Text),
            ("tablespace", Kind::Text),
            ("indexdef", Kind::Text),
        ],
        source: Source::Catalog(|view| {
            keyed(view)
                .iter()
                .map(|object| {
                    row![
                        "public",
                        object.name.as_str(),
                        format!("{}_pkey", object.name),
                        Cell::Null,
                        index_definition(object),
                    ]
                })
                .collect()
        }),
    },
];

fn keyed<'a>(view: &'a View<'_>) -> Vec<&'a Object> {
    let objects = view.relations().map(AsRef::as_ref);
    objects.filter(|object| class::has_index(object)).collect()
}

/// Column numbers count from 1.
fn key_numbers(object: &Object) -> Cell {
    Cell::Integers(object.key.iter().map(|column| *column as i64 + 1).collect())
}

fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

fn key_columns(object: &Object) -> String {
    let names = object.key.iter().map(|column| quoted(object.schema.field(*column).name()));
    names.collect::<Vec<_>>().join(", ")
}

/// `PRIMARY KEY (a, b)`.
pub(crate) fn constraint_definition(object: &Object) -> String {
    format!("PRIMARY KEY ({})", key_columns(object))
}

/// The index behind the primary key, as CREATE INDEX would say it.
pub(crate) fn index_definition(object: &Object) -> String {
    format!(
        "CREATE UNIQUE INDEX {} ON public.{} USING btree ({})",
        quoted(&format!("{}_pkey", object.name)),
        quoted(&object.name),
        key_columns(object)
    )
}

fn constraints(view: &View<'_>) -> Vec<Row> {
    let constraint = |object: &&Object| {
        row![
            oids::constraint(object),
            format!("{}_pkey", object.name),
            oids::namespace("public"),
            "p",
            false,
            false,
            true,
            object.oid(),
            0,
            oids::index(object),
            0,
            0,
            " ",
            " ",
            " ",
            true,
            0,
            true,
            key_numbers(object),
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
        ]
    };
    keyed(view).iter().map(constraint).collect()
}

fn indexes(view: &View<'_>) -> Vec<Row> {
    let index = |object: &&Object| {
        let width = object.key.len();
        row![
            oids::index(object),
            object.oid(),
            width,
            width,
            true,
            false,
            true,
            false,
            true,
            false,
            true,
            false,
            true,
            true,
            false,
            key_numbers(object),
            Cell::Integers(vec![0; width]),
            Cell::Integers(vec![0; width]),
            Cell::Integers(vec![0; width]),
            Cell::Null,
            Cell::Null,
        ]
    };
    keyed(view).iter().map(index).collect()
}
