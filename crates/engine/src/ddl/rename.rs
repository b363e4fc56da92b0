//! ALTER … RENAME TO: the definitions of what depends on the object name it anew.
//!
//! Invariant: after a rename every stored definition plans to what runs already; one that would not refuses it.

use std::sync::Arc;

use segue_catalog::{Catalog, CatalogError, Object, ObjectKind, ObjectState, Verb};
use segue_sql::{Name, Rename, Statement};
use segue_types::{SqlState, UserError};

use super::view::Maintained;
use crate::engine::Engine;

/// `ALTER {TABLE|VIEW|MATERIALIZED VIEW|SINK} name RENAME TO name`
pub(super) async fn rename(engine: &Engine, rename: Rename) -> Result<(), UserError> {
    let _alone = engine.lock_catalog().await;
    let catalog = engine.catalog();
    let kind = super::drop::relation_kind(rename.kind);
    let object = catalog.resolve_kind(rename.name.as_str(), kind, Verb::Alter)?;
    check(&catalog, object, &rename)?;
    let mut changed = vec![renamed(object, &rename.to)?];
    let readers = catalog.iter().filter(|reader| reader.depends_on.contains(&object.id));
    for reader in readers {
        changed.push(over_renamed(reader, &rename)?);
    }
    let after = changed
        .iter()
        .try_fold((*catalog).clone(), |catalog, object| catalog.with(object.clone()))?;
    for object in &changed[1..] {
        plans_as_before(&after, object)?;
    }
    super::install(engine, move |world| {
        for changed in changed {
            // The newest record: who reads for a view may have changed since the durable one.
            let Some(object) = world.catalog.get(changed.id) else { continue };
            let Object { name, definition, .. } = changed;
            world.put_object(Object { name, definition, ..(**object).clone() })?;
        }
        Ok(())
    })
    .await
}

fn check(catalog: &Catalog, object: &Object, rename: &Rename) -> Result<(), UserError> {
    let to = rename.to.as_str();
    if catalog.by_name(to).is_some() {
        let error = UserError::from(CatalogError::Duplicate { name: to.to_owned() });
        return Err(error.at(rename.offset.0));
    }
    if object.state != ObjectState::Ready {
        let kind = object.relation_kind();
        let message = format!("{kind} \"{}\" is {}", object.name, object.state);
        return Err(UserError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
    }
    if !object.stages().is_empty() {
        let what = object.relation_kind().keyword();
        let message = format!("ALTER {what} … RENAME of what stages feed is not supported");
        return Err(UserError::unsupported(message).with_hint("Drop it and create it again."));
    }
    Ok(())
}

fn renamed(object: &Object, to: &Name) -> Result<Object, UserError> {
    let definition = crate::recover::parse_definition(object)?.with_name(to).to_string();
    Ok(Object { name: to.as_str().to_owned(), definition, ..object.clone() })
}

fn over_renamed(reader: &Arc<Object>, rename: &Rename) -> Result<Object, UserError> {
    let definition = crate::recover::parse_definition(reader)?;
    let refused = |error: UserError| cannot_follow(&reader.name, &error.message);
    let definition = definition.with_relation_renamed(&rename.name, &rename.to).map_err(refused)?;
    Ok(Object { definition: definition.to_string(), ..(**reader).clone() })
}

fn plans_as_before(catalog: &Catalog, object: &Object) -> Result<(), UserError> {
    let refused = |error: UserError| cannot_follow(&object.name, &error.message);
    let schema = match (&object.kind, crate::recover::parse_definition(object)?) {
        (ObjectKind::View, Statement::CreateView(create)) => {
            segue_plan::delta::describe_query(catalog, &create.query.tree).map_err(refused)?.schema
        }
        (ObjectKind::View | ObjectKind::Source(_) | ObjectKind::Table(_), _) => return Ok(()),
        _ => Maintained::of(object)?.plan(catalog).map_err(refused)?.schema,
    };
    let types = |object: &Object| {
        let fields = object.schema.fields().iter();
        fields.map(|field| field.data_type().clone()).collect::<Vec<_>>()
    };
    let planned = schema.fields().iter().map(|field| field.data_type().clone());
    match planned.eq(types(object)) {
        true => Ok(()),
        false => Err(cannot_follow(&object.name, "it would have other columns")),
    }
}

fn cannot_follow(name: &str, reason: &str) -> UserError {
    let message = format!("\"{name}\" cannot follow the rename: {reason}");
    UserError::unsupported(message).with_hint("Drop it, and create it again after the rename.")
}
