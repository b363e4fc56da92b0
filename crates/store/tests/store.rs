//! The store as the engine uses it: what was committed comes back, and what was damaged is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use segue_store::{
    BlobKind, CHECKPOINTS_MAX, Commit, CommitError, DEAD_LETTERS_MAX, DeadLetter, LoadError,
    OpenError, StateBlob, Store,
};
use segue_types::{
    ConsumerId, Epoch, ObjectId, OperatorId, Position, SplitId, SqlState, StageIndex, UserError,
};
use tempfile::TempDir;

fn directory() -> TempDir {
    tempfile::tempdir().expect("the temporary directory is writable")
}

fn open(dir: &Path) -> Store {
    Store::open(dir).expect("the data directory is sound")
}

fn commit(store: &Store, epoch: u64, fill: impl FnOnce(&mut Commit)) {
    let mut commit = Commit::new(Epoch(epoch));
    fill(&mut commit);
    store.commit(&commit).expect("the commit is sound");
}

fn blob(object: u32, operator: u64, group: u8, kind: BlobKind, bytes: Vec<u8>) -> StateBlob {
    StateBlob { operator: OperatorId(u64::from(object) << 16 | operator), group, kind, bytes }
}

fn letter(object: u32, text: &str) -> DeadLetter {
    DeadLetter {
        object: ObjectId(object),
        stage: StageIndex(1),
        split: SplitId::new("0"),
        position: Position::new("17"),
        reason: format!("not a number: {text}"),
        unix_ms: 1_700_000_000_000,
        payload: vec![0xff, 0x00, b'x'],
    }
}

#[test]
fn the_store_is_shared_between_threads_and_captures_move_between_them() {
    fn shared<T: Send + Sync>() {}
    fn movable<T: Send>() {}
    shared::<Store>();
    movable::<segue_store::capture::CaptureWriter>();
    movable::<segue_store::capture::CaptureReader>();
}

#[test]
fn everything_comes_back_after_a_restart() {
    let dir = directory();
    let store = open(dir.path());
    assert_eq!(store.load().expect("loads").epoch, Epoch(0));
    let big: Vec<u8> = (0..3_000_000u32).map(|i| (i * 7) as u8).collect();
    commit(&store, 1, |commit| {
        commit.put_object(ObjectId(3), b"three".to_vec());
        commit.put_consumer(ConsumerId(8), b"eight".to_vec());
        commit.put_state(blob(3, 0, 5, BlobKind::Base, big.clone()));
        commit.put_state(blob(3, 0, 5, BlobKind::Delta, b"d1".to_vec()));
        commit.put_state(blob(3, 0, 5, BlobKind::Delta, b"d2".to_vec()));
        commit.put_dead_letter(letter(3, "abc"));
        assert_eq!(commit.bytes(), 5 + 5 + 3_000_000 + 4 + 3);
        commit.put_checkpoint(1_700_000_000_123, 42);
    });
    commit(&store, 2, |commit| {
        commit.put_consumer(ConsumerId(8), b"eight again".to_vec());
        commit.put_state(blob(3, 0, 5, BlobKind::Delta, b"d3".to_vec()));
        commit.put_state(blob(3, 9, 0, BlobKind::Base, Vec::new()));
    });
    let before = store.load().expect("loads");
    store.close().expect("closes");

    let store = open(dir.path());
    let stored = store.load().expect("loads");
    assert_eq!(stored, before);
    assert_eq!(stored.epoch, Epoch(2));
    assert_eq!(stored.objects, [(ObjectId(3), b"three".to_vec())]);
    assert_eq!(stored.consumers, [(ConsumerId(8), b"eight again".to_vec())]);
    let next = (stored.next_object, stored.next_consumer);
    assert_eq!(next, (ObjectId(4), ConsumerId(9)), "ids are not given out again");
    let row = stored.checkpoints[0];
    assert_eq!(
        (row.epoch, row.unix_ms, row.bytes, row.rows),
        (Epoch(1), 1_700_000_000_123, 3_000_017, 42)
    );
    assert_eq!(store.dead_letters().expect("loads"), [letter(3, "abc")]);
    let expected = [
        blob(3, 0, 5, BlobKind::Base, big),
        blob(3, 0, 5, BlobKind::Delta, b"d1".to_vec()),
        blob(3, 0, 5, BlobKind::Delta, b"d2".to_vec()),
        blob(3, 0, 5, BlobKind::Delta, b"d3".to_vec()),
        blob(3, 9, 0, BlobKind::Base, Vec::new()),
    ];
    assert_eq!(store.state_blobs(ObjectId(3)).expect("loads"), expected);
    assert_eq!(store.state_blobs(ObjectId(2)).expect("loads"), []);
}

#[test]
fn the_record_of_a_dropped_object_stays_until_it_is_released() {
    let dir = directory();
    let store = open(dir.path());
    let object = ObjectId(4);
    commit(&store, 1, |commit| commit.put_object(object, b"object".to_vec()));
    assert_eq!(store.load().expect("loads").releases, []);
    commit(&store, 2, |commit| {
        commit.drop_object(object);
        commit.put_release(object, b"left".to_vec());
    });
    drop(store);
    let store = open(dir.path());
    let stored = store.load().expect("loads");
    assert_eq!((stored.objects, stored.releases), (vec![], vec![(object, b"left".to_vec())]));
    commit(&store, 3, |commit| commit.delete_release(object));
    assert_eq!(store.load().expect("loads").releases, []);
}

#[test]
fn dropping_an_object_takes_its_state_and_dead_letters_and_nothing_of_its_neighbours() {
    let dir = directory();
    let store = open(dir.path());
    commit(&store, 1, |commit| {
        for object in [4, 5, 6] {
            commit.put_object(ObjectId(object), vec![1]);
            for operator in [0, 0xffff] {
                commit.put_state(blob(object, operator, 15, BlobKind::Base, vec![1]));
                commit.put_state(blob(object, operator, 255, BlobKind::Delta, vec![2]));
            }
            commit.put_dead_letter(letter(object, "x"));
        }
    });
    commit(&store, 2, |commit| commit.drop_object(ObjectId(5)));
    let stored = store.load().expect("loads");
    assert_eq!(stored.objects.iter().map(|(id, _)| id.0).collect::<Vec<_>>(), [4, 6]);
    assert_eq!(stored.next_object, ObjectId(7));
    let count = |object| store.state_blobs(ObjectId(object)).expect("loads").len();
    assert_eq!((count(4), count(5), count(6)), (4, 0, 4));
    let letters = store.dead_letters().expect("loads");
    assert_eq!(letters.iter().map(|letter| letter.object.0).collect::<Vec<_>>(), [4, 6]);
    commit(&store, 3, |commit| commit.drop_operator_state(ObjectId(4)));
    assert_eq!((count(4), count(6)), (0, 4));
    assert_eq!(store.load().expect("loads").objects.len(), 2);
}

#[test]
fn an_epoch_follows_the_one_before_or_is_not_written() {
    let dir = directory();
    let store = open(dir.path());
    commit(&store, 1, |_| {});
    for wrong in [0, 1, 3] {
        let error = store.commit(&Commit::new(Epoch(wrong))).expect_err("not epoch 2");
        assert!(matches!(error, CommitError::Epoch { stored: Epoch(1), .. }), "{error}");
    }
    commit(&store, 2, |_| {});
    drop(store);
    let store = open(dir.path());
    assert!(store.commit(&Commit::new(Epoch(1))).is_err());
    commit(&store, 3, |_| {});
    assert_eq!(store.load().expect("loads").epoch, Epoch(3));
}

#[test]
fn state_of_an_object_that_is_not_stored_is_refused_and_stops_the_store() {
    let dir = directory();
    let store = open(dir.path());
    let mut late = Commit::new(Epoch(1));
    late.put_object(ObjectId(1), vec![1]);
    late.drop_object(ObjectId(1));
    late.put_state(blob(1, 0, 0, BlobKind::Delta, vec![1]));
    let error = store.commit(&late).expect_err("nobody would ever delete that state");
    assert_eq!(error.to_string(), "could not write epoch 1: object 1 is written to but not stored");
    let error =
        store.commit(&Commit::new(Epoch(1))).expect_err("a failed store takes nothing more");
    assert!(matches!(error, CommitError::Stopped { failed: Epoch(1) }));
    drop(store);
    assert_eq!(open(dir.path()).load().expect("loads").epoch, Epoch(0));
}

#[test]
fn a_second_server_on_the_same_directory_is_refused_in_one_line() {
    let dir = directory();
    let store = open(dir.path());
    let error = Store::open(dir.path()).expect_err("it is in use");
    let expected =
        format!("data directory \"{}\" is in use by another segue server", dir.path().display());
    assert_eq!(error.to_string(), expected);
    assert_eq!(UserError::from(&error).state, SqlState::OBJECT_IN_USE);
    drop(store);
    open(dir.path());
}

#[test]
fn a_file_that_something_else_made_is_refused() {
    let dir = directory();
    fs::write(dir.path().join("segue.redb"), "no database at all").expect("writes");
    let error = Store::open(dir.path()).expect_err("not a database");
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    let other = directory();
    drop(redb::Database::create(other.path().join("segue.redb")).expect("creates"));
    let error = Store::open(other.path()).expect_err("somebody else's database");
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
}

#[test]
fn a_first_start_that_was_cut_short_is_started_over() {
    let dir = directory();
    fs::write(dir.path().join("segue.redb.new"), "half of a database").expect("writes");
    assert_eq!(open(dir.path()).load().expect("loads").epoch, Epoch(0));
    assert!(!dir.path().join("segue.redb.new").exists());
}

/// Changes the file behind the store's back: every `from` becomes `to`.
fn replace_in_file(dir: &Path, from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    let path = dir.join("segue.redb");
    let mut bytes = fs::read(&path).expect("reads");
    let places: Vec<usize> =
        (0..bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
    assert!(!places.is_empty(), "the value is in the file");
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    fs::write(&path, bytes).expect("writes");
}

#[test]
fn a_flipped_bit_in_a_stored_value_is_named_by_table_and_key() {
    let check = |needle: &'static [u8], table: &str, key: &str, read: fn(&Store) -> LoadError| {
        let dir = directory();
        let store = open(dir.path());
        commit(&store, 1, |commit| {
            commit.put_object(ObjectId(5), b"value of the object".to_vec());
            commit.put_consumer(ConsumerId(6), b"value of the consumer".to_vec());
            let state = b"value of the state".to_vec();
            commit.put_state(blob(5, 1, 2, BlobKind::Delta, state));
        });
        store.close().expect("closes");
        let mut flipped = needle.to_vec();
        flipped[3] ^= 0x10;
        replace_in_file(dir.path(), needle, &flipped);
        let error = read(&open(dir.path()));
        assert_eq!(UserError::from(&error).state, SqlState::DATA_CORRUPTED);
        assert_eq!(
            error.to_string(),
            format!(
                "corrupted record in table \"{table}\" with key {key}: the checksum does not match"
            )
        );
    };
    let load = |store: &Store| store.load().expect_err("the record is damaged");
    let state = |store: &Store| store.state_blobs(ObjectId(5)).expect_err("the record is damaged");
    check(b"value of the object", "objects", "5", load);
    check(b"value of the consumer", "consumers", "6", load);
    check(b"value of the state", "state_delta", "(327681, 2, 1, 0, 0)", state);
}

#[test]
fn damage_anywhere_in_the_file_is_an_error_or_harmless_but_never_a_panic() {
    let dir = directory();
    let store = open(dir.path());
    commit(&store, 1, |commit| {
        for object in 0..200 {
            commit.put_object(ObjectId(object), vec![object as u8; 50]);
            commit.put_state(blob(object, 0, 0, BlobKind::Base, vec![object as u8; 900]));
        }
    });
    let everything = |store: &Store| -> Result<_, LoadError> {
        let states: Result<Vec<_>, _> =
            (0..200).map(|id| store.state_blobs(ObjectId(id))).collect();
        Ok((store.load()?, states?))
    };
    let truth = everything(&store).expect("it is not damaged yet");
    store.close().expect("closes");
    let path = dir.path().join("segue.redb");
    let sound = fs::read(&path).expect("reads");
    let (mut refused, mut random) = (0, 0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..200 {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut damaged = sound.clone();
        damaged[(random >> 20) as usize % sound.len()] ^= 1 << (random >> 17 & 7);
        fs::write(&path, damaged).expect("writes");
        let read = match Store::open(dir.path()) {
            Ok(store) => everything(&store).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok(found) => assert_eq!(found, truth),
            Err(_) => refused += 1,
        }
    }
    assert!(
        refused > 40,
        "only {refused} of 200 were noticed, so the test damages the wrong bytes"
    );
}

#[test]
fn a_newer_format_is_refused_by_number() {
    let dir = directory();
    drop(open(dir.path()));
    let payload = [&b"meta"[..], b"format", &[1], &7u16.to_be_bytes()].concat();
    let checksum = xxhash_rust::xxh3::xxh3_64(&payload).to_be_bytes();
    let record = [&[1u8][..], &checksum, &7u16.to_be_bytes()].concat();
    let database = redb::Database::open(dir.path().join("segue.redb")).expect("opens");
    let transaction = database.begin_write().expect("begins");
    let table = redb::TableDefinition::<&[u8], &[u8]>::new("meta");
    transaction
        .open_table(table)
        .expect("opens")
        .insert(&b"format"[..], &record[..])
        .expect("inserts");
    transaction.commit().expect("commits");
    drop(database);
    let error = Store::open(dir.path()).expect_err("version 7 is not known");
    assert!(matches!(error, OpenError::NewerFormat { found: 7, .. }), "{error}");
}

#[test]
fn dead_letters_and_checkpoints_have_a_bound() {
    let dir = directory();
    let store = open(dir.path());
    commit(&store, 1, |commit| {
        for number in 0..DEAD_LETTERS_MAX + 10 {
            commit.put_dead_letter(letter(0, &number.to_string()));
        }
    });
    let letters = store.dead_letters().expect("loads");
    assert_eq!(letters.len() as u64, DEAD_LETTERS_MAX);
    assert_eq!(letters[0].reason, "not a number: 10");
    assert_eq!(store.load().expect("loads").dead_letters_dropped, 10);
    for epoch in 2..CHECKPOINTS_MAX + 12 {
        commit(&store, epoch, |commit| commit.put_checkpoint(0, epoch));
    }
    let rows = store.load().expect("loads").checkpoints;
    assert_eq!(rows.len() as u64, CHECKPOINTS_MAX);
    assert_eq!(rows[0].epoch, Epoch(12));
}

#[test]
fn thousands_of_objects_that_come_and_go_do_not_grow_the_file() {
    let dir = directory();
    let store = open(dir.path());
    let mut sizes = Vec::new();
    for round in 0..40u32 {
        commit(&store, u64::from(round) * 2 + 1, |commit| {
            for object in round * 100..round * 100 + 100 {
                commit.put_object(ObjectId(object), vec![7; 500]);
                commit.put_state(blob(object, 0, 0, BlobKind::Base, vec![7; 20_000]));
            }
        });
        commit(&store, u64::from(round) * 2 + 2, |commit| {
            (round * 100..round * 100 + 100).for_each(|id| commit.drop_object(ObjectId(id)));
        });
        sizes.push(store.file_bytes());
    }
    let (early, late) = (sizes[5], sizes[39]);
    assert!(late <= early * 2, "{early} bytes after 600 objects, {late} after 4,000");
    assert_eq!(store.load().expect("loads").objects, []);
    store.close().expect("closes");
}

#[derive(Clone, Debug)]
enum Step {
    State { object: u32, operator: u64, group: u8, base: bool, length: usize },
    Drop { object: u32 },
    Commit,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let length = prop_oneof![Just(0usize), 1usize..200, 1_048_000usize..1_050_000];
    prop_oneof![
        8 => (0u32..2, 0u64..2, 0u8..2, any::<bool>(), length).prop_map(
            |(object, operator, group, base, length)| {
                Step::State { object, operator, group, base, length }
            }
        ),
        1 => (0u32..2).prop_map(|object| Step::Drop { object }),
        4 => Just(Step::Commit),
        1 => Just(Step::Reopen),
    ]
}

/// Operator and group → what is stored for them, in order.
type Model = BTreeMap<(u64, u8), Vec<StateBlob>>;

fn check_model(store: &Store, model: &Model) {
    for object in 0..2 {
        let expected: Vec<StateBlob> = model
            .iter()
            .filter(|((operator, _), _)| operator >> 16 == object)
            .flat_map(|(_, blobs)| blobs.clone())
            .collect();
        let found = store.state_blobs(ObjectId(object as u32)).expect("loads");
        assert!(found == expected, "{} blobs instead of {}", found.len(), expected.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_base_replaces_and_a_delta_appends(steps in prop::collection::vec(step(), 1..40)) {
        let dir = directory();
        let mut store = open(dir.path());
        let mut epoch = 1;
        let mut pending = Commit::new(Epoch(epoch));
        (0..2).for_each(|id| pending.put_object(ObjectId(id), vec![1]));
        let (mut model, mut durable) = (Model::new(), Model::new());
        for (number, step) in steps.into_iter().chain([Step::Commit, Step::Reopen]).enumerate() {
            match step {
                Step::State { object, operator, group, base, length } => {
                    let kind = if base { BlobKind::Base } else { BlobKind::Delta };
                    let blob = blob(object, operator, group, kind, vec![number as u8; length]);
                    let stored = model.entry((blob.operator.0, group)).or_default();
                    if base {
                        stored.clear();
                    }
                    stored.push(blob.clone());
                    pending.put_state(blob);
                }
                Step::Drop { object } => {
                    model.retain(|(operator, _), _| operator >> 16 != u64::from(object));
                    pending.drop_operator_state(ObjectId(object));
                }
                Step::Commit => {
                    store.commit(&pending).expect("the commit is sound");
                    epoch += 1;
                    pending = Commit::new(Epoch(epoch));
                    durable = model.clone();
                    check_model(&store, &model);
                }
                Step::Reopen => {
                    drop(store);
                    store = open(dir.path());
                    model = durable.clone();
                    pending = Commit::new(Epoch(epoch));
                    if epoch == 1 {
                        (0..2).for_each(|id| pending.put_object(ObjectId(id), vec![1]));
                    }
                    check_model(&store, &model);
                }
            }
        }
        store.load().expect("loads");
    }
}
