//! Queries run on threads of their own: one that computes for long must not keep the protocol from
//! answering, nor from hearing that it is to be cancelled.
//!
//! Invariant: whoever drops the stream ends the query at its next batch.

use std::sync::{Arc, LazyLock};

use arrow::array::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::sql::parser::Statement as DataFusionStatement;
use futures::StreamExt;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

static THREADS: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .thread_name("segue-query")
        .thread_stack_size(segue_sql::STACK_BYTES)
        .enable_all()
        .build()
        .expect("the system gives a few threads")
});

/// Batches that wait for the connection.
const BATCHES_MAX: usize = 2;

/// What comes over the channel; without the end the query's task has died.
enum Item {
    Batch(Result<RecordBatch>),
    End,
}

/// Ends the task when the stream is dropped.
struct Ender(AbortHandle);

impl Drop for Ender {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Makes a logical plan. A large statement takes long, so it is planned on these threads too; whoever drops the
/// future does not wait for it.
pub(super) async fn plan(
    state: Arc<SessionState>,
    statement: DataFusionStatement,
) -> Result<LogicalPlan> {
    let task = THREADS.spawn(async move { state.statement_to_plan(statement).await });
    let died = || DataFusionError::Internal("the planner's task has failed".to_owned());
    task.await.map_err(|_| died())?
}

/// Starts a plan and gives its batches.
pub(super) fn start(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
) -> SendableRecordBatchStream {
    let schema = plan.schema();
    let (sender, mut receiver) = mpsc::channel(BATCHES_MAX);
    let task = THREADS.spawn(async move {
        match execute_stream(plan, context) {
            Err(error) => drop(sender.send(Item::Batch(Err(error))).await),
            Ok(mut batches) => {
                while let Some(batch) = batches.next().await {
                    if sender.send(Item::Batch(batch)).await.is_err() {
                        return;
                    }
                }
            }
        }
        drop(sender.send(Item::End).await);
    });
    let ender = Ender(task.abort_handle());
    let mut ended = false;
    let batches = futures::stream::poll_fn(move |context| {
        let _ = &ender;
        if ended {
            return std::task::Poll::Ready(None);
        }
        receiver.poll_recv(context).map(|item| match item {
            Some(Item::Batch(batch)) => Some(batch),
            Some(Item::End) => {
                ended = true;
                None
            }
            None => {
                ended = true;
                Some(Err(DataFusionError::Internal("the query's task has failed".to_owned())))
            }
        })
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}
