//! The arrows between crates point down, as docs/architecture.md draws them.

use std::collections::BTreeMap;
use std::fs;

use segue_tidy::{files, root};

/// Each crate and the crates of this workspace that it may use. What is absent is the point.
const ARROWS: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("sql", &["types"]),
    ("formats", &["types"]),
    ("connect", &["types"]),
    ("records", &["types", "connect", "formats"]),
    ("connector-nats", &["types", "connect", "records"]),
    ("connector-pulsar", &["types", "connect", "records"]),
    ("connector-kafka", &["types", "connect", "records"]),
    ("connector-postgres", &["types", "connect"]),
    ("connector-files", &["types", "connect", "formats"]),
    ("connector-datagen", &["types", "connect"]),
    ("store", &["types"]),
    ("coordinate", &["types"]),
    ("flow", &["types"]),
    ("catalog", &["types", "sql"]),
    ("plan", &["types", "sql", "connect", "catalog", "flow", "formats"]),
    ("engine", &["types", "sql", "connect", "catalog", "flow", "coordinate", "plan", "store"]),
    ("serve", &["types", "sql", "connect", "catalog", "flow", "plan", "engine", "formats"]),
    (
        "segue",
        &[
            "types",
            "sql",
            "connect",
            "engine",
            "serve",
            "connector-kafka",
            "connector-nats",
            "connector-pulsar",
            "connector-postgres",
            "connector-files",
            "connector-datagen",
        ],
    ),
    ("testkit", &["types", "connect"]),
    (
        "bench",
        &[
            "types",
            "sql",
            "connect",
            "formats",
            "flow",
            "catalog",
            "plan",
            "engine",
            "testkit",
            "connector-kafka",
            "connector-postgres",
        ],
    ),
    ("tidy", &[]),
];

/// External crates that only some of ours may know.
const KNOWN_TO: &[(&str, &[&str])] = &[
    ("redb", &["store"]),
    ("pgwire", &["serve"]),
    ("arrow-pg", &["serve"]),
    ("datafusion", &["flow", "plan", "serve"]),
    ("rdkafka", &["connector-kafka", "testkit"]),
    ("async-nats", &["connector-nats", "testkit"]),
    (
        "tokio",
        &[
            "connect",
            "connector-kafka",
            "connector-nats",
            "connector-pulsar",
            "connector-postgres",
            "connector-files",
            "connector-datagen",
            "engine",
            "serve",
            "segue",
            "testkit",
            "bench",
        ],
    ),
];

#[test]
fn crates_use_only_what_lies_below_them() {
    for (name, used) in dependencies() {
        let allowed = ARROWS
            .iter()
            .find(|(crate_name, _)| *crate_name == name)
            .unwrap_or_else(|| panic!("{name} is not in the picture: add it to ARROWS"))
            .1;
        for dependency in used.iter().filter_map(|used| used.strip_prefix("segue-")) {
            assert!(allowed.contains(&dependency), "{name} may not use {dependency}");
        }
    }
}

#[test]
fn one_crate_knows_redb_and_one_knows_pgwire() {
    for (name, used) in dependencies() {
        for (external, known_to) in KNOWN_TO {
            let knows = used.iter().any(|used| used == external);
            assert!(!knows || known_to.contains(&name.as_str()), "{name} may not know {external}");
        }
    }
}

#[test]
fn the_pure_cores_read_no_clock_and_do_no_io() {
    for file in files(".rs") {
        let pure = file.path.starts_with("crates/coordinate/src")
            || file.path.starts_with("crates/flow/src");
        if !pure {
            continue;
        }
        for banned in ["SystemTime", "Instant::now", "std::fs", "std::net", "tokio", "rand::"] {
            let found = file.production_lines().any(|line| line.contains(banned));
            assert!(!found, "{} uses {banned}", file.path);
        }
    }
}

/// Crate → what its `[dependencies]` names; test-only dependencies may point anywhere.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let manifests = files("Cargo.toml");
    let crates = manifests.iter().filter(|manifest| manifest.path != "Cargo.toml");
    crates
        .map(|manifest| {
            let text = fs::read_to_string(root().join(&manifest.path)).expect("it was just listed");
            let name = text
                .lines()
                .find_map(|line| line.strip_prefix("name = \""))
                .expect("a manifest names its package")
                .trim_end_matches('"')
                .trim_start_matches("segue-")
                .to_owned();
            let used = text
                .lines()
                .skip_while(|line| *line != "[dependencies]")
                .skip(1)
                .take_while(|line| !line.starts_with('['))
                .filter_map(|line| line.split(['.', ' ', '=']).next())
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect();
            (name, used)
        })
        .collect()
}
