//! What there is one of, or a few: namespaces, the database, the session's role, settings, sessions, locks.

use super::cells::{Cell, Kind, Relation, Row, Source, row};
use super::{View, oids};
use crate::settings::{KNOWN, Kind as SettingKind};

const ROLE_COLUMNS: &[(&str, Kind)] = &[
    ("rolname", Kind::Text),
    ("rolsuper", Kind::Boolean),
    ("rolinherit", Kind::Boolean),
    ("rolcreaterole", Kind::Boolean),
    ("rolcreatedb", Kind::Boolean),
    ("rolcanlogin", Kind::Boolean),
    ("rolreplication", Kind::Boolean),
    ("rolconnlimit", Kind::Integer),
    ("rolpassword", Kind::Text),
    ("rolvaliduntil", Kind::Timestamptz),
    ("rolbypassrls", Kind::Boolean),
    ("rolconfig", Kind::Texts),
    ("oid", Kind::Oid("oid")),
];

const USER_COLUMNS: &[(&str, Kind)] = &[
    ("usename", Kind::Text),
    ("usesysid", Kind::Oid("oid")),
    ("usecreatedb", Kind::Boolean),
    ("usesuper", Kind::Boolean),
    ("userepl", Kind::Boolean),
    ("usebypassrls", Kind::Boolean),
    ("passwd", Kind::Text),
    ("valuntil", Kind::Timestamptz),
    ("useconfig", Kind::Texts),
];

pub(super) const RELATIONS: &[Relation] = &[
    // What Segue does not have; psql lists it all the same.
    Relation {
        name: "pg_policy",
        columns: &[
            ("oid", Kind::Oid("oid")),
            ("polname", Kind::Text),
            ("polrelid", Kind::Oid("oid")),
            ("polcmd", Kind::Char),
            ("polpermissive", Kind::Boolean),
            ("polroles", Kind::Oids),
            ("polqual", Kind::Text),
            ("polwithcheck", Kind::Text),
        ],
        source: Source::Catalog(|_| Vec::new()),
    },
    Relation {
        name: "pg_default_acl",
        columns: &[
            ("oid", Kind::Oid("oid")),
            ("defaclrole", Kind::Oid("oid")),
            ("defaclnamespace", Kind::Oid("oid")),
            ("defaclobjtype", Kind::Char),
            ("defaclacl", Kind::Texts),
        ],
        source: Source::Catalog(|_| Vec::new()),
    },
    Relation {
        name: "pg_event_trigger",
        columns: &[
            ("oid", Kind::Oid("oid")),
            ("evtname", Kind::Text),
            ("evtevent", Kind::Text),
            ("evtowner", Kind::Oid("oid")),
            ("evtfoid", Kind::Oid("oid")),
            ("evtenabled", Kind::Char),
            ("evttags", Kind::Texts),
        ],
        source: Source::Catalog(|_| Vec::new()),
    },
    Relation {
        name: "pg_namespace",
        columns: &[
            ("oid", Kind::Oid("oid")),
            ("nspname", Kind::Text),
            ("nspowner", Kind::Oid("oid")),
            ("nspacl", Kind::Texts),
        ],
        source: Source::Catalog(|_| {
            oids::NAMESPACES
                .iter()
                .map(|(name, oid)| row![*oid, *name, oids::ROLE, Cell::Null])
                .collect()
        }),
    },
    Relation {
        name: "pg_database",
        columns: &[
            ("oid", Kind::Oid("oid")),
            ("datname", Kind::Text),
            ("datdba", Kind::Oid("oid")),
            ("encoding", Kind::Integer),
            ("datlocprovider", Kind::Char),
            ("datistemplate", Kind::Boolean),
            ("datallowconn", Kind::Boolean),
            ("datconnlimit", Kind::Integer),
            ("datfrozenxid", Kind::Integer),
            ("datminmxid", Kind::Integer),
            ("dattablespace", Kind::Oid("oid")),
            ("datcollate", Kind::Text),
            ("datctype", Kind::Text),
            ("daticulocale", Kind::Text),
            ("datcollversion", Kind::Text),
            ("datacl", Kind::Texts),
        ],
        source: Source::Catalog(databases),
    },
    Relation { name: "pg_roles", columns: ROLE_COLUMNS, source: Source::Catalog(roles) },
    Relation { name: "pg_authid", columns: ROLE_COLUMNS, source: Source::Catalog(roles) },
    Relation { name: "pg_user", columns: USER_COLUMNS, source: Source::Catalog(users) },
    Relation { name: "pg_shadow", columns: USER_COLUMNS, source: Source::Catalog(users) },
    Relation {
        name: "pg_group",
        columns: &[
            ("groname", Kind::Text),
            ("grosysid", Kind::Oid("oid")),
            ("grolist", Kind::Oids),
        ],
        source: Source::Catalog(|_| Vec::new()),
    },
    Relation {
        name: "pg_settings",
        columns: &[
            ("name", Kind::Text),
            ("setting", Kind::Text),
            ("unit", Kind::Text),
            ("category", Kind::Text),
            ("short_desc", Kind::Text),
            ("extra_desc", Kind::Text),
            ("context", Kind::Text),
            ("vartype", Kind::Text),
            ("source", Kind::Text),
            ("min_val", Kind::Text),
            ("max_val", Kind::Text),
            ("enumvals", Kind::Texts),
            ("boot_val", Kind::Text),
            ("reset_val", Kind::Text),
            ("sourcefile", Kind::Text),
            ("sourceline", Kind::Integer),
            ("pending_restart", Kind::Boolean),
        ],
        source: Source::Catalog(settings),
    },
    Relation {
        name: "pg_stat_activity",
        columns: &[
            ("datid", Kind::Oid("oid")),
            ("datname", Kind::Text),
            ("pid", Kind::Integer),
            ("usesysid", Kind::Oid("oid")),
            ("usename", Kind::Text),
            ("application_name", Kind::Text),
            ("client_addr", Kind::Text),
            ("client_hostname", Kind::Text),
            ("client_port", Kind::Integer),
            ("backend_start", Kind::Timestamptz),
            ("xact_start", Kind::Timestamptz),
            ("query_start", Kind::Timestamptz),
            ("state_change", Kind::Timestamptz),
            ("wait_event_type", Kind::Text),
            ("wait_event", Kind::Text),
            ("state", Kind::Text),
            ("backend_xid", Kind::Integer),
            ("backend_xmin", Kind::Integer),
            ("query", Kind::Text),
            ("backend_type", Kind::Text),
        ],
        source: Source::Catalog(activity),
    },
    Relation {
        name: "pg_locks",
        columns: &[
            ("locktype", Kind::Text),
            ("database", Kind::Oid("oid")),
            ("relation", Kind::Oid("oid")),
            ("transactionid", Kind::Integer),
            ("pid", Kind::Integer),
            ("mode", Kind::Text),
            ("granted", Kind::Boolean),
        ],
        source: Source::Catalog(|_| Vec::new()),
    },
];

fn databases(view: &View<'_>) -> Vec<Row> {
    vec![row![
        oids::DATABASE,
        view.identity.database.as_str(),
        oids::ROLE,
        6,
        "c",
        false,
        true,
        -1,
        0,
        0,
        1663,
        "C.UTF-8",
        "C.UTF-8",
        Cell::Null,
        Cell::Null,
        Cell::Null,
    ]]
}

fn roles(view: &View<'_>) -> Vec<Row> {
    vec![row![
        view.identity.user.as_str(),
        true,
        true,
        true,
        true,
        true,
        true,
        -1,
        "********",
        Cell::Null,
        true,
        Cell::Null,
        oids::ROLE,
    ]]
}

fn users(view: &View<'_>) -> Vec<Row> {
    vec![row![
        view.identity.user.as_str(),
        oids::ROLE,
        true,
        true,
        true,
        true,
        "********",
        Cell::Null,
        Cell::Null,
    ]]
}

fn settings(view: &View<'_>) -> Vec<Row> {
    let setting = |known: &crate::settings::Known| {
        let (context, kind) = match known.kind {
            SettingKind::Internal => ("internal", "string"),
            SettingKind::Boolean => ("user", "bool"),
            SettingKind::Integer => ("user", "integer"),
            SettingKind::Text | SettingKind::Duration => ("user", "string"),
        };
        let name = match known.name {
            "datestyle" => "DateStyle",
            "intervalstyle" => "IntervalStyle",
            "timezone" => "TimeZone",
            other => other,
        };
        row![
            name,
            view.identity.settings.get(known.name).unwrap_or_default(),
            Cell::Null,
            "Settings of a session",
            known.doc,
            Cell::Null,
            context,
            kind,
            "session",
            Cell::Null,
            Cell::Null,
            Cell::Null,
            known.default,
            known.default,
            Cell::Null,
            Cell::Null,
            false,
        ]
    };
    KNOWN.iter().map(setting).collect()
}

fn activity(view: &View<'_>) -> Vec<Row> {
    vec![row![
        oids::DATABASE,
        view.identity.database.as_str(),
        view.identity.pid,
        oids::ROLE,
        view.identity.user.as_str(),
        view.identity.settings.get("application_name").unwrap_or_default(),
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        "active",
        Cell::Null,
        Cell::Null,
        Cell::Null,
        "client backend",
    ]]
}
