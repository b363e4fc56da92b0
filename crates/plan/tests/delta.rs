//! Planner cases: each file in `tests/delta` is a query, a line `----`, and the plan or the error that it gives.
//! `UPDATE_CASES=1` writes what it gives now.

mod fixture;

use std::path::Path;

use segue_plan::delta::{explain, plan_view};
use segue_sql::Statement;
use segue_types::UserError;
use sqlparser::ast;

fn query(sql: &str) -> ast::Query {
    let statement = segue_sql::parse(sql).expect("a case is valid SQL").pop();
    let Some(Statement::Sql(statement)) = statement else { panic!("a case is a query: {sql}") };
    let ast::Statement::Query(query) = *statement else { panic!("a case is a query: {sql}") };
    *query
}

fn outcome(sql: &str) -> String {
    match plan_view(&fixture::catalog(), &query(sql)).and_then(|plan| plan.renamed(&[])) {
        Ok(plan) => {
            let notices = plan.notices.iter().map(|notice| format!("NOTICE: {notice}\n"));
            notices.collect::<String>() + &explain(&plan)
        }
        Err(error) => error_text(&error),
    }
}

fn error_text(error: &UserError) -> String {
    let mut text = format!("ERROR {}: {}\n", error.state, error.message);
    for (name, line) in [("DETAIL", &error.detail), ("HINT", &error.hint)] {
        if let Some(line) = line {
            text.push_str(&format!("{name}: {line}\n"));
        }
    }
    text
}

#[test]
fn every_case_gives_its_plan_or_its_error() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/delta");
    let update = std::env::var_os("UPDATE_CASES").is_some();
    let mut wrong = Vec::new();
    let mut cases = 0;
    for entry in std::fs::read_dir(folder).expect("the folder of cases") {
        let path = entry.expect("a case").path();
        let text = std::fs::read_to_string(&path).expect("a case is text");
        let (sql, expected) = text.split_once("----\n").unwrap_or((&text, ""));
        let found = outcome(sql.trim());
        cases += 1;
        if update {
            std::fs::write(&path, format!("{}\n----\n{found}", sql.trim()))
                .expect("a writable case");
        } else if found != expected {
            wrong.push(format!("{}\nexpected:\n{expected}\nfound:\n{found}", path.display()));
        }
    }
    assert!(cases > 0, "there are no cases");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_view_of_a_view_reads_the_table_and_depends_on_both() {
    let catalog = fixture::catalog();
    let plan =
        plan_view(&catalog, &query("SELECT * FROM big_orders")).expect("it can be maintained");
    let id = |name: &str| catalog.by_name(name).expect("of the fixture").id;
    assert_eq!(plan.inputs.len(), 1);
    assert_eq!(plan.inputs[0].object, id("orders"));
    assert_eq!(plan.depends_on, [id("orders"), id("big_orders")].into());
}

#[test]
fn uuid_and_jsonb_keep_their_types_through_a_plan() {
    let sql = "SELECT doc, ref_id AS reference, count(*) FROM things GROUP BY doc, reference";
    let plan = plan_view(&fixture::catalog(), &query(sql)).expect("it can be maintained");
    let types = plan.schema.fields().iter().map(|field| segue_types::sql_type_of(field));
    let types = types.map(|known| known.expect("a SQL type").to_string()).collect::<Vec<_>>();
    assert_eq!(types, ["jsonb", "uuid", "bigint"]);
}
