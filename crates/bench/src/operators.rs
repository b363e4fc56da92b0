//! Each operator alone, planned from SQL and with the relation that it fills: insert-only and with half removals, over
//! few, many and mostly different keys. One worker; and, for those that cost most, two.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use segue_catalog::Catalog;
use segue_flow::{Dataflow, Delta, StepInput, Workers};
use segue_plan::delta::{ViewPlan, plan_view};
use segue_sql::Statement;
use segue_types::ObjectId;

use crate::instance::{Instance, scratch};
use crate::measure::{Spent, measure, rate};
use crate::{Outcome, Run};

const STEP_ROWS: usize = 65_536;
const ROWS_MAX: usize = 1 << 21;
const KEYS: &[(&str, u64)] = &[("1 K", 1 << 10), ("1 M", 1 << 20), ("10 M", 10 << 20)];
const STACK_BYTES: usize = 8 << 20;

/// An operator, the view that is little else, and how many rows it gets at most: a window is computed again for every
/// partition that a step touches.
struct Case {
    name: &'static str,
    sql: &'static str,
    rows_max: usize,
}

const fn case(name: &'static str, sql: &'static str) -> Case {
    Case { name, sql, rows_max: ROWS_MAX }
}

const CASES: &[Case] = &[
    case("filter, one in eight", "SELECT id, k FROM # WHERE v < 125"),
    case("project", "SELECT id, k + v AS s, v * 2 AS d FROM #"),
    case("distinct", "SELECT DISTINCT k FROM #"),
    case("count, sum", "SELECT k, count(*) AS n, sum(v) AS s FROM # GROUP BY k"),
    case("min, max", "SELECT k, min(v) AS least, max(v) AS most FROM # GROUP BY k"),
    case("count distinct", "SELECT k, count(DISTINCT v) AS n FROM # GROUP BY k"),
    case("join", "SELECT l.id, l.v, r.name FROM # l JOIN names r ON l.k = r.id"),
    case("left join", "SELECT l.id, l.v, r.name FROM # l LEFT JOIN names r ON l.k = r.id"),
    case("semi join", "SELECT id, v FROM # WHERE k IN (SELECT id FROM names)"),
    case(
        "top 3 of each key",
        "SELECT * FROM (SELECT id, k, v, row_number() OVER (PARTITION BY k ORDER BY v, id) AS n FROM #) WHERE n <= 3",
    ),
    Case {
        name: "running sum of each key",
        sql: "SELECT id, sum(v) OVER (PARTITION BY k ORDER BY id) AS s FROM #",
        rows_max: 4 * STEP_ROWS,
    },
];

pub(crate) fn bench(run: &Run) -> Outcome {
    let tables = "CREATE TABLE logged (id BIGINT, k BIGINT, v BIGINT) APPEND ONLY;
        CREATE TABLE changed (id BIGINT, k BIGINT, v BIGINT);
        CREATE TABLE names (id BIGINT PRIMARY KEY, name BIGINT)";
    let home = scratch()?;
    let catalog = run.runtime.block_on(async {
        let instance = Instance::start(home.path(), &[]).await?;
        instance.run(tables).await?;
        let catalog = instance.engine.catalog();
        instance.stop().await;
        Ok::<_, Box<dyn std::error::Error>>(catalog)
    })?;
    for Case { name, sql, rows_max } in CASES {
        for (keys_name, keys) in KEYS {
            let steps = (run.rows.min(*rows_max) / STEP_ROWS).max(2);
            let batches = (0..steps).map(|step| batch(step, *keys)).collect::<Vec<_>>();
            for (how, table) in [("insert-only", "logged"), ("half removals", "changed")] {
                let plan = plan(&catalog, &sql.replace('#', table))?;
                for workers in 1..=2 {
                    let spent = one(&plan, &batches, table == "changed", workers);
                    let what = format!("{name}, {keys_name} keys, {how}, {workers} workers");
                    rate(&what, steps * STEP_ROWS, spent);
                }
            }
        }
    }
    Ok(())
}

fn plan(catalog: &Catalog, sql: &str) -> Result<ViewPlan, Box<dyn std::error::Error>> {
    let create = format!("CREATE MATERIALIZED VIEW v AS {sql}");
    let parsed = segue_sql::parse(&create).map_err(|error| format!("{sql}: {error:?}"))?.pop();
    let Some(Statement::CreateMaterializedView(create)) = parsed else {
        return Err(format!("no view: {sql}").into());
    };
    Ok(plan_view(catalog, &create.query.tree).map_err(|error| format!("{sql}: {error:?}"))?)
}

/// What all rows take; with removals what takes half of them back and adds them again.
fn one(plan: &ViewPlan, batches: &[RecordBatch], removes: bool, workers: usize) -> Spent {
    let workers = NonZeroUsize::new(workers).expect("at least one");
    let workers = Workers::new(workers, STACK_BYTES);
    let mut dataflow = Dataflow::new(ObjectId(9), plan.spec.clone(), workers);
    for (input, read) in plan.inputs.iter().enumerate() {
        if read.name == "names" {
            let names = Delta::inserts(names().project(&read.projection).expect("its columns"));
            dataflow.absorb(vec![(input, StepInput::Delta(names))]).expect("valid rows");
        }
    }
    let input = plan.inputs.iter().position(|read| read.name != "names").expect("it reads one");
    let projection = &plan.inputs[input].projection;
    let project = |batch: &RecordBatch| batch.project(projection).expect("its columns");
    let inserts = batches.iter().map(|batch| Delta::inserts(project(batch))).collect::<Vec<_>>();
    let mut steps = |deltas: &[Delta]| {
        for delta in deltas {
            let output = dataflow.step(vec![(input, StepInput::Delta(delta.clone()))]);
            black_box(output.expect("valid rows"));
        }
        black_box(dataflow.version().row_count());
    };
    if !removes {
        return measure(|| steps(&inserts)).1;
    }
    steps(&inserts);
    let gone = inserts.iter().map(|delta| {
        let half = delta.rows().slice(0, STEP_ROWS / 2);
        Delta::weighted(half, std::iter::repeat_n(-1, STEP_ROWS / 2).collect())
    });
    let back = inserts.iter().map(|delta| Delta::inserts(delta.rows().slice(0, STEP_ROWS / 2)));
    let changes = gone.zip(back).flat_map(|(gone, back)| [gone, back]).collect::<Vec<_>>();
    measure(|| steps(&changes)).1
}

fn schema(names: &[&str]) -> SchemaRef {
    let fields = names.iter().map(|name| Field::new(*name, DataType::Int64, true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn batch(step: usize, keys: u64) -> RecordBatch {
    let mut random = crate::workload::Random::seeded(step as u64);
    let first = (step * STEP_ROWS) as i64;
    let ids = Int64Array::from_iter_values(first..first + STEP_ROWS as i64);
    let mut below = |bound: u64| {
        Int64Array::from_iter_values((0..STEP_ROWS).map(|_| random.below(bound) as i64))
    };
    let columns: Vec<ArrayRef> = vec![Arc::new(ids), Arc::new(below(keys)), Arc::new(below(1000))];
    RecordBatch::try_new(schema(&["id", "k", "v"]), columns).expect("three columns")
}

/// One row for each of the first million keys.
fn names() -> RecordBatch {
    let ids = || Arc::new(Int64Array::from_iter_values(0..1 << 20)) as ArrayRef;
    RecordBatch::try_new(schema(&["id", "name"]), vec![ids(), ids()]).expect("two columns")
}
