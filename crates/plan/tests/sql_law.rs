//! From SQL to the maintained relation: whatever changes arrive, the relation of a planned view is what
//! DataFusion answers to the same SQL over the rows that are there.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Decimal128Array, Float64Array, Int32Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use proptest::prelude::*;
use segue_catalog::{Catalog, Object, ObjectKind, ObjectState, OnConflict, Settings, TableObject};
use segue_flow::{Dataflow, Delta, StepInput};
use segue_plan::delta::{ViewPlan, plan_view};
use segue_sql::Statement;
use segue_types::{ObjectId, SqlType};

/// Each with aggregates whose types are the same in both engines, and without casts of fractions to whole numbers, which
/// PostgreSQL and so Segue round, and DataFusion cuts (pinned in `slt/types`).
const QUERIES: &[&str] = &[
    "SELECT a, upper(b), d + 1 FROM t WHERE a > 0 AND b IS NOT NULL",
    "SELECT a + 1 AS x, count(*), min(b), max(at), sum(c) FROM t GROUP BY a + 1",
    "SELECT b, count(a), sum(a) FROM t WHERE d > 0 GROUP BY b HAVING count(*) > 1",
    "SELECT count(*), count(b) FILTER (WHERE a > 1), max(d) FROM t",
    "SELECT DISTINCT a % 2, b FROM t",
    "SELECT a, b FROM t WHERE a > 1 UNION SELECT a, b FROM t WHERE c < 1",
    "SELECT a FROM t UNION ALL SELECT a * 2 FROM t WHERE b = 'x'",
    "SELECT n, count(*) FROM (SELECT b, count(*) AS n FROM t GROUP BY b) AS per_b GROUP BY n",
    "WITH big AS (SELECT a, d FROM t WHERE d > 1) SELECT a, max(d), min(d) FROM big GROUP BY a",
    "SELECT CASE WHEN a > 1 THEN 'big' ELSE 'small' END AS size, count(*) FROM t GROUP BY 1",
    "SELECT date_trunc('minute', at) AS minute, count(*), avg(c) FROM t GROUP BY date_trunc('minute', at)",
    "SELECT coalesce(b, 'none') AS name, sum(c) * 2 FROM t GROUP BY coalesce(b, 'none')",
    "SELECT a, a AS again, b FROM t WHERE b LIKE 'x%' ORDER BY a",
    "SELECT a IN (1, 2) AS few, b || '!' AS loud, a::bigint FROM t",
    "SELECT a FROM t WHERE 1 = 2",
    "SELECT x, count(*) FROM (SELECT DISTINCT a AS x, b FROM t) AS d GROUP BY x",
];

type Seed = [u8; 5];

fn schema() -> SchemaRef {
    let columns = [
        ("a", SqlType::Integer),
        ("b", SqlType::Text),
        ("c", SqlType::Double),
        ("d", SqlType::Numeric { precision: 12, scale: 2 }),
        ("at", SqlType::Timestamp),
    ];
    Arc::new(Schema::new(columns.iter().map(|(name, ty)| ty.field(name, true)).collect::<Vec<_>>()))
}

fn batch(seeds: &[Seed]) -> RecordBatch {
    let number =
        |at: usize| seeds.iter().map(move |seed| (seed[at] > 0).then_some(i64::from(seed[at]) - 2));
    let texts =
        seeds.iter().map(|seed| [None, Some("x"), Some("xy"), Some("")][usize::from(seed[1] % 4)]);
    let decimals = number(3)
        .map(|value| value.map(|value| i128::from(value) * 75))
        .collect::<Decimal128Array>();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(number(0).map(|value| value.map(|value| value as i32)).collect::<Int32Array>()),
        Arc::new(texts.collect::<StringArray>()),
        Arc::new(
            number(2).map(|value| value.map(|value| value as f64 / 4.0)).collect::<Float64Array>(),
        ),
        Arc::new(decimals.with_precision_and_scale(12, 2).expect("twelve digits")),
        Arc::new(
            number(4).map(|v| v.map(|v| v * 25_000_000)).collect::<TimestampMicrosecondArray>(),
        ),
    ];
    RecordBatch::try_new(schema(), columns).expect("columns of the schema")
}

fn plan(sql: &str) -> ViewPlan {
    let table = Object {
        id: ObjectId(1),
        name: "t".to_owned(),
        schema: schema(),
        key: Vec::new(),
        definition: String::new(),
        kind: ObjectKind::Table(TableObject {
            stages: Vec::new(),
            on_conflict: OnConflict::Overwrite,
            mutability: Default::default(),
        }),
        depends_on: Default::default(),
        state: ObjectState::Ready,
        consumers: Vec::new(),
        settings: Settings::default(),
        failure: None,
    };
    let catalog = Catalog::default().with(table).expect("the first object");
    let statement = segue_sql::parse(sql).expect("valid SQL").pop();
    let Some(Statement::Sql(statement)) = statement else { panic!("a query") };
    let sqlparser::ast::Statement::Query(query) = *statement else { panic!("a query") };
    plan_view(&catalog, &query).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn answer(sql: &str, rows: &[Seed]) -> BTreeMap<String, usize> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let context = SessionContext::new();
    let table = MemTable::try_new(schema(), vec![vec![batch(rows)]]).expect("one schema");
    context.register_table("t", Arc::new(table)).expect("a new name");
    let batches = runtime.block_on(async { context.sql(sql).await?.collect().await });
    counted(batches.unwrap_or_else(|error| panic!("{sql}: {error}")))
}

fn counted(batches: impl IntoIterator<Item = RecordBatch>) -> BTreeMap<String, usize> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = BTreeMap::new();
    for batch in batches {
        let columns =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
        let columns = columns.collect::<Result<Vec<_>, _>>().expect("all types print");
        for row in 0..batch.num_rows() {
            let values =
                columns.iter().map(|column| column.value(row).to_string().replace("-0.0", "0.0"));
            *rows.entry(values.collect::<Vec<_>>().join(" | ")).or_insert(0) += 1;
        }
    }
    rows
}

fn steps() -> impl Strategy<Value = Vec<Vec<(Seed, bool)>>> {
    let change = (prop::array::uniform5(0_u8..6), prop::bool::weighted(0.4));
    prop::collection::vec(prop::collection::vec(change, 0..20), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_planned_view_holds_what_the_batch_engine_answers(query in 0..QUERIES.len(), steps in steps()) {
        let sql = QUERIES[query];
        let plan = plan(sql);
        let mut dataflow = Dataflow::new(ObjectId(2), plan.spec.clone());
        let mut live: Vec<Seed> = Vec::new();
        for step in steps {
            let mut changes = Vec::new();
            for (seed, removes) in step {
                // A removal takes back some row that is there; which one, the seed says.
                if removes && !live.is_empty() {
                    changes.push((live.swap_remove(usize::from(seed[0]) % live.len()), -1));
                } else {
                    live.push(seed);
                    changes.push((seed, 1));
                }
            }
            let seeds = changes.iter().map(|(seed, _)| *seed).collect::<Vec<_>>();
            let inputs = plan.inputs.iter().enumerate().map(|(input, read)| {
                let rows = batch(&seeds).project(&read.projection).expect("columns of the table");
                (input, StepInput::Delta(Delta::weighted(rows, changes.iter().map(|(_, w)| *w).collect())))
            });
            dataflow.step(inputs.collect()).expect("valid changes");
            prop_assert_eq!(counted(dataflow.version().batches()), answer(sql, &live), "{}", sql);
        }
    }
}
