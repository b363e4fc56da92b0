//! The tables as rows of system relations and as the support matrix.
//!
//! What a connector can do depends on how it is configured, so it is asked about the configurations below; those that
//! it refuses are left out, and those with the same answer are shown once.

use std::fmt::Write;
use std::sync::Arc;

use arrow::datatypes::Schema;
use segue_connect::{
    Capabilities, Connector, Format, OnError, Options, ReadConfig, Registry, RowFormat, Start, Stop,
};
use segue_types::SqlType;

use super::{HANDOFF_RULES, HandoffRule, PAIRS, Predecessors, StartKind};

/// A row of `segue.connectors`: one way to configure a connector, and what it can do then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectorRow {
    pub connector: &'static str,
    /// `FORMAT UPSERT, PRIMARY KEY, STOP AT`: the clauses that make the difference.
    pub configuration: String,
    pub boundedness: String,
    pub semantics: String,
    pub resume: String,
    /// Handoff kinds, comma-separated.
    pub produces: String,
    pub accepts: String,
    pub latest: bool,
    pub has_data: String,
    pub replayable: String,
    pub ordering: String,
}

/// A row of `segue.compatibility`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompatibilityRow {
    pub predecessor: &'static str,
    pub successor: &'static str,
    pub verdict: &'static str,
    pub rule: &'static str,
    pub remedy: &'static str,
}

/// `segue.compatibility`
pub fn compatibility_rows() -> Vec<CompatibilityRow> {
    let row = |pair: &super::Pair| CompatibilityRow {
        predecessor: pair.predecessor.as_str(),
        successor: pair.successor.as_str(),
        verdict: pair.verdict.as_str(),
        rule: pair.rule,
        remedy: pair.remedy,
    };
    PAIRS.iter().map(row).collect()
}

/// `segue.connectors`
pub fn connector_rows(registry: &Registry) -> Vec<ConnectorRow> {
    registry.iter().flat_map(|connector| rows_of(connector.as_ref())).collect()
}

fn rows_of(connector: &dyn Connector) -> Vec<ConnectorRow> {
    let mut known: Vec<Capabilities> = Vec::new();
    let mut rows = Vec::new();
    for probe in probes(connector) {
        let Ok(capabilities) = connector.describe(&probe.config(connector)) else { continue };
        if known.contains(&capabilities) {
            continue;
        }
        rows.push(row(connector.name(), probe.clauses(), &capabilities));
        known.push(capabilities);
    }
    rows
}

fn row(connector: &'static str, configuration: String, can: &Capabilities) -> ConnectorRow {
    ConnectorRow {
        connector,
        configuration,
        boundedness: can.boundedness.to_string(),
        semantics: can.semantics.to_string(),
        resume: can.resume.to_string(),
        produces: comma_separated(&can.produces),
        accepts: comma_separated(&can.accepts),
        latest: can.latest,
        has_data: can.has_data.to_string(),
        replayable: can.replayable.to_string(),
        ordering: can.ordering.to_string(),
    }
}

fn comma_separated(items: &[impl ToString]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A configuration to ask about.
#[derive(Clone, Copy)]
struct Probe {
    format: Option<(RowFormat, &'static str)>,
    /// An option that changes what the read can do.
    option: Option<(&'static str, &'static str)>,
    keyed: bool,
    stops: bool,
}

/// Options that make a read bounded or continuous.
const CHANGING: &[(&str, &str)] = &[("rows", "1"), ("refresh.interval.sec", "60")];

fn probes(connector: &dyn Connector) -> Vec<Probe> {
    let formats = [
        None,
        Some((RowFormat::Plain, "json")),
        Some((RowFormat::Upsert, "json")),
        Some((RowFormat::Plain, "csv")),
        Some((RowFormat::Plain, "parquet")),
    ];
    let has = |name: &str| connector.options().iter().any(|spec| spec.name == name);
    let changing = CHANGING.iter().filter(|(name, _)| has(name)).map(|option| Some(*option));
    let mut probes = Vec::new();
    for option in [None].into_iter().chain(changing) {
        for format in formats {
            for (keyed, stops) in [(false, false), (true, false), (false, true), (true, true)] {
                probes.push(Probe { format, option, keyed, stops });
            }
        }
    }
    probes
}

/// Values that let a connector read the rest of a configuration, by option.
const EXAMPLES: &[(&str, &str)] = &[
    ("url", "{connector}://user@localhost/database"),
    ("query", "SELECT 1"),
    ("path", "/data"),
    ("properties.bootstrap.server", "localhost:9092"),
    ("service.url", "{connector}://localhost:6650"),
];

impl Probe {
    fn clauses(self) -> String {
        let mut clauses = match self.format {
            None => Vec::new(),
            Some((RowFormat::Plain, _)) => vec!["FORMAT PLAIN"],
            Some((RowFormat::Upsert, _)) => vec!["FORMAT UPSERT"],
        };
        clauses.extend(self.option.map(|(name, _)| name));
        clauses.extend(self.keyed.then_some("PRIMARY KEY"));
        clauses.extend(self.stops.then_some("STOP AT"));
        clauses.join(", ")
    }

    fn config(self, connector: &dyn Connector) -> ReadConfig {
        let mut options = Options::default();
        for spec in connector.options() {
            let example = EXAMPLES.iter().find(|(name, _)| *name == spec.name);
            let example = example.map(|(_, value)| value.replace("{connector}", connector.name()));
            if let Some(value) = example.or_else(|| spec.required.then(|| "example".to_owned())) {
                options.0.insert(spec.name.to_owned(), value);
            }
        }
        if let Some((name, value)) = self.option {
            options.0.insert(name.to_owned(), value.to_owned());
        }
        let (rows, encode) = self.format.unwrap_or((RowFormat::Plain, "native"));
        ReadConfig {
            stage: "example".to_owned(),
            options,
            format: Format { rows, encode: encode.to_owned(), options: Options::default() },
            start: Start::Earliest,
            stop: self.stops.then_some(Stop::Latest),
            schema: Arc::new(Schema::new(vec![SqlType::BigInt.field("id", !self.keyed)])),
            declared_columns: 1,
            key: if self.keyed { vec![0] } else { Vec::new() },
            includes: Vec::new(),
            on_error: OnError::DeadLetter,
        }
    }
}

/// The support matrix, in Markdown.
pub fn support_matrix(registry: &Registry) -> String {
    let mut page = String::from("# Support matrix\n\nPrinted from the planner's own tables.\n");
    write_connectors(&mut page, registry);
    write_options(&mut page, registry);
    write_handoffs(&mut page);
    write_pairs(&mut page);
    page
}

fn write_row(page: &mut String, cells: &[&str]) {
    let escaped: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    writeln!(page, "| {} |", escaped.join(" | ")).expect("a String takes all");
}

fn write_head(page: &mut String, title: &str, cells: &[&str]) {
    writeln!(page, "\n## {title}\n").expect("a String takes all");
    write_row(page, cells);
    writeln!(page, "|{}", "---|".repeat(cells.len())).expect("a String takes all");
}

fn write_connectors(page: &mut String, registry: &Registry) {
    write_head(
        page,
        "Connectors",
        &[
            "connector",
            "with",
            "read",
            "rows",
            "resumes by",
            "produces",
            "accepts",
            "latest",
            "has data",
            "replayable",
            "ordering",
        ],
    );
    for row in connector_rows(registry) {
        let cells: [&str; 11] = [
            row.connector,
            &row.configuration,
            &row.boundedness,
            &row.semantics,
            &row.resume,
            &row.produces,
            &row.accepts,
            if row.latest { "yes" } else { "no" },
            &row.has_data,
            &row.replayable,
            &row.ordering,
        ];
        write_row(page, &cells);
    }
}

fn write_options(page: &mut String, registry: &Registry) {
    write_head(page, "Options", &["connector", "option", "", "meaning"]);
    write_row(page, &["every one", "`on_error`", "", "`dead_letter` (the default) or `fail`."]);
    for connector in registry.iter() {
        for spec in connector.options() {
            let name = format!("`{}`", spec.name);
            let marks = match (spec.required, spec.secret) {
                (true, true) => "required, secret",
                (true, false) => "required",
                (false, true) => "secret",
                (false, false) => "",
            };
            write_row(page, &[connector.name(), &name, marks, spec.doc]);
        }
    }
}

fn write_handoffs(page: &mut String) {
    write_head(page, "Handoffs", &["start", "after", "needs", "continuity", "what is promised"]);
    for rule in HANDOFF_RULES {
        let needs = match (rule.kind, rule.accepted_by) {
            (Some(kind), _) => kind.to_string(),
            (None, []) => String::new(),
            (None, clauses) => {
                clauses.iter().map(|weak| weak.as_sql()).collect::<Vec<_>>().join(" or ")
            }
        };
        let continuity = rule.continuity.to_string();
        write_row(page, &[start_words(rule), after(rule), &needs, &continuity, rule.promise]);
    }
}

fn start_words(rule: &HandoffRule) -> &'static str {
    match rule.start {
        StartKind::Whole => "none: the stage is read whole",
        start => start.as_sql(),
    }
}

fn after(rule: &HandoffRule) -> &'static str {
    match rule.predecessors {
        Predecessors::All => "any rows",
        Predecessors::Events => "append",
        Predecessors::Keyed => "state, upsert, changelog",
    }
}

fn write_pairs(page: &mut String) {
    write_head(page, "Row semantics", &["first", "then", "", "why", "remedy"]);
    for row in compatibility_rows() {
        write_row(page, &[row.predecessor, row.successor, row.verdict, row.rule, row.remedy]);
    }
}
