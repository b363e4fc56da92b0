//! The queries of TPC-H and Nexmark as views, over small data of our own seeded generators: filled from all rows at
//! once, from rows that arrive one part after the other, and half and half with updates and deletes between. All three
//! are what DataFusion's batch engine answers.

mod compare;
mod nexmark_data;
mod tables;
mod tpch;
mod tpch_data;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use segue_catalog::Catalog;
use segue_flow::{Dataflow, Delta, StepInput, Workers};
use segue_plan::delta::{ViewPlan, plan_view};
use segue_sql::Statement;
use segue_types::ObjectId;
use sqlparser::ast;

use compare::{Rows, held};
use tables::{Numbers, Row, Table, catalog};

const VIEW: ObjectId = ObjectId(99);

/// What happens to one table in one step: rows and how often they come or go.
type Changes = Vec<(Row, i64)>;

fn statement(sql: &str) -> ast::Statement {
    let statement = segue_sql::parse(sql).expect("valid SQL").pop();
    let Some(Statement::Sql(statement)) = statement else { panic!("a query: {sql}") };
    *statement
}

fn plan(catalog: &Catalog, sql: &str) -> ViewPlan {
    let ast::Statement::Query(query) = statement(sql) else { panic!("a query: {sql}") };
    plan_view(catalog, &query).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The batch engine's answer; what only our dialect knows is rewritten for it.
fn answer(tables: &[Table], rows: &[Vec<Row>], sql: &str) -> Rows {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    for (table, rows) in tables.iter().zip(rows) {
        let batch = table.batch(&rows.iter().collect::<Vec<_>>());
        let relation = MemTable::try_new(table.schema(), vec![vec![batch]]).expect("one schema");
        context.register_table(table.name, Arc::new(relation)).expect("a new name");
    }
    let mut rewritten = statement(sql);
    if sql.contains("TUMBLE(") || sql.contains("HOP(") {
        segue_plan::dialect::rewrite(&mut rewritten);
    }
    let sql = rewritten.to_string();
    let batches = runtime.block_on(async { context.sql(&sql).await?.collect().await });
    let batches = batches.unwrap_or_else(|error| panic!("{sql}: {error}"));
    compare::rounded(batches)
}

fn step(tables: &[Table], plan: &ViewPlan, dataflow: &mut Dataflow, changes: &[Changes]) {
    let inputs = plan.inputs.iter().enumerate().map(|(input, read)| {
        let place = read.object.0 as usize - 1;
        let rows = changes[place].iter().map(|(row, _)| row).collect::<Vec<_>>();
        let batch = tables[place].batch(&rows);
        let batch = batch.project(&read.projection).expect("columns of the table");
        let weights = changes[place].iter().map(|(_, weight)| *weight).collect();
        (input, StepInput::Delta(Delta::weighted(batch, weights)))
    });
    dataflow.step(inputs.collect()).expect("valid changes");
}

/// The part of each table between two fractions.
fn part(tables: &[Table], from: usize, to: usize, of: usize) -> Vec<Changes> {
    let slice = |table: &Table| {
        let at = |place: usize| table.rows.len() * place / of;
        table.rows[at(from)..at(to)].iter().map(|row| (row.clone(), 1)).collect()
    };
    tables.iter().map(slice).collect()
}

/// Rows that go, and rows that come back changed: every seventh row takes the last column of another.
fn disturbed(tables: &[Table], seed: u64) -> Vec<Changes> {
    let mut numbers = Numbers::seeded(seed);
    let disturb = |table: &Table| {
        let half = &table.rows[..table.rows.len() / 2];
        let mut changes = Changes::new();
        for (place, row) in half.iter().enumerate().filter(|(place, _)| place % 7 == 3) {
            changes.push((row.clone(), -1));
            if place % 2 == 0 {
                let other = &half[numbers.within(0, half.len() as i64 - 1) as usize];
                let mut changed = row.clone();
                let last = changed.len() - 1;
                changed[last] = other[last].clone();
                changes.push((changed, 1));
            }
        }
        changes
    };
    tables.iter().map(disturb).collect()
}

fn sum(steps: &[Vec<Changes>]) -> Vec<Vec<Row>> {
    let tables = steps[0].len();
    let rows_of = |table: usize| {
        let mut counts: BTreeMap<&Row, i64> = BTreeMap::new();
        for (row, weight) in steps.iter().flat_map(|step| &step[table]) {
            *counts.entry(row).or_insert(0) += weight;
        }
        let copies = counts.into_iter();
        copies.flat_map(|(row, count)| (0..count).map(move |_| row.clone())).collect()
    };
    (0..tables).map(rows_of).collect()
}

/// Runs every query in the three ways; returns how many had rows in the end.
fn run(tables: &[Table], queries: &[(&str, &str)]) -> usize {
    let catalog = catalog(tables);
    let ways = [
        vec![part(tables, 0, 1, 1)],
        (0..5).map(|place| part(tables, place, place + 1, 5)).collect::<Vec<_>>(),
        vec![
            part(tables, 0, 1, 2),
            disturbed(tables, 5),
            part(tables, 1, 2, 2),
            part(tables, 0, 0, 1),
        ],
    ];
    let mut wrong = Vec::new();
    let mut filled = 0;
    for (name, sql) in queries {
        let plan = plan(&catalog, sql);
        for (way, steps) in ways.iter().enumerate() {
            // Each way with another number of workers.
            let count = NonZeroUsize::new(way + 1).expect("not zero");
            let workers = Workers::new(count, 8 << 20).with_shared_rows_min(0);
            let mut dataflow = Dataflow::new(VIEW, plan.spec.clone(), workers);
            steps.iter().for_each(|changes| step(tables, &plan, &mut dataflow, changes));
            let expected = answer(tables, &sum(steps), sql);
            let found = held(&mut dataflow);
            if found != expected {
                wrong.push(format!("{name}, way {way}:\nexpected {expected:#?}\nfound {found:#?}"));
            }
            filled += usize::from(way == 0 && !expected.is_empty());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    filled
}

#[test]
fn tpch_as_views_is_what_the_batch_engine_answers() {
    let filled = run(&tpch_data::tables(), tpch::QUERIES);
    assert_eq!(tpch::QUERIES.len(), 22);
    assert!(filled >= 18, "only {filled} queries have rows: the data do not test the others");
}

#[test]
fn nexmark_as_views_is_what_the_batch_engine_answers() {
    let filled = run(&nexmark_data::tables(), segue_testkit::nexmark::QUERIES);
    assert!(filled >= segue_testkit::nexmark::QUERIES.len() - 1, "only {filled} queries have rows");
}
