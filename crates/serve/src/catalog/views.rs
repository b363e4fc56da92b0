//! pg_tables, pg_views, pg_matviews, pg_stat_user_tables, and the definitions that they show.

use segue_catalog::{Object, RelationKind};

use super::cells::{Cell, Kind, Relation, Row, Source, row};
use super::{View, class};

pub(super) const RELATIONS: &[Relation] = &[
    Relation {
        name: "pg_tables",
        columns: &[
            ("schemaname", Kind::Text),
            ("tablename", Kind::Text),
            ("tableowner", Kind::Text),
            ("tablespace", Kind::Text),
            ("hasindexes", Kind::Boolean),
            ("hasrules", Kind::Boolean),
            ("hastriggers", Kind::Boolean),
            ("rowsecurity", Kind::Boolean),
        ],
        source: Source::Catalog(tables),
    },
    Relation {
        name: "pg_views",
        columns: &[
            ("schemaname", Kind::Text),
            ("viewname", Kind::Text),
            ("viewowner", Kind::Text),
            ("definition", Kind::Text),
        ],
        source: Source::Catalog(|view| {
            of_kind(view, RelationKind::View)
                .iter()
                .map(|object| {
                    let owner = view.identity.user.as_str();
                    row!["public", object.name.as_str(), owner, view_definition(object)]
                })
                .collect()
        }),
    },
    Relation {
        name: "pg_matviews",
        columns: &[
            ("schemaname", Kind::Text),
            ("matviewname", Kind::Text),
            ("matviewowner", Kind::Text),
            ("tablespace", Kind::Text),
            ("hasindexes", Kind::Boolean),
            ("ispopulated", Kind::Boolean),
            ("definition", Kind::Text),
        ],
        source: Source::Catalog(|view| {
            of_kind(view, RelationKind::MaterializedView)
                .iter()
                .map(|object| {
                    let owner = view.identity.user.as_str();
                    let name = object.name.as_str();
                    row!["public", name, owner, Cell::Null, false, true, view_definition(object)]
                })
                .collect()
        }),
    },
    Relation {
        name: "pg_stat_user_tables",
        columns: &[
            ("relid", Kind::Oid("oid")),
            ("schemaname", Kind::Text),
            ("relname", Kind::Text),
            ("n_live_tup", Kind::BigInt),
            ("n_dead_tup", Kind::BigInt),
        ],
        source: Source::Catalog(|view| {
            let stored = view.relations().filter(|object| object.is_stored());
            stored
                .map(|object| {
                    let rows = view.reading.version(object.id).map_or(0, crate::backend::row_count);
                    row![object.oid(), "public", object.name.as_str(), rows, 0]
                })
                .collect()
        }),
    },
];

fn of_kind<'a>(view: &'a View<'_>, kind: RelationKind) -> Vec<&'a Object> {
    let objects = view.relations().map(AsRef::as_ref);
    objects.filter(|object| object.relation_kind() == kind).collect()
}

fn tables(view: &View<'_>) -> Vec<Row> {
    let table = |object: &&Object| {
        let owner = view.identity.user.as_str();
        let indexed = class::has_index(object);
        row!["public", object.name.as_str(), owner, Cell::Null, indexed, false, false, false]
    };
    of_kind(view, RelationKind::Table).iter().map(table).collect()
}

/// The query of a view, with a semicolon, as `pg_get_viewdef` gives it; `None` for what has no query.
pub(crate) fn view_definition(object: &Object) -> Option<String> {
    let text = crate::backend::view_query_text(object).ok()?;
    Some(format!(" {text};"))
}
