//! Foreign tables, servers and wrappers: how psql is told of a source and its stages.

use segue_catalog::{Object, RelationKind};

use super::cells::{Cell, Kind, Relation, Row, Source, row};
use super::{View, oids};

pub(super) const RELATIONS: &[Relation] = &[
    Relation {
        name: "pg_foreign_table",
        columns: &[
            ("ftrelid", Kind::Oid("regclass")),
            ("ftserver", Kind::Oid("oid")),
            ("ftoptions", Kind::Texts),
        ],
        source: Source::Catalog(|view| {
            sources(view)
                .iter()
                .map(|object| {
                    row![object.oid(), oids::server(object), Cell::Texts(options(object))]
                })
                .collect()
        }),
    },
    Relation {
        name: "pg_foreign_server",
        columns: &[
            ("oid", Kind::Oid("oid")),
            ("srvname", Kind::Text),
            ("srvowner", Kind::Oid("oid")),
            ("srvfdw", Kind::Oid("oid")),
            ("srvtype", Kind::Text),
            ("srvversion", Kind::Text),
            ("srvacl", Kind::Texts),
            ("srvoptions", Kind::Texts),
        ],
        source: Source::Catalog(servers),
    },
    Relation {
        name: "pg_foreign_data_wrapper",
        columns: &[
            ("oid", Kind::Oid("oid")),
            ("fdwname", Kind::Text),
            ("fdwowner", Kind::Oid("oid")),
            ("fdwhandler", Kind::Oid("oid")),
            ("fdwvalidator", Kind::Oid("oid")),
            ("fdwacl", Kind::Texts),
            ("fdwoptions", Kind::Texts),
        ],
        source: Source::Catalog(|_| {
            vec![row![WRAPPER, "segue", oids::ROLE, 0, 0, Cell::Null, Cell::Null]]
        }),
    },
];

/// The OID of the one wrapper.
const WRAPPER: u32 = 13_900;

fn sources<'a>(view: &'a View<'_>) -> Vec<&'a Object> {
    let objects = view.relations().map(AsRef::as_ref);
    objects.filter(|object| object.relation_kind() == RelationKind::Source).collect()
}

/// One option a stage, as psql prints it: `history 'postgres, bounded'`.
fn options(object: &Object) -> Vec<String> {
    let option = |stage: &segue_catalog::StageObject| {
        format!("{} '{}, {}'", stage.name, stage.connector, stage.boundedness)
    };
    object.stages().iter().map(option).collect()
}

/// The server of a source is called by the connectors of its stages.
fn servers(view: &View<'_>) -> Vec<Row> {
    let server = |object: &&Object| {
        let connectors: Vec<&str> =
            object.stages().iter().map(|stage| stage.connector.as_str()).collect();
        row![
            oids::server(object),
            connectors.join(" then "),
            oids::ROLE,
            WRAPPER,
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
        ]
    };
    sources(view).iter().map(server).collect()
}
