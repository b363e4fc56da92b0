//! Parts of a plan that DataFusion's batch engine computes: a logical plan over *leaves*, planned once, run again and
//! again over batches in memory.
//!
//! It runs in the calling thread, one partition, without waiting: a stream that wants to wait is an error. Several
//! threads may run one at the same time: each takes an *instance* of the physical plan, of which more are made when
//! all are busy.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use datafusion::prelude::SessionConfig;
use futures::StreamExt;
use segue_flow::Program;

use super::leaf::{Feed, Leaf, LeafExec};
use super::physical::held_type;

/// How DataFusion plans and runs a fragment: one partition, nothing that depends on the day's data.
pub(super) static STATE: LazyLock<SessionState> = LazyLock::new(|| {
    let config = SessionConfig::new().with_target_partitions(1).with_collect_statistics(false);
    let mut state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    super::provider::register_functions(&mut state);
    state
});

/// How often a stream may ask to be polled again before it is taken to wait for something.
const MAX_PENDING: usize = 1_000_000;

/// A fragment that can be run.
pub(super) struct Fragment {
    plan: LogicalPlan,
    /// What each leaf's batches are cast to.
    leaves: Vec<SchemaRef>,
    /// The types that come out.
    types: Vec<DataType>,
    /// Instances that nobody runs; at most as many as ran at one time.
    idle: Mutex<Vec<Instance>>,
}

/// A physical plan and what feeds its leaves.
struct Instance {
    plan: Arc<dyn ExecutionPlan>,
    feed: Arc<Feed>,
}

impl Fragment {
    /// Plans `plan`, whose leaves are numbered from 0 and have these schemas.
    pub(super) fn plan(plan: &LogicalPlan, leaves: Vec<SchemaRef>) -> Result<Fragment> {
        let instance = Instance::plan(plan)?;
        let fields = instance.plan.schema();
        let types = fields.fields().iter().map(|field| held_type(field.data_type())).collect();
        Ok(Fragment { plan: plan.clone(), leaves, types, idle: Mutex::new(vec![instance]) })
    }

    /// The types of what comes out, which are held ones.
    pub(super) fn types(&self) -> &[DataType] {
        &self.types
    }

    fn take_instance(&self) -> Result<Instance> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| Instance::plan(&self.plan), Ok)
    }

    fn held(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns = batch.columns().iter().zip(&self.types);
        let columns =
            columns.map(|(column, to)| Ok(cast(column, to)?)).collect::<Result<Vec<_>>>()?;
        unnamed(columns, batch.num_rows())
    }
}

impl Instance {
    fn plan(plan: &LogicalPlan) -> Result<Instance> {
        let feed = Arc::new(Feed::default());
        let leaves = LeafPlanner { feed: Arc::clone(&feed) };
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(leaves)]);
        let plan = ready(planner.create_physical_plan(plan, &*STATE))??;
        Ok(Instance { plan, feed })
    }

    /// The rows; those beyond `limit` are only begun.
    fn collect(&self, limit: usize) -> Result<Vec<RecordBatch>> {
        let plan = reset_plan_states(Arc::clone(&self.plan))?;
        let mut stream = execute_stream(plan, STATE.task_ctx())?;
        let mut batches = Vec::new();
        let mut rows = 0;
        while rows <= limit
            && let Some(batch) = ready(stream.next())?
        {
            let batch = batch?;
            rows += batch.num_rows();
            batches.push(batch);
        }
        Ok(batches)
    }
}

/// Columns under numbers, for whoever knows their names.
fn unnamed(columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let field = |(place, column): (usize, &ArrayRef)| {
        arrow::datatypes::Field::new(place.to_string(), column.data_type().clone(), true)
    };
    let fields = columns.iter().enumerate().map(field).collect::<Vec<_>>();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let schema = Arc::new(arrow::datatypes::Schema::new(fields));
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}

impl Program for Fragment {
    fn run(&self, inputs: &[RecordBatch]) -> Result<Vec<RecordBatch>> {
        let fed = inputs.iter().zip(&self.leaves).map(|(input, leaf)| as_leaf(input, leaf));
        let fed = fed.collect::<Result<Vec<_>>>()?;
        let instance = self.take_instance()?;
        instance.feed.set(fed);
        let batches = instance.collect(usize::MAX);
        instance.feed.set(Vec::new());
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(instance);
        batches?.iter().map(|batch| self.held(batch)).collect()
    }
}

/// The columns that a leaf has, in its types; those beyond are for partitioning alone.
fn as_leaf(input: &RecordBatch, leaf: &SchemaRef) -> Result<RecordBatch> {
    let columns = leaf.fields().iter().zip(input.columns());
    let columns = columns.map(|(field, column)| Ok(cast(column, field.data_type())?));
    let options = RecordBatchOptions::new().with_row_count(Some(input.num_rows()));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new_with_options(Arc::clone(leaf), columns, &options)?)
}

impl fmt::Debug for Fragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.plan.display_indent())
    }
}

/// The rows of a plan that reads nothing; of more than `limit`, only the first.
pub(super) fn constant(plan: &LogicalPlan, limit: usize) -> Result<Vec<RecordBatch>> {
    let fragment = Fragment::plan(plan, Vec::new())?;
    // A thread of its own: in a task of the server a stream would wait for its turn.
    let run = || -> Result<Vec<RecordBatch>> {
        let rows = fragment.take_instance()?.collect(limit)?;
        rows.iter().map(|batch| fragment.held(batch)).collect()
    };
    std::thread::scope(|scope| scope.spawn(run).join()).unwrap_or_else(|_| {
        Err(DataFusionError::Internal("computing a constant failed".to_owned()))
    })
}

/// The result of work that does not wait for anything outside.
fn ready<T>(work: impl Future<Output = T>) -> Result<T> {
    let mut work = pin!(work);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..MAX_PENDING {
        if let Poll::Ready(value) = work.as_mut().poll(&mut context) {
            return Ok(value);
        }
    }
    Err(DataFusionError::Internal("a plan over rows in memory waits for something".to_owned()))
}

/// Plans [`Leaf`]s.
struct LeafPlanner {
    feed: Arc<Feed>,
}

#[async_trait::async_trait]
impl ExtensionPlanner for LeafPlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        _physical_inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn datafusion::catalog::Session,
        _context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let leaf = node.as_any().downcast_ref::<Leaf>();
        let exec = leaf.map(|leaf| LeafExec::new(leaf, Arc::clone(&self.feed)));
        Ok(exec.map(|exec| Arc::new(exec) as Arc<dyn ExecutionPlan>))
    }
}
