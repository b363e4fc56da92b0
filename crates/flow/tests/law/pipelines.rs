//! Dataflows made by hand, each with the SQL that says the same.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::prelude::SessionContext;
use segue_flow::{
    AggregateFunction, AggregateSpec, DataflowSpec, InputKind, InputSpec, Node, OperatorSpec,
};

use crate::rows::schema;

/// A query over table `i` and its dataflow.
pub struct Pipeline {
    pub sql: &'static str,
    pub spec: fn(InputKind) -> DataflowSpec,
}

/// All of them.
pub const PIPELINES: &[Pipeline] = &[
    Pipeline {
        sql: "SELECT k + 1, upper(s), f FROM i WHERE n > 0 OR b",
        spec: |kind| {
            let mut flow = Builder::new(kind);
            let input = flow.filter(Node::Input(0), "n > 0 OR b");
            let output = flow.project(input, &["k + 1", "upper(s)", "f"]);
            flow.finish(output, &[])
        },
    },
    Pipeline {
        sql: "SELECT s FROM i",
        spec: |kind| {
            let mut flow = Builder::new(kind);
            let output = flow.project(Node::Input(0), &["s"]);
            flow.finish(output, &[])
        },
    },
    Pipeline {
        sql: "SELECT k, count(*), count(s), sum(CAST(k AS DECIMAL(20,0))), sum(n), CAST(sum(d) AS DECIMAL(38,2)), \
              sum(f), avg(f), sum(g), min(n), max(n), min(s), max(d), max(t), min(f) FROM i GROUP BY k",
        spec: |kind| {
            let mut flow = Builder::new(kind);
            let output = flow.aggregate(Node::Input(0), &[0], &ALL_AGGREGATES);
            flow.finish(output, &[0])
        },
    },
    Pipeline {
        sql: "SELECT s, f, count(*) FILTER (WHERE b), max(k) FILTER (WHERE b), sum(n) FILTER (WHERE b), \
              count(n) FILTER (WHERE b) FROM i GROUP BY s, f",
        spec: |kind| {
            let mut flow = Builder::new(kind);
            let aggregates = [
                (AggregateFunction::Count, None, Some(6)),
                (AggregateFunction::Max, Some(0), Some(6)),
                (AggregateFunction::Sum, Some(4), Some(6)),
                (AggregateFunction::Count, Some(4), Some(6)),
            ];
            let output = flow.aggregate(Node::Input(0), &[1, 2], &aggregates);
            flow.finish(output, &[0, 1])
        },
    },
    Pipeline {
        sql: "SELECT count(*), count(s), sum(CAST(k AS DECIMAL(20,0))), sum(n), CAST(sum(d) AS DECIMAL(38,2)), \
              sum(f), avg(f), sum(g), min(n), max(n), min(s), max(d), max(t), min(f) FROM i",
        spec: |kind| {
            let mut flow = Builder::new(kind);
            let output = flow.aggregate(Node::Input(0), &[], &ALL_AGGREGATES);
            flow.finish(output, &[])
        },
    },
    Pipeline {
        sql: "SELECT DISTINCT s, b FROM i",
        spec: |kind| {
            let mut flow = Builder::new(kind);
            let output = flow.aggregate(Node::Input(0), &[1, 6], &[]);
            flow.finish(output, &[0, 1])
        },
    },
    Pipeline {
        sql: "SELECT k, n FROM i WHERE b UNION ALL SELECT k + 1, n FROM i WHERE n > 0",
        spec: |kind| {
            let mut flow = Builder::new(kind);
            let output = two_branches(&mut flow);
            flow.finish(output, &[])
        },
    },
    Pipeline {
        sql: "SELECT k, n FROM i WHERE b UNION SELECT k + 1, n FROM i WHERE n > 0",
        spec: |kind| {
            let mut flow = Builder::new(kind);
            let both = two_branches(&mut flow);
            let output = flow.aggregate(both, &[0, 1], &[]);
            flow.finish(output, &[0, 1])
        },
    },
    Pipeline {
        sql: "SELECT c * 2, k FROM (SELECT k, count(*) AS c FROM i GROUP BY k) WHERE c > 2",
        spec: |kind| {
            let mut flow = Builder::new(kind);
            let groups =
                flow.aggregate(Node::Input(0), &[0], &[(AggregateFunction::Count, None, None)]);
            let having = flow.filter(groups, "c1 > 2");
            let output = flow.project(having, &["c1 * 2", "c0"]);
            flow.finish(output, &[1])
        },
    },
    Pipeline {
        sql: "SELECT c, count(*), max(k) FROM (SELECT k, count(*) AS c FROM i GROUP BY k) GROUP BY c",
        spec: |kind| {
            let mut flow = Builder::new(kind);
            let groups =
                flow.aggregate(Node::Input(0), &[0], &[(AggregateFunction::Count, None, None)]);
            let aggregates =
                [(AggregateFunction::Count, None, None), (AggregateFunction::Max, Some(0), None)];
            let output = flow.aggregate(groups, &[1], &aggregates);
            flow.finish(output, &[0])
        },
    },
];

type Aggregate = (AggregateFunction, Option<usize>, Option<usize>);

const ALL_AGGREGATES: [Aggregate; 14] = [
    (AggregateFunction::Count, None, None),
    (AggregateFunction::Count, Some(1), None),
    (AggregateFunction::Sum, Some(0), None),
    (AggregateFunction::Sum, Some(4), None),
    (AggregateFunction::Sum, Some(5), None),
    (AggregateFunction::Sum, Some(2), None),
    (AggregateFunction::Avg, Some(2), None),
    (AggregateFunction::Sum, Some(3), None),
    (AggregateFunction::Min, Some(4), None),
    (AggregateFunction::Max, Some(4), None),
    (AggregateFunction::Min, Some(1), None),
    (AggregateFunction::Max, Some(5), None),
    (AggregateFunction::Max, Some(7), None),
    (AggregateFunction::Min, Some(2), None),
];

fn two_branches(flow: &mut Builder) -> Node {
    let first = flow.filter(Node::Input(0), "b");
    let first = flow.project(first, &["k", "n"]);
    let second = flow.filter(Node::Input(0), "n > 0");
    let second = flow.project(second, &["k + 1", "n"]);
    let schema = flow.spec.schema_of(first);
    flow.push(OperatorSpec::UnionAll { inputs: vec![first, second], schema })
}

/// Makes specs from SQL expressions over columns that after the input are called c0, c1 and so on.
struct Builder {
    context: SessionContext,
    spec: DataflowSpec,
}

impl Builder {
    fn new(kind: InputKind) -> Builder {
        let spec = DataflowSpec {
            inputs: vec![InputSpec { schema: schema(), kind }],
            operators: Vec::new(),
            output: Node::Input(0),
            schema: schema(),
            key: Vec::new(),
            watermarks: Vec::new(),
        };
        Builder { context: SessionContext::new(), spec }
    }

    fn push(&mut self, operator: OperatorSpec) -> Node {
        self.spec.operators.push(operator);
        Node::Operator(self.spec.operators.len() - 1)
    }

    fn expression(
        &self,
        input: Node,
        sql: &str,
    ) -> Arc<dyn datafusion::physical_expr::PhysicalExpr> {
        let schema = DFSchema::try_from(self.spec.schema_of(input)).expect("a schema");
        let expression = self.context.parse_sql_expr(sql, &schema).expect("an expression");
        self.context.create_physical_expr(expression, &schema).expect("a typed expression")
    }

    fn filter(&mut self, input: Node, sql: &str) -> Node {
        let predicate = self.expression(input, sql);
        self.push(OperatorSpec::Filter { input, predicate })
    }

    fn project(&mut self, input: Node, sql: &[&str]) -> Node {
        let expressions = sql.iter().map(|sql| self.expression(input, sql)).collect::<Vec<_>>();
        let input_schema = self.spec.schema_of(input);
        let types = expressions.iter().map(|e| e.data_type(&input_schema).expect("typed"));
        let schema = numbered(types);
        self.push(OperatorSpec::Project { input, expressions, schema })
    }

    fn aggregate(&mut self, input: Node, keys: &[usize], aggregates: &[Aggregate]) -> Node {
        let input_schema = self.spec.schema_of(input);
        let key_types = keys.iter().map(|key| input_schema.field(*key).data_type().clone());
        let result = |(function, argument, _): &Aggregate| {
            let argument = argument.map(|column| input_schema.field(column).data_type().clone());
            function
                .result_type(&argument.unwrap_or(arrow::datatypes::DataType::Null))
                .expect("a result")
        };
        let schema = numbered(key_types.chain(aggregates.iter().map(result)));
        let spec = |(function, argument, filter): &Aggregate| AggregateSpec {
            function: *function,
            argument: *argument,
            filter: *filter,
        };
        let aggregates = aggregates.iter().map(spec).collect();
        self.push(OperatorSpec::Aggregate { input, keys: keys.to_vec(), aggregates, schema })
    }

    fn finish(mut self, output: Node, key: &[usize]) -> DataflowSpec {
        self.spec.schema = self.spec.schema_of(output);
        self.spec.output = output;
        self.spec.key = key.to_vec();
        self.spec
    }
}

fn numbered(types: impl Iterator<Item = arrow::datatypes::DataType>) -> SchemaRef {
    let field = |(place, data_type)| Field::new(format!("c{place}"), data_type, true);
    Arc::new(Schema::new(types.enumerate().map(field).collect::<Vec<_>>()))
}
