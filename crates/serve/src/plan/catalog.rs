//! What names mean: one database of any name, with the schemas `public`, `segue`, `pg_catalog` and
//! `information_schema`.
//!
//! As in PostgreSQL the catalog's own relations come first on the search path.

use std::sync::Weak;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::DataFusionError;
use datafusion::datasource::ViewTable;
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as DataFusionStatement;
use parking_lot::RwLock;
use segue_catalog::{Object, ObjectState, RelationKind};
use segue_types::{SqlState, UserError};
use std::sync::Arc;

use super::relation::StoredRelation;
use super::rewrite::for_query;
use super::snapshot::SnapshotCell;
use super::source::SourceRelation;
use crate::catalog::SystemSchema;

/// The list of databases: every name is ours.
#[derive(Debug)]
pub(crate) struct Databases(Arc<Database>);

/// The database.
#[derive(Debug)]
struct Database {
    public: Arc<PublicSchema>,
    system: Vec<(&'static str, Arc<SystemSchema>)>,
}

/// The schema of the users' objects.
#[derive(Debug)]
pub(crate) struct PublicSchema {
    cell: Arc<SnapshotCell>,
    pg_catalog: Arc<SystemSchema>,
    /// The state that holds this schema, for the queries of views. Weak, or the two would keep each other.
    state: RwLock<Weak<SessionState>>,
}

impl Databases {
    /// The databases of a session, and the schema that must be told the session's state.
    pub(crate) fn new(cell: &Arc<SnapshotCell>) -> (Databases, Arc<PublicSchema>) {
        let system = SystemSchema::all(cell);
        let pg_catalog = system
            .iter()
            .find(|(name, _)| *name == "pg_catalog")
            .map(|(_, schema)| Arc::clone(schema))
            .expect("pg_catalog is one of the schemas");
        let public = Arc::new(PublicSchema {
            cell: Arc::clone(cell),
            pg_catalog,
            state: RwLock::new(Weak::new()),
        });
        let database = Database { public: Arc::clone(&public), system };
        (Databases(Arc::new(database)), public)
    }
}

impl CatalogProviderList for Databases {
    fn register_catalog(
        &self,
        _name: String,
        _catalog: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![super::state::DATABASE.to_owned()]
    }

    fn catalog(&self, _name: &str) -> Option<Arc<dyn CatalogProvider>> {
        let database = Arc::clone(&self.0);
        Some(database)
    }
}

impl CatalogProvider for Database {
    fn schema_names(&self) -> Vec<String> {
        let system = self.system.iter().map(|(name, _)| (*name).to_owned());
        std::iter::once("public".to_owned()).chain(system).collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        if name == "public" {
            let public = Arc::clone(&self.public);
            return Some(public);
        }
        let (_, schema) = self.system.iter().find(|(known, _)| *known == name)?;
        let schema = Arc::clone(schema);
        Some(schema)
    }
}

impl PublicSchema {
    /// Tells the schema the state that it belongs to.
    pub(crate) fn belongs_to(&self, state: &Arc<SessionState>) {
        *self.state.write() = Arc::downgrade(state);
    }

    async fn provider(&self, object: &Arc<Object>) -> Result<Arc<dyn TableProvider>, UserError> {
        if object.state == ObjectState::Creating {
            return Err(UserError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("{} \"{}\" is still being created", object.relation_kind(), object.name),
            )
            .with_hint("SHOW JOBS tells how far it is; WAIT waits for it."));
        }
        if object.state == ObjectState::Failed {
            let (kind, reason) =
                (object.relation_kind(), object.failure.clone().unwrap_or_default());
            let message = format!("{kind} \"{}\" is not maintained any more", object.name);
            return Err(UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                .with_detail(reason)
                .with_hint("Drop it and create it again."));
        }
        match object.relation_kind() {
            RelationKind::Table | RelationKind::MaterializedView => {
                let relation = StoredRelation::new(Arc::clone(object), Arc::clone(&self.cell));
                Ok(Arc::new(relation))
            }
            RelationKind::Source => {
                let relation = SourceRelation::new(Arc::clone(object), Arc::clone(&self.cell));
                Ok(Arc::new(relation))
            }
            RelationKind::View => self.view(object).await,
            RelationKind::Sink => {
                let message = format!("sink \"{}\" cannot be read", object.name);
                Err(UserError::new(SqlState::WRONG_OBJECT_TYPE, message)
                    .with_hint("Read the table that it feeds."))
            }
        }
    }

    async fn view(&self, object: &Arc<Object>) -> Result<Arc<dyn TableProvider>, UserError> {
        let state = self.state.read().upgrade().expect("a session's state outlives its statements");
        let query = crate::backend::view_query(object)?;
        let statement = for_query(sqlparser::ast::Statement::Query(Box::new(query)));
        let plan = state
            .statement_to_plan(DataFusionStatement::Statement(Box::new(statement)))
            .await
            .map_err(|error| crate::errors::user_error(&error, &object.definition))?;
        // CREATE VIEW v (a, b) gives the query's columns other names.
        let names = object.schema.fields().iter().map(|field| field.name().as_str());
        let plan = super::state::renamed(plan, names)
            .map_err(|error| crate::errors::user_error(&error, &object.definition))?;
        Ok(Arc::new(ViewTable::new(plan, None)))
    }
}

#[async_trait]
impl SchemaProvider for PublicSchema {
    fn table_names(&self) -> Vec<String> {
        let reading = self.cell.get();
        reading.published.catalog.iter().map(|object| object.name.clone()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        if name.starts_with("pg_")
            && let Some(table) = self.pg_catalog.table(name).await?
        {
            return Ok(Some(table));
        }
        let object = self.cell.get().published.catalog.by_name(name).cloned();
        match object {
            None => Ok(None),
            Some(object) => match self.provider(&object).await {
                Ok(provider) => Ok(Some(provider)),
                Err(error) => Err(DataFusionError::External(Box::new(error))),
            },
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.cell.get().published.catalog.by_name(name).is_some()
    }
}
