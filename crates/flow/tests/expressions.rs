//! A bad row costs its own value, is counted, and can be taken back like any other.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::prelude::SessionContext;
use segue_flow::{
    Dataflow, DataflowSpec, Delta, InputKind, InputSpec, Node, OperatorSpec, StepInput, Workers,
};
use segue_types::ObjectId;

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, true)]))
}

fn expression(sql: &str) -> Arc<dyn PhysicalExpr> {
    let context = SessionContext::new();
    let schema = DFSchema::try_from(schema()).expect("a schema");
    let expression = context.parse_sql_expr(sql, &schema).expect("an expression");
    context.create_physical_expr(expression, &schema).expect("typed")
}

fn dataflow(predicate: &str, projected: &str) -> Dataflow {
    let spec = DataflowSpec {
        inputs: vec![InputSpec { schema: schema(), kind: InputKind::Changelog }],
        operators: vec![
            OperatorSpec::Filter { input: Node::Input(0), predicate: expression(predicate) },
            OperatorSpec::Project {
                input: Node::Operator(0),
                expressions: vec![expression(projected)],
                schema: schema(),
            },
        ],
        output: Node::Operator(1),
        schema: schema(),
        key: Vec::new(),
        watermarks: Vec::new(),
    };
    Dataflow::new(ObjectId(1), spec, Workers::ONE)
}

fn rows(values: impl IntoIterator<Item = i64>) -> RecordBatch {
    let column: ArrayRef = Arc::new(values.into_iter().collect::<Int64Array>());
    RecordBatch::try_new(schema(), vec![column]).expect("a column")
}

#[test]
fn rows_that_divide_by_zero_become_null_and_the_others_do_not() {
    let mut dataflow = dataflow("true", "100 / x");
    let values = || (0..1000).map(|i| if i % 250 == 7 { 0 } else { i + 1 });
    let input = Delta::inserts(rows(values()));
    dataflow.step(vec![(0, StepInput::Delta(input))]).expect("no error");
    let column = dataflow.version().batches().map(|batch| Arc::clone(batch.column(0)));
    let values_held = column
        .flat_map(|column| column.as_primitive::<Int64Type>().iter().collect::<Vec<_>>())
        .collect::<Vec<_>>();
    assert_eq!(values_held.len(), 1000);
    assert_eq!(values_held.iter().filter(|value| value.is_none()).count(), 4);
    assert_eq!(values_held.iter().flatten().max(), Some(&100));
    assert_eq!(dataflow.operators()[1].expression_errors, 4);
    let back = Delta::weighted(rows(values()), vec![-1; 1000].into());
    dataflow.step(vec![(0, StepInput::Delta(back))]).expect("every row comes back the same");
    assert_eq!(dataflow.version().row_count(), 0);
}

#[test]
fn a_predicate_that_fails_is_not_true() {
    let mut dataflow = dataflow("100 / x > 0", "x");
    let input = Delta::inserts(rows([1, 0, 2, -5, 0]));
    dataflow.step(vec![(0, StepInput::Delta(input))]).expect("no error");
    assert_eq!(dataflow.version().row_count(), 2);
    assert_eq!(dataflow.operators()[0].expression_errors, 2);
}
