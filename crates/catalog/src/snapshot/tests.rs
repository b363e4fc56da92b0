//! Tests of the catalog snapshot, and the small objects that other tests of this crate build on.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::Schema;
use segue_types::{
    Boundedness, ConsumerId, Continuity, ObjectId, RowSemantics, SqlState, SqlType, UserError,
};

use crate::{
    Catalog, CatalogError, ConsumerRef, Object, ObjectKind, ObjectState, RelationKind, Settings,
    SourceObject, StageObject, Verb,
};

pub(crate) fn source(id: u32, name: &str) -> Object {
    let stage = StageObject {
        name: "history".to_owned(),
        connector: "postgres".to_owned(),
        options: BTreeMap::from([("password".to_owned(), "hunter2".to_owned())]),
        boundedness: Boundedness::Bounded,
        semantics: RowSemantics::State,
        definition: Some(serde_json::json!({ "identity": "7301" })),
        continuity: Some(Continuity::Exact),
    };
    Object {
        id: ObjectId(id),
        name: name.to_owned(),
        schema: Arc::new(Schema::new(vec![
            SqlType::BigInt.field("id", false),
            SqlType::Uuid.field("tag", true),
            SqlType::NUMERIC.field("amount", true),
        ])),
        key: vec![0],
        definition: "CREATE SOURCE … password = 'hunter2'".to_owned(),
        kind: ObjectKind::Source(SourceObject { stages: vec![stage], live: None }),
        depends_on: [].into(),
        state: ObjectState::Ready,
        consumers: Vec::new(),
        settings: Settings::default(),
        created_unix_ms: None,
        failure: None,
        gaps: Vec::new(),
    }
}

pub(crate) fn view(id: u32, name: &str, reads: &[u32]) -> Object {
    let consumer = ConsumerRef { id: ConsumerId(7), source: ObjectId(0), input: 0 };
    Object {
        kind: ObjectKind::MaterializedView,
        depends_on: reads.iter().copied().map(ObjectId).collect(),
        consumers: vec![consumer],
        ..source(id, name)
    }
}

pub(crate) fn catalog(objects: impl IntoIterator<Item = Object>) -> Catalog {
    objects.into_iter().fold(Catalog::default(), |catalog, object| {
        catalog.with(object).expect("the test's objects fit together")
    })
}

#[test]
fn a_name_is_unique_across_kinds_and_free_again_after_a_drop() {
    let catalog = catalog([source(0, "s")]);
    let error = UserError::from(catalog.with(view(1, "s", &[])).unwrap_err());
    assert_eq!(error.state, SqlState::DUPLICATE_TABLE);
    assert_eq!(error.message, "relation \"s\" already exists");
    let catalog = catalog.without(&[ObjectId(0)]);
    assert!(catalog.by_name("s").is_none());
    let catalog = catalog.with(view(1, "s", &[])).expect("the name is free");
    assert_eq!(catalog.by_name("s").map(|object| object.id), Some(ObjectId(1)));
}

#[test]
fn an_id_is_not_given_out_again_after_its_object_and_a_restart() {
    let catalog = catalog([source(0, "a"), source(1, "b")]).without(&[ObjectId(1)]);
    assert_eq!(catalog.next_id(), ObjectId(2));
    let objects = catalog.iter().map(|object| Object::clone(object));
    let restored = Catalog::restore(catalog.next_id(), objects).expect("it was consistent");
    assert_eq!(restored.next_id(), ObjectId(2));
    let reused = std::panic::catch_unwind(|| restored.with(source(1, "c")));
    assert!(reused.is_err(), "an id that was dropped never comes back");
}

#[test]
fn a_stored_catalog_that_contradicts_itself_is_not_restored() {
    let restore = |objects: Vec<Object>| Catalog::restore(ObjectId(0), objects).unwrap_err();
    let circle = vec![view(0, "v", &[1]), view(1, "w", &[0])];
    assert!(matches!(restore(circle), CatalogError::Circular { .. }));
    assert!(matches!(restore(vec![view(1, "v", &[0])]), CatalogError::Dangling { .. }));
    let twins = vec![source(0, "s"), source(1, "s")];
    assert!(matches!(restore(twins), CatalogError::Duplicate { .. }));
    let younger = vec![view(0, "v", &[1]), source(1, "s")];
    assert_eq!(Catalog::restore(ObjectId(0), younger).expect("no circle").next_id(), ObjectId(2));
}

#[test]
fn a_snapshot_does_not_change_when_the_next_one_is_made() {
    let before = catalog([source(0, "s")]);
    let after = before.with(view(1, "v", &[0])).expect("fits");
    assert_eq!((before.iter().count(), after.iter().count()), (1, 2));
    assert!(after.version() > before.version());
    assert!(after.without(&[ObjectId(1)]).version() > after.version());
}

#[test]
fn an_object_can_be_replaced_and_renamed_under_its_id() {
    let catalog = catalog([source(0, "s")]);
    let renamed = catalog.with(source(0, "t")).expect("its own name is not in its way");
    assert!(renamed.by_name("s").is_none());
    assert_eq!(renamed.by_name("t").map(|object| object.oid()), Some(16384));
    assert_eq!(renamed.by_oid(16384).map(|object| object.id), Some(ObjectId(0)));
    assert!(renamed.by_oid(5).is_none());
}

#[test]
fn a_definition_may_neither_read_itself_nor_what_reads_it() {
    let catalog = catalog([source(0, "s"), view(1, "v", &[0]), view(2, "w", &[1])]);
    for reads in [1, 2] {
        let error = catalog.with(view(1, "v", &[reads])).unwrap_err();
        assert_eq!(error, CatalogError::Circular { name: "v".to_owned() });
    }
    let dangling = CatalogError::Dangling { name: "x".to_owned(), missing: ObjectId(9) };
    assert_eq!(catalog.with(view(3, "x", &[9])).unwrap_err(), dangling);
    assert_eq!(catalog.dependents(ObjectId(0)), [ObjectId(2), ObjectId(1)]);
    assert_eq!(catalog.dependents(ObjectId(2)), []);
}

#[test]
fn dropping_what_others_read_without_them_is_a_defect() {
    let catalog = catalog([source(0, "s"), view(1, "v", &[0])]);
    assert!(std::panic::catch_unwind(|| catalog.without(&[ObjectId(0)])).is_err());
}

#[test]
fn lookups_fail_as_in_postgresql() {
    let catalog = catalog([source(0, "orders")]);
    let check = |error: CatalogError, state: SqlState, message: &str, hint: &str| {
        let error = UserError::from(error);
        assert_eq!((error.state, error.message.as_str()), (state, message));
        assert_eq!(error.hint.as_deref(), Some(hint));
    };
    check(
        catalog.resolve("order").unwrap_err(),
        SqlState::UNDEFINED_TABLE,
        "relation \"order\" does not exist",
        "Did you mean \"orders\"?",
    );
    check(
        catalog.resolve_kind("order", RelationKind::Table, Verb::Drop).unwrap_err(),
        SqlState::UNDEFINED_TABLE,
        "table \"order\" does not exist",
        "Did you mean \"orders\"?",
    );
    check(
        catalog.resolve_kind("orders", RelationKind::MaterializedView, Verb::Drop).unwrap_err(),
        SqlState::WRONG_OBJECT_TYPE,
        "\"orders\" is not a materialized view",
        "Use DROP SOURCE to remove a source.",
    );
    assert!(catalog.resolve_kind("orders", RelationKind::Source, Verb::Alter).is_ok());
}

#[test]
fn debug_output_never_shows_a_password() {
    let shown = format!("{:?} {:?}", source(0, "s"), catalog([source(0, "s")]));
    assert!(!shown.contains("hunter2"));
    assert!(!format!("{:?}", source(0, "s").kind).contains("hunter2"));
}
