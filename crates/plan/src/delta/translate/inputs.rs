//! The inputs of a dataflow: each object once, with the columns that all its scans need together.
//!
//! A keyed source delivers changes by key, so its key columns are read too and a normaliser stands behind it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{LogicalPlan, TableScan};
use segue_catalog::{Catalog, Mutability, Object, ObjectKind};
use segue_flow::{
    ColumnWatermark, Conflict, DataflowSpec, InputKind, InputSpec, Node, OperatorSpec, mark_schema,
};
use segue_types::{ObjectId, RowSemantics, UserError};

use super::super::provider::{CatalogProvider, RelationSource, view_query};
use super::super::{MarkInput, ViewInput, plan_emitting};
use super::times::Times;
use super::{Output, user};
use crate::watermark;

/// Inputs by object.
pub(super) struct Inputs<'a> {
    catalog: &'a Catalog,
    reads: BTreeMap<ObjectId, Read>,
    /// The inputs behind those that are read.
    marks: Vec<MarkInput>,
    times: HashMap<Node, Times>,
}

/// One object that is read.
struct Read {
    object: Arc<Object>,
    columns: Vec<usize>,
    output: Output,
}

/// The columns of the relation that a scan gives, in its order.
pub(super) fn scanned_columns(scan: &TableScan) -> Vec<usize> {
    let all = || (0..scan.source.schema().fields().len()).collect();
    scan.projection.clone().unwrap_or_else(all)
}

impl<'a> Inputs<'a> {
    /// What `plan` reads, and a dataflow with these inputs and nothing behind them but normalisers.
    pub(super) fn collect(
        plan: &LogicalPlan,
        provider: &'a CatalogProvider<'_>,
    ) -> Result<(Inputs<'a>, DataflowSpec), UserError> {
        let mut wanted: BTreeMap<ObjectId, (Arc<Object>, BTreeSet<usize>)> = BTreeMap::new();
        let walked = plan.apply(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Some(source) = scan.source.downcast_ref::<RelationSource>()
            {
                let object = &source.object;
                let entry = wanted
                    .entry(object.id)
                    .or_insert_with(|| (Arc::clone(object), BTreeSet::new()));
                entry.1.extend(scanned_columns(scan));
            }
            Ok(TreeNodeRecursion::Continue)
        });
        walked.map_err(user)?;
        let mut inputs = Inputs {
            catalog: provider.catalog(),
            reads: BTreeMap::new(),
            marks: Vec::new(),
            times: HashMap::new(),
        };
        let mut spec = DataflowSpec {
            inputs: Vec::new(),
            operators: Vec::new(),
            output: Node::Input(0),
            schema: Arc::new(Schema::empty()),
            key: Vec::new(),
            watermarks: Vec::new(),
        };
        for (id, (object, columns)) in wanted {
            let read = inputs.read(object, columns, &mut spec)?;
            inputs.reads.insert(id, read);
        }
        let reads = inputs.reads.values();
        let reads = reads.map(|read| (Arc::clone(&read.object), read.output.node));
        for (object, node) in reads.collect::<Vec<_>>() {
            inputs.watermarks(&object, node, &mut spec)?;
        }
        Ok((inputs, spec))
    }

    /// An input for each watermark of the columns that are read of `object`.
    fn watermarks(
        &mut self,
        object: &Object,
        node: Node,
        spec: &mut DataflowSpec,
    ) -> Result<(), UserError> {
        let timed = match &object.kind {
            ObjectKind::MaterializedView => {
                let plan = plan_emitting(self.catalog, view_query(object)?)?;
                plan.spec.watermarks.iter().map(|of| of.column).collect()
            }
            _ => watermark::of(object).map_or_else(Vec::new, |watermark| vec![watermark.column]),
        };
        for column in timed {
            let read = &self.reads[&object.id].columns;
            let Some(place) = read.iter().position(|read| *read == column) else { continue };
            let schema = mark_schema(object.schema.field(column).data_type());
            let input = InputSpec { schema: Arc::clone(&schema), kind: InputKind::AppendOnly };
            spec.inputs.push(input);
            self.marks.push(MarkInput::Watermark { object: object.id, column });
            let input = Node::Input(spec.inputs.len() - 1);
            spec.operators.push(OperatorSpec::Watermark { input, schema });
            let delivers = Node::Operator(spec.operators.len() - 1);
            let time = ColumnWatermark { column: place, node: delivers };
            self.times.entry(node).or_default().push(time);
        }
        Ok(())
    }

    /// Takes note of an input that was added behind the others.
    pub(super) fn mark(&mut self, mark: MarkInput) {
        self.marks.push(mark);
    }

    /// The watermarks of the nodes that deliver what is read.
    pub(super) fn take_times(&mut self) -> HashMap<Node, Times> {
        std::mem::take(&mut self.times)
    }

    fn read(
        &self,
        object: Arc<Object>,
        mut columns: BTreeSet<usize>,
        spec: &mut DataflowSpec,
    ) -> Result<Read, UserError> {
        let is_source = matches!(object.kind, ObjectKind::Source(_));
        let by_key = is_source && !object.key.is_empty();
        if by_key {
            columns.extend(object.key.iter().copied());
        }
        // A batch without columns cannot carry rows from a reader.
        if columns.is_empty() {
            columns.insert(0);
        }
        let columns = columns.into_iter().collect::<Vec<_>>();
        let at = |column: &usize| columns.iter().position(|other| other == column);
        let key = object.key.iter().map(at).collect::<Option<Vec<_>>>().unwrap_or_default();
        let fields =
            columns.iter().map(|column| object.schema.field(*column).clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let kind = if by_key { InputKind::ByKey } else { self.kind_of(&object)? };
        spec.inputs.push(InputSpec { schema, kind });
        let input = spec.inputs.len() - 1;
        let node = if by_key {
            let conflict = Conflict::Overwrite;
            spec.operators.push(OperatorSpec::Normalise { input, key: key.clone(), conflict });
            Node::Operator(spec.operators.len() - 1)
        } else {
            Node::Input(input)
        };
        Ok(Read { object, columns, output: Output { node, key } })
    }

    /// Whether an object without changes by key only ever grows.
    fn kind_of(&self, object: &Object) -> Result<InputKind, UserError> {
        let grows = match &object.kind {
            ObjectKind::Source(source) => source
                .stages
                .iter()
                .all(|stage| matches!(stage.semantics, RowSemantics::Append | RowSemantics::State)),
            ObjectKind::MaterializedView => {
                let plan = plan_emitting(self.catalog, view_query(object)?)?;
                plan.spec.is_append_only(plan.spec.output)
            }
            // A key that comes again overwrites, whatever the table promises.
            ObjectKind::Table(table) => {
                table.mutability == Mutability::AppendOnly && object.key.is_empty()
            }
            ObjectKind::View | ObjectKind::Sink(_) => false,
        };
        Ok(if grows { InputKind::AppendOnly } else { InputKind::Changelog })
    }

    /// The node that delivers `object`, and where in it the wanted columns are.
    pub(super) fn places(&self, object: ObjectId, wanted: &[usize]) -> (Output, Vec<usize>) {
        let read = &self.reads[&object];
        let place = |column: &usize| {
            let found = read.columns.iter().position(|other| other == column);
            found.expect("the inputs were collected from the same plan")
        };
        (read.output.clone(), wanted.iter().map(place).collect())
    }

    pub(super) fn into_view_inputs(self) -> (Vec<ViewInput>, Vec<MarkInput>) {
        let view_input = |read: Read| ViewInput {
            object: read.object.id,
            name: read.object.name.clone(),
            projection: read.columns,
        };
        (self.reads.into_values().map(view_input).collect(), self.marks)
    }
}
