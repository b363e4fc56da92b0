//! Sources and tables, and what the planner makes of their stages, as files: `cases/*.sql`.
//!
//! A case is a statement and, below it, what is expected, in lines that begin with `--> `: the plan and its notices, or
//! the error. `UPDATE_CASES=1 cargo test -p segue-plan --test stages` writes what is found. The connectors of these
//! cases have capabilities and nothing else: the planner does no I/O.

mod fakes;

use std::{fmt::Write, fs, path::Path};

use segue_plan::stages::{PlannedStage, plan_source, plan_table};
use segue_plan::tables::{compatibility_rows, connector_rows, support_matrix};
use segue_sql::{Statement, parse};
use segue_types::{UserError, sql_type_of};

const MARK: &str = "--> ";

#[test]
fn every_case_is_planned_as_its_file_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let update = std::env::var_os("UPDATE_CASES").is_some();
    let mut wrong = Vec::new();
    let mut files = 0;
    for entry in fs::read_dir(&folder).expect("the cases lie beside the test") {
        let path = entry.expect("the folder can be listed").path();
        let given = fs::read_to_string(&path).expect("a case file is text");
        let found = rewrite(&given);
        files += 1;
        if update {
            fs::write(&path, found).expect("the checkout can be written");
        } else if found != given {
            let differs = given.lines().zip(found.lines()).position(|(a, b)| a != b);
            wrong.push(format!("{}:{}", path.display(), differs.map_or(0, |line| line + 1)));
        }
    }
    assert!(files >= 5, "the case files have gone");
    assert!(
        wrong.is_empty(),
        "unexpected outcome at {wrong:#?}\nUPDATE_CASES=1 writes what is found"
    );
}

/// The file with the expectations that the planner meets.
fn rewrite(file: &str) -> String {
    let mut written = String::new();
    let mut case = String::new();
    for line in file.lines() {
        if !line.starts_with(MARK.trim_end()) {
            case.push_str(line);
            case.push('\n');
        } else if !case.is_empty() {
            written.push_str(&case);
            written.push_str(&expectation(&case));
            case.clear();
        }
    }
    if !case.trim().is_empty() {
        written.push_str(&case);
        written.push_str(&expectation(&case));
    }
    written
}

fn expectation(text: &str) -> String {
    let shown = outcome(text).unwrap_or_else(|error| show_error(text, &error));
    shown.lines().map(|line| format!("{MARK}{line}\n")).collect()
}

fn outcome(text: &str) -> Result<String, UserError> {
    let registry = fakes::registry();
    let statement = parse(text)?.remove(0);
    match &statement {
        Statement::CreateSource(source) => {
            let plan = plan_source(&registry, source)?;
            Ok(show(&plan.schema, &plan.key, &plan.stages, &plan.notices))
        }
        Statement::CreateTable(table) => {
            let plan = plan_table(&registry, table)?;
            let shown = show(&plan.schema, &plan.key, &plan.stages, &plan.notices);
            Ok(format!("{:?} {:?}\n{shown}", plan.on_conflict, plan.mutability))
        }
        _ => panic!("a case creates a source or a table"),
    }
}

fn show(
    schema: &arrow::datatypes::Schema,
    key: &[usize],
    stages: &[PlannedStage],
    notices: &[String],
) -> String {
    let column = |(index, field): (usize, &std::sync::Arc<arrow::datatypes::Field>)| {
        let ty = sql_type_of(field).expect("every column has a type");
        let null = if field.is_nullable() { "" } else { " NOT NULL" };
        let key = if key.contains(&index) { " KEY" } else { "" };
        format!("{} {ty}{null}{key}", field.name())
    };
    let columns: Vec<String> = schema.fields().iter().enumerate().map(column).collect();
    let mut shown = format!("COLUMNS {}\n", columns.join(", "));
    for PlannedStage { name, connector, config, capabilities, handoff, .. } in stages {
        writeln!(
            shown,
            "STAGE {name}: {connector}, {} {}, {:?} {}, start {:?}, stop {:?}, key {:?}, {:?}, options {:?}",
            capabilities.boundedness,
            capabilities.semantics,
            config.format.rows,
            config.format.encode,
            config.start,
            config.stop,
            config.key,
            config.on_error,
            config.options.0,
        )
        .expect("a String takes all");
        if let Some(handoff) = handoff {
            let kind = handoff.kind.map(|kind| kind.to_string());
            let kind = kind.unwrap_or_else(|| "nothing derived".to_owned());
            writeln!(shown, "  HANDOFF {}, {kind}", handoff.continuity)
                .expect("a String takes all");
        }
    }
    for notice in notices {
        writeln!(shown, "NOTICE {notice}").expect("a String takes all");
    }
    shown
}

fn show_error(text: &str, error: &UserError) -> String {
    let offset = error.offset.expect("every refusal has a place");
    let rest: String = text.chars().skip(offset - 1).take_while(|char| *char != '\n').collect();
    let mut shown = format!("ERROR {} {error}\nAT {rest}", error.state);
    for (word, part) in [("DETAIL", &error.detail), ("HINT", &error.hint)] {
        if let Some(part) = part {
            write!(shown, "\n{word} {part}").expect("a String takes all");
        }
    }
    shown
}

#[test]
fn the_matrix_shows_each_connector_once_per_difference_and_all_pairs() {
    let registry = fakes::registry();
    let rows = connector_rows(&registry);
    let of = |name: &str| {
        let rows = rows.iter().filter(|row| row.connector == name);
        rows.map(|row| format!("{}: {} {}", row.configuration, row.boundedness, row.semantics))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("postgres"), [": bounded append", "PRIMARY KEY: bounded state"]);
    assert_eq!(of("datagen"), [": continuous append", "rows: bounded append"]);
    assert_eq!(
        of("kafka"),
        [
            "FORMAT PLAIN: continuous append",
            "FORMAT PLAIN, STOP AT: bounded append",
            "FORMAT UPSERT, PRIMARY KEY: continuous upsert",
            "FORMAT UPSERT, PRIMARY KEY, STOP AT: bounded upsert",
        ]
    );
    assert_eq!(compatibility_rows().len(), 16);
    let page = support_matrix(&registry);
    assert!(
        page.contains("| postgres | PRIMARY KEY | bounded | state | capture | query, columns |")
    );
    assert!(page.contains("| state | append | no, unless AS EVENTS |"), "{page}");
    assert!(page.contains("| LATEST | any rows | ALLOW GAP or ALLOW OVERLAP | weak |"), "{page}");
    assert!(page.contains("| postgres | `url` | required, secret |"), "{page}");
}
