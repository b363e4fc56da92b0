//! A plan of stages as text, for EXPLAIN: what is read, one after the other, and what each handoff promises.

use std::fmt::Write;

use arrow::datatypes::SchemaRef;
use segue_types::sql_type_of;

use super::PlannedStage;

/// One line for the object, one for each stage, one for each notice.
pub fn explain(
    object: &str,
    schema: &SchemaRef,
    key: &[usize],
    stages: &[PlannedStage],
    notices: &[String],
) -> String {
    let column = |field: &std::sync::Arc<arrow::datatypes::Field>| {
        let ty = sql_type_of(field).expect("declared columns have SQL types");
        format!("{} {ty}", field.name())
    };
    let columns: Vec<String> = schema.fields().iter().map(column).collect();
    let names: Vec<&str> = key.iter().map(|index| schema.field(*index).name().as_str()).collect();
    let key =
        if names.is_empty() { "no key".to_owned() } else { format!("key ({})", names.join(", ")) };
    let mut text = format!("{object} ({}) {key}\n", columns.join(", "));
    for stage in stages {
        let handoff = match &stage.handoff {
            Some(handoff) => format!(", {} handoff", handoff.continuity),
            None => String::new(),
        };
        let (connector, can) = (&stage.connector, &stage.capabilities);
        let (boundedness, semantics) = (can.boundedness, can.semantics);
        writeln!(text, "  Stage {}: {connector}, {boundedness}, {semantics}{handoff}", stage.name)
            .expect("a String takes all");
    }
    for notice in notices {
        writeln!(text, "  Notice: {notice}").expect("a String takes all");
    }
    text
}
