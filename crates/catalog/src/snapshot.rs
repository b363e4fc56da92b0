//! The [`Catalog`] snapshot: look-ups, and how the next snapshot is made.
//!
//! Invariants: `by_name` and `objects` hold the same objects; `next_id` is greater than
//! every id that was ever in.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use segue_types::ObjectId;

use crate::{CatalogError, OID_FIRST, Object, RelationKind, Verb};

/// All objects at one moment. Cheap to clone; never changes.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    version: u64,
    next_id: ObjectId,
    objects: BTreeMap<ObjectId, Arc<Object>>,
    by_name: HashMap<String, ObjectId>,
}

impl Catalog {
    /// The catalog of stored objects, at version 0. `next_id` is the stored one; it may
    /// be greater than what the objects ask for, since objects have been dropped.
    pub fn restore(
        next_id: ObjectId,
        objects: impl IntoIterator<Item = Object>,
    ) -> Result<Catalog, CatalogError> {
        let objects: BTreeMap<ObjectId, Arc<Object>> =
            objects.into_iter().map(|object| (object.id, Arc::new(object))).collect();
        let mut by_name = HashMap::with_capacity(objects.len());
        for object in objects.values() {
            if by_name.insert(object.name.clone(), object.id).is_some() {
                return Err(CatalogError::Duplicate { name: object.name.clone() });
            }
        }
        let used = objects.keys().next_back().map_or(ObjectId(0), |last| ObjectId(last.0 + 1));
        let catalog = Catalog { version: 0, next_id: next_id.max(used), objects, by_name };
        catalog.check_all_dependencies()?;
        Ok(catalog)
    }

    /// Grows with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The id for the next new object. Durable: the store keeps it beyond the objects themselves.
    pub fn next_id(&self) -> ObjectId {
        self.next_id
    }

    /// The object of this id.
    pub fn get(&self, id: ObjectId) -> Option<&Arc<Object>> {
        self.objects.get(&id)
    }

    /// The object of this name, of whatever kind.
    pub fn by_name(&self, name: &str) -> Option<&Arc<Object>> {
        self.by_name.get(name).map(|id| &self.objects[id])
    }

    /// The object of this PostgreSQL OID.
    pub fn by_oid(&self, oid: u32) -> Option<&Arc<Object>> {
        self.get(ObjectId(oid.checked_sub(OID_FIRST)?))
    }

    /// All objects, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.values()
    }

    /// The object of this name, or the error that names the nearest one.
    pub fn resolve(&self, name: &str) -> Result<&Arc<Object>, CatalogError> {
        self.by_name(name).ok_or_else(|| CatalogError::Undefined {
            name: name.to_owned(),
            nearest: self.nearest(name),
        })
    }

    /// The object of this name, which must be of the kind that the statement named.
    pub fn resolve_kind(
        &self,
        name: &str,
        expected: RelationKind,
        verb: Verb,
    ) -> Result<&Arc<Object>, CatalogError> {
        let object = self.by_name(name).ok_or_else(|| CatalogError::UndefinedOfKind {
            kind: expected,
            name: name.to_owned(),
            nearest: self.nearest(name),
        })?;
        match object.relation_kind() {
            found if found == expected => Ok(object),
            found => Err(CatalogError::WrongKind { name: name.to_owned(), expected, found, verb }),
        }
    }

    /// Everything that reads `id`, directly or through others, each before what it depends on. Without
    /// `id` itself.
    pub fn dependents(&self, id: ObjectId) -> Vec<ObjectId> {
        let mut order = self.drop_order(&[id]);
        order.retain(|other| *other != id);
        order
    }

    /// The snapshot in which `object` is new, or has taken the place of the one with its id.
    ///
    /// # Panics
    /// If the id is neither in the catalog nor unused: an id that was dropped never comes back.
    pub fn with(&self, object: Object) -> Result<Catalog, CatalogError> {
        let id = object.id;
        let old = self.get(id);
        assert!(old.is_some() || id >= self.next_id, "object id {id} has been used before");
        if id.0 >= u32::MAX - OID_FIRST {
            return Err(CatalogError::OutOfIds);
        }
        if self.by_name(&object.name).is_some_and(|other| other.id != id) {
            return Err(CatalogError::Duplicate { name: object.name });
        }
        let mut next = self.clone();
        if let Some(old) = old {
            next.by_name.remove(&old.name);
        }
        next.version += 1;
        next.next_id = next.next_id.max(ObjectId(id.0 + 1));
        next.by_name.insert(object.name.clone(), id);
        let object = Arc::new(object);
        next.objects.insert(id, Arc::clone(&object));
        next.check_dependencies(&object)?;
        Ok(next)
    }

    /// The snapshot in which no new object gets this id, nor a smaller one.
    ///
    /// # Panics
    /// If it is not the next.
    #[must_use]
    pub fn without_id(&self, id: ObjectId) -> Catalog {
        assert_eq!(id, self.next_id, "ids are taken one after the other");
        Catalog { version: self.version + 1, next_id: ObjectId(id.0 + 1), ..self.clone() }
    }

    /// The snapshot without these objects. Their ids stay used.
    ///
    /// # Panics
    /// If one is not there, or if an object that stays depends on one that goes.
    #[must_use]
    pub fn without(&self, ids: &[ObjectId]) -> Catalog {
        let mut next = self.clone();
        for id in ids {
            let object =
                next.objects.remove(id).expect("what is dropped was planned from this catalog");
            next.by_name.remove(&object.name);
        }
        for object in next.objects.values() {
            assert!(
                object.depends_on.iter().all(|id| next.objects.contains_key(id)),
                "\"{}\" has lost what it depends on",
                object.name
            );
        }
        next.version += 1;
        next
    }

    /// `roots` and everything that depends on them, each object before what it depends on: depth-first,
    /// an object is listed once all its dependents are.
    pub(crate) fn drop_order(&self, roots: &[ObjectId]) -> Vec<ObjectId> {
        let mut readers: HashMap<ObjectId, Vec<ObjectId>> = HashMap::new();
        for object in self.objects.values() {
            for dependency in &object.depends_on {
                readers.entry(*dependency).or_default().push(object.id);
            }
        }
        let readers_of = |id: ObjectId| readers.get(&id).map_or(&[][..], Vec::as_slice);
        let mut seen = HashSet::new();
        let mut order = Vec::new();
        for root in roots {
            if !seen.insert(*root) {
                continue;
            }
            let mut path = vec![(*root, readers_of(*root).iter())];
            while let Some((id, rest)) = path.last_mut() {
                match rest.next() {
                    Some(reader) if seen.insert(*reader) => {
                        path.push((*reader, readers_of(*reader).iter()));
                    }
                    Some(_) => {}
                    None => {
                        order.push(*id);
                        path.pop();
                    }
                }
            }
        }
        order
    }

    /// Ids say nothing about the order: a replaced view may depend on a younger object. So all objects are
    /// put into drop order, in which an edge that points backwards lies on a cycle.
    fn check_all_dependencies(&self) -> Result<(), CatalogError> {
        let ids: Vec<ObjectId> = self.objects.keys().copied().collect();
        let order = self.drop_order(&ids);
        let place: HashMap<ObjectId, usize> =
            order.into_iter().enumerate().map(|(i, id)| (id, i)).collect();
        for object in self.objects.values() {
            self.check_existence(object)?;
            if object.depends_on.iter().any(|id| place[id] <= place[&object.id]) {
                return Err(CatalogError::Circular { name: object.name.clone() });
            }
        }
        Ok(())
    }

    fn check_existence(&self, object: &Object) -> Result<(), CatalogError> {
        match object.depends_on.iter().find(|id| !self.objects.contains_key(id)) {
            Some(missing) => {
                Err(CatalogError::Dangling { name: object.name.clone(), missing: *missing })
            }
            None => Ok(()),
        }
    }

    fn check_dependencies(&self, object: &Object) -> Result<(), CatalogError> {
        self.check_existence(object)?;
        let dependents = self.dependents(object.id);
        match object.depends_on.iter().any(|id| *id == object.id || dependents.contains(id)) {
            true => Err(CatalogError::Circular { name: object.name.clone() }),
            false => Ok(()),
        }
    }

    fn nearest(&self, name: &str) -> Option<String> {
        segue_types::nearest(name, self.by_name.keys().map(String::as_str)).map(str::to_owned)
    }
}

#[cfg(test)]
#[path = "snapshot/tests.rs"]
pub(crate) mod tests;
