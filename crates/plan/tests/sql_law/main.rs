//! From SQL to the maintained relation: whatever changes arrive, the relation of a planned view is what
//! DataFusion answers to the same SQL over the rows that are there, and so is the sum of the deltas put out, also
//! after a restart at any step.

mod queries;
mod rows;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::Result;
use datafusion::datasource::MemTable;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::optimizer::Analyzer;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement as DataFusionStatement;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use segue_flow::{
    BlobKind, Dataflow, Delta, RestRound, SealedBlob, StateBlob, StateSource, Workers,
};
use segue_plan::delta::{ViewPlan, plan_view};
use segue_plan::dialect::{Casts, Operators, Shapes};
use segue_sql::Statement;
use segue_types::{ObjectId, OperatorId};

use queries::{ALIKE, DIALECT, QUERIES};
use rows::{Step, TABLES, Tables};

const VIEW: ObjectId = ObjectId(9);

fn plan(sql: &str) -> ViewPlan {
    let statement = segue_sql::parse(sql).expect("valid SQL").pop();
    let Some(Statement::Sql(statement)) = statement else { panic!("a query") };
    let sqlparser::ast::Statement::Query(query) = *statement else { panic!("a query") };
    plan_view(&rows::catalog(), &query).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// Who answers a query over the rows that are there.
#[derive(Clone, Copy)]
enum Batch {
    DataFusion,
    /// The same with what Segue teaches it of PostgreSQL, as a SELECT is answered.
    Dialect,
}

fn context(batch: Batch) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(1);
    let Batch::Dialect = batch else { return SessionContext::new_with_config(config) };
    config.options_mut().sql_parser.parse_float_as_decimal = true;
    config.options_mut().sql_parser.map_string_types_to_utf8view = false;
    let mut analyzer = Analyzer::new();
    analyzer.rules.insert(0, Arc::new(Shapes));
    analyzer.rules.push(Arc::new(Casts));
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_analyzer_rules(analyzer.rules)
        .with_expr_planners(vec![Arc::new(Operators)])
        .with_default_features()
        .build();
    for function in segue_plan::dialect::functions() {
        state.register_udf(function).expect("a new name");
    }
    for function in segue_plan::dialect::aggregates() {
        state.register_udaf(function).expect("a new name");
    }
    SessionContext::new_with_state(state)
}

async fn collected(context: &SessionContext, sql: &str, batch: Batch) -> Result<Vec<RecordBatch>> {
    let frame = match batch {
        Batch::DataFusion => context.sql(sql).await?,
        Batch::Dialect => {
            let statement = segue_sql::parse(sql).expect("valid SQL").pop();
            let Some(Statement::Sql(mut statement)) = statement else { panic!("a query") };
            segue_plan::dialect::rewrite(&mut statement);
            let statement = DataFusionStatement::Statement(statement);
            let plan = context.state().statement_to_plan(statement).await?;
            context.execute_logical_plan(plan).await?
        }
    };
    frame.collect().await
}

fn answer(sql: &str, tables: &Tables, batch: Batch) -> BTreeMap<String, i64> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let context = context(batch);
    for (table, name) in TABLES.iter().enumerate() {
        let rows = tables.batch(table);
        let table = MemTable::try_new(rows.schema(), vec![vec![rows]]).expect("one schema");
        context.register_table(*name, Arc::new(table)).expect("a new name");
    }
    let batches = runtime.block_on(collected(&context, sql, batch));
    let batches = batches.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let mut counts = BTreeMap::new();
    add(&mut counts, batches.into_iter().map(Delta::inserts));
    counts
}

fn add(counts: &mut BTreeMap<String, i64>, deltas: impl IntoIterator<Item = Delta>) {
    let options = FormatOptions::default().with_null("NULL");
    for delta in deltas {
        let columns = delta.rows().columns().iter();
        let columns = columns.map(|column| ArrayFormatter::try_new(column, &options));
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>().expect("all types print");
        for row in 0..delta.len() {
            let values =
                columns.iter().map(|column| column.value(row).to_string().replace("-0.0", "0.0"));
            *counts.entry(values.collect::<Vec<_>>().join(" | ")).or_insert(0) += delta.weight(row);
        }
    }
    counts.retain(|_, count| *count != 0);
}

fn held(dataflow: &mut Dataflow) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    let batches: Vec<RecordBatch> = dataflow.version().batches().collect();
    add(&mut counts, batches.into_iter().map(Delta::inserts));
    counts
}

/// A store of state blobs: per (operator, group) a base and the deltas since.
#[derive(Clone, Default)]
struct Stored(BTreeMap<(u64, u8), Vec<StateBlob>>);

impl Stored {
    fn keep(&mut self, sealed: &[SealedBlob]) {
        for blob in sealed.iter().map(SealedBlob::encode) {
            let stored = self.0.entry((blob.operator.0, blob.group)).or_default();
            if blob.kind == BlobKind::Base {
                stored.clear();
            }
            stored.push(blob);
        }
    }

    /// A round that lets all go that is clean, however little.
    fn round(&self) -> RestRound {
        RestRound { source: Arc::new(self.clone()), patience_rounds: 1, bytes_min: 0 }
    }
}

impl StateSource for Stored {
    fn blobs(
        &self,
        operator: OperatorId,
        groups: Range<u8>,
    ) -> std::result::Result<Vec<StateBlob>, String> {
        let range = (operator.0, groups.start)..(operator.0, groups.end);
        Ok(self.0.range(range).flat_map(|(_, blobs)| blobs).cloned().collect())
    }
}

/// One, two, or three that share even the least work.
fn workers(count: usize) -> Workers {
    let workers = Workers::new(NonZeroUsize::new(count).expect("not zero"), 8 << 20);
    if count == 3 { workers.with_shared_rows_min(0) } else { workers }
}

/// Runs the steps and compares a view of the query after each with what the batch engine answers to the other one.
fn check(
    (sql, asked): (&str, &str),
    steps: &[Step],
    mut count: usize,
    batch: Batch,
) -> std::result::Result<(), TestCaseError> {
    let plan = plan(sql);
    let mut dataflow = Dataflow::new(VIEW, plan.spec.clone(), workers(count));
    let mut sum = held(&mut dataflow);
    let mut tables = Tables::default();
    let mut stored = Stored::default();
    for step in steps {
        let deltas = tables.apply(step);
        let output = dataflow.step(rows::inputs(&plan, &deltas)).expect("valid changes");
        add(&mut sum, output);
        let expected = answer(asked, &tables, batch);
        prop_assert_eq!(&held(&mut dataflow), &expected, "{}", sql);
        prop_assert_eq!(&sum, &expected, "the deltas of {}", sql);
        if step.restarts {
            stored.keep(&dataflow.seal());
            // Another number of workers.
            count = count % 3 + 1;
            dataflow = Dataflow::new(VIEW, plan.spec.clone(), workers(count));
            let blobs = stored.0.values().flatten().cloned().collect();
            dataflow.restore(blobs).expect("just sealed");
            prop_assert_eq!(&held(&mut dataflow), &expected, "restored {}", sql);
            dataflow.rest(&stored.round());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_planned_view_holds_what_the_batch_engine_answers(
        query in 0..QUERIES.len(),
        steps in prop::collection::vec(rows::step(), 1..5),
        count in 1..4_usize,
    ) {
        check((QUERIES[query], QUERIES[query]), &steps, count, Batch::DataFusion)?;
    }

    #[test]
    fn a_view_in_postgresqls_words_holds_what_a_select_answers(
        query in 0..DIALECT.len(),
        steps in prop::collection::vec(rows::step(), 1..5),
        count in 1..4_usize,
    ) {
        check((DIALECT[query], DIALECT[query]), &steps, count, Batch::Dialect)?;
    }

    #[test]
    fn a_view_holds_what_the_batch_engine_answers_to_the_same_in_other_words(
        query in 0..ALIKE.len(),
        steps in prop::collection::vec(rows::step(), 1..5),
        count in 1..4_usize,
    ) {
        check(ALIKE[query], &steps, count, Batch::DataFusion)?;
    }
}

#[test]
fn every_query_is_run_at_least_once() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let steps = prop::collection::vec(rows::step(), 4..6);
    let mut wrong = Vec::new();
    let same = |sql: &&'static str| (*sql, *sql);
    let queries = QUERIES.iter().map(|sql| (same(sql), Batch::DataFusion));
    let queries = queries.chain(DIALECT.iter().map(|sql| (same(sql), Batch::Dialect)));
    let queries = queries.chain(ALIKE.iter().map(|both| (*both, Batch::DataFusion)));
    for (place, (sql, batch)) in queries.enumerate() {
        let steps = steps.new_tree(&mut runner).expect("steps").current();
        let outcome = std::panic::catch_unwind(|| check(sql, &steps, place % 3 + 1, batch));
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(error)) => wrong.push(format!("{error}")),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                wrong.push(format!("{}: {}", sql.0, text.unwrap_or_else(|| "a panic".to_owned())));
            }
        }
    }
    let all = QUERIES.len() + DIALECT.len() + ALIKE.len();
    assert!(wrong.is_empty(), "{} of {all}:\n{}", wrong.len(), wrong.join("\n\n"));
}
