//! TEMPORARY in-memory backend with the engine's names.
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use parking_lot::Mutex;
use segue_catalog::{Catalog, Object, ObjectKind, ObjectState, OnConflict, TableObject};
pub use segue_connect::{Changes, Ops, Registry};
use segue_sql::Statement;
use segue_types::{ObjectId, Op, UserError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

#[derive(Clone)]
pub struct StatementContext {
    pub notices: mpsc::Sender<String>,
    pub cancel: CancellationToken,
    pub background_ddl: bool,
}
#[derive(Clone, Debug)]
pub struct RelationVersion(Arc<Vec<RecordBatch>>, Arc<Vec<usize>>);
pub struct Published {
    pub catalog: Arc<Catalog>,
    pub relations: HashMap<ObjectId, RelationVersion>,
}
#[derive(Clone)]
pub struct Engine(Arc<Mutex<Arc<Published>>>, Arc<Registry>);
pub struct TableWriter(Engine, ObjectId, RelationVersion);
#[derive(Default)]
pub struct Status {
    pub jobs: Vec<JobStatus>,
}
pub struct JobStatus {
    pub id: segue_types::JobId,
    pub name: String,
    pub state: &'static str,
    pub progress: String,
    pub error: Option<String>,
}

impl Engine {
    pub fn memory() -> Engine {
        let catalog = Arc::new(Catalog::default());
        Engine(Arc::new(Mutex::new(Arc::new(Published { catalog, relations: HashMap::new() }))), Arc::new(Registry::default()))
    }
    pub fn published(&self) -> Arc<Published> {
        Arc::clone(&self.0.lock())
    }
    pub fn registry(&self) -> &Registry {
        &self.1
    }
    pub async fn status(&self) -> Result<Status, UserError> {
        Ok(Status::default())
    }
    pub async fn table(&self, id: ObjectId) -> Result<TableWriter, UserError> {
        let p = self.published();
        Ok(TableWriter(self.clone(), id, p.relations[&id].clone()))
    }
    pub async fn execute(&self, statement: Statement, context: &StatementContext) -> Result<(), UserError> {
        let definition = statement.to_string();
        let p = self.published();
        match statement {
            Statement::CreateTable(t) => {
                let mut fields = Vec::new();
                for c in &t.columns.columns {
                    let not_null = c.nullability == segue_sql::Nullability::NotNull;
                    fields.push(c.ty.field(c.name.as_str(), !not_null));
                }
                let key = t.columns.key.iter().map(|k| fields.iter().position(|f| f.name() == k.as_str()).unwrap()).collect();
                let object = Object {
                    id: p.catalog.next_id(), name: t.name.as_str().into(), schema: Arc::new(arrow::datatypes::Schema::new(fields)), key,
                    definition, kind: ObjectKind::Table(TableObject { stages: vec![], on_conflict: OnConflict::Overwrite }),
                    depends_on: BTreeSet::new(), state: ObjectState::Ready, consumers: vec![],
                };
                let mut relations = p.relations.clone();
                relations.insert(object.id, RelationVersion(Arc::new(vec![]), Arc::new(object.key.clone())));
                let catalog = Arc::new(p.catalog.with(object).map_err(|e| UserError::internal(e.to_string()))?);
                *self.0.lock() = Arc::new(Published { catalog, relations });
                Ok(())
            }
            Statement::Wait(_) => {
                for i in 0..100 {
                    let _ = context.notices.try_send(format!("waiting {i}"));
                    tokio::select! { () = context.cancel.cancelled() => return Err(crate::errors::canceled()), () = tokio::time::sleep(std::time::Duration::from_millis(300)) => {} }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
impl TableWriter {
    pub fn version(&self) -> &RelationVersion {
        &self.2
    }
    pub async fn write(self, changes: Vec<Changes>) -> Result<(), UserError> {
        let p = self.0.published();
        let mut rows: Vec<RecordBatch> = p.relations[&self.1].0.iter().flat_map(|b| (0..b.num_rows()).map(|i| b.slice(i, 1)).collect::<Vec<_>>()).collect();
        let key = &p.relations[&self.1].1;
        let same = |a: &RecordBatch, b: &RecordBatch| {
            if key.is_empty() { a.columns() == b.columns() } else { key.iter().all(|k| a.column(*k) == b.column(*k)) }
        };
        for c in changes {
            for i in 0..c.rows.num_rows() {
                let row = c.rows.slice(i, 1);
                match c.ops.get(i) {
                    Op::Insert => rows.push(row),
                    Op::Put => { rows.retain(|r| !same(r, &row)); rows.push(row); }
                    Op::Remove => rows.retain(|r| !same(r, &row)),
                    Op::Retract => { if let Some(at) = rows.iter().position(|r| same(r, &row)) { rows.remove(at); } }
                }
            }
        }
        let mut relations = p.relations.clone();
        relations.insert(self.1, RelationVersion(Arc::new(rows), Arc::clone(key)));
        *self.0.0.lock() = Arc::new(Published { catalog: Arc::clone(&p.catalog), relations });
        Ok(())
    }
}
pub fn chunks(version: &RelationVersion) -> Vec<RecordBatch> {
    version.0.as_ref().clone()
}
pub fn lookup(version: &RelationVersion, key: &[ArrayRef]) -> Option<RecordBatch> {
    version.0.iter().find(|r| version.1.iter().zip(key).all(|(k, v)| r.column(*k) == v)).cloned()
}
pub fn view_query(object: &Object) -> Result<sqlparser::ast::Query, UserError> {
    match segue_sql::parse(&object.definition)?.pop() {
        Some(Statement::CreateView(view) | Statement::CreateMaterializedView(view)) => Ok(*view.query.tree),
        _ => Err(UserError::internal("no view")),
    }
}
pub fn shown_definition(object: &Object, _registry: &Registry) -> String {
    object.definition.clone()
}
