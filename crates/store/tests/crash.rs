//! `kill -9` at random moments and at crash points: after each, the file is on one of the two sides of
//! a commit.
//!
//! The test binary starts itself again as the process that is killed. That one commits epoch after
//! epoch, whose content follows from their number, and prints each number once its commit has returned.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::Schema;
use libtest_mimic::{Arguments, Failed, Trial};
use segue_store::{BlobKind, Commit, CommitError, StateBlob, Store};
use segue_types::{ConsumerId, Epoch, ObjectId, OperatorId, SqlType, StageIndex};

const ROLE: &str = "SEGUE_STORE_TEST_ROLE";
const OBJECT: ObjectId = ObjectId(1);
const CONSUMERS: u64 = 4;
const GROUPS: u64 = 4;
/// Of a group's blobs every fifth is a base.
const BASE_EVERY: u64 = 5;

fn main() {
    if let Ok(role) = std::env::var(ROLE) {
        let dir = std::env::args().nth(1).expect("the parent gives the directory");
        match role.as_str() {
            "commit" => commit_for_ever(Path::new(&dir)),
            "capture" => capture_and_publish(Path::new(&dir)),
            "full" => commit_until_full(Path::new(&dir)),
            role => panic!("no role is named {role}"),
        }
        return;
    }
    let trials = vec![
        Trial::test("killed_at_random_moments_the_file_is_at_one_of_two_epochs", random_kills),
        Trial::test("killed_before_the_commit_the_epoch_is_not_there", || {
            kill_at_commit("before-commit", 0)
        }),
        Trial::test("killed_after_the_commit_the_epoch_is_there", || {
            kill_at_commit("after-commit", 1)
        }),
        Trial::test("a_full_disk_fails_one_commit_and_stops_the_store", full_disk),
        Trial::test("killed_amid_a_capture_nothing_of_it_is_left", || {
            kill_at_capture("capture-chunk=1*off->1*return")
        }),
        Trial::test("killed_before_a_capture_is_published_nothing_of_it_is_left", || {
            kill_at_capture("capture-before-publish=return")
        }),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn commit_for_ever(dir: &Path) {
    let store = Store::open(dir).expect("the last kill left a sound file");
    let mut epoch = store.load().expect("loads").epoch;
    loop {
        epoch = epoch.next();
        store.commit(&commit_of(epoch.0)).expect("the commit is sound");
        let mut out = std::io::stdout().lock();
        writeln!(out, "{epoch}").and_then(|()| out.flush()).expect("the parent reads on");
    }
}

/// Stands in for a full disk: from here on no file of this process grows beyond `bytes`.
fn limit_file_size(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: `limit` outlives the call, and ignoring a signal installs no handler.
    let set = unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        libc::setrlimit(libc::RLIMIT_FSIZE, &limit)
    };
    assert_eq!(set, 0, "a limit may be lowered");
}

/// Commits until the disk is full, and prints the outcome after the epochs.
fn commit_until_full(dir: &Path) {
    let store = Store::open(dir).expect("opens");
    limit_file_size(4_000_000);
    let mut epoch = store.load().expect("loads").epoch;
    let error = loop {
        epoch = epoch.next();
        match store.commit(&commit_of(epoch.0)) {
            Ok(()) => println!("{epoch}"),
            Err(error) => break error,
        }
    };
    let in_doubt = match error {
        CommitError::NotWritten { .. } => false,
        CommitError::Unknown { .. } => true,
        other => panic!("a full disk is no {other}"),
    };
    let next = store.commit(&commit_of(epoch.0)).expect_err("the store has stopped");
    assert!(matches!(next, CommitError::Stopped { failed } if failed == epoch), "{next}");
    println!("{}", if in_doubt { "in doubt" } else { "not written" });
}

fn commit_of(epoch: u64) -> Commit {
    let mut commit = Commit::new(Epoch(epoch));
    commit.put_object(OBJECT, format!("object at {epoch}").into_bytes());
    let consumer = ConsumerId(epoch % CONSUMERS);
    commit.put_consumer(consumer, format!("consumer at {epoch}").into_bytes());
    commit.put_state(blob_of(epoch));
    commit.put_checkpoint(0, epoch);
    commit
}

fn blob_of(epoch: u64) -> StateBlob {
    let base = (epoch / GROUPS).is_multiple_of(BASE_EVERY);
    let length = if epoch.is_multiple_of(16) { 1_500_000 } else { epoch * 7919 % 60_000 };
    StateBlob {
        operator: OperatorId(u64::from(OBJECT.0) << 16),
        group: (epoch % GROUPS) as u8,
        kind: if base { BlobKind::Base } else { BlobKind::Delta },
        bytes: (0..length).map(|i| (i ^ epoch) as u8).collect(),
    }
}

/// What must be stored for a group after `epoch`: back to the last base.
fn blobs_after(epoch: u64, group: u64) -> Vec<StateBlob> {
    let mut blobs = Vec::new();
    for earlier in (1..=epoch).rev().filter(|earlier| earlier % GROUPS == group) {
        let blob = blob_of(earlier);
        let is_base = blob.kind == BlobKind::Base;
        blobs.push(blob);
        if is_base {
            break;
        }
    }
    blobs.reverse();
    blobs
}

/// Checks every record against the epoch that the file says it is at, and returns that.
fn check_content(dir: &Path) -> u64 {
    let store = Store::open(dir).expect("the kill left a sound file");
    let stored = store.load().expect("loads");
    let epoch = stored.epoch.0;
    if epoch == 0 {
        assert_eq!(stored.objects, []);
        return 0;
    }
    assert_eq!(stored.objects, [(OBJECT, format!("object at {epoch}").into_bytes())]);
    let consumers = (0..CONSUMERS).filter_map(|id| {
        let last = (1..=epoch).rev().find(|earlier| earlier % CONSUMERS == id)?;
        Some((ConsumerId(id), format!("consumer at {last}").into_bytes()))
    });
    assert_eq!(stored.consumers, consumers.collect::<Vec<_>>());
    assert_eq!(stored.checkpoints.last().map(|row| row.rows), Some(epoch));
    let expected: Vec<StateBlob> =
        (0..GROUPS).flat_map(|group| blobs_after(epoch, group)).collect();
    assert!(store.state_blobs(OBJECT).expect("loads") == expected, "state after epoch {epoch}");
    epoch
}

fn spawn(role: &str, dir: &Path, failpoints: &str) -> Child {
    Command::new(std::env::current_exe().expect("the test is a file"))
        .arg(dir)
        .env(ROLE, role)
        .env("FAILPOINTS", failpoints)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the test can be started again")
}

/// The last epoch that a child has acknowledged; `before` when it has not acknowledged any.
fn last_acknowledged(lines: impl Iterator<Item = std::io::Result<String>>, before: u64) -> u64 {
    // A line that the kill has cut short reads as a smaller number.
    lines.map_while(Result::ok).filter_map(|line| line.parse().ok()).fold(before, u64::max)
}

fn assert_killed(status: ExitStatus) {
    assert_eq!(status.signal(), Some(9), "{status}");
}

fn random_kills() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let (mut epoch, mut ahead) = (0, 0);
    let mut random = u64::from(std::process::id());
    for _ in 0..40 {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut child = spawn("commit", dir.path(), "");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let mut acknowledged = epoch;
        for line in lines.by_ref().take((random >> 33) as usize % 8 + 1) {
            acknowledged = line.expect("reads").parse().expect("a number");
        }
        // The next commit is under way; it takes about a millisecond.
        let kill_at = Instant::now() + Duration::from_micros((random >> 40) % 3000);
        while Instant::now() < kill_at {
            std::hint::spin_loop();
        }
        child.kill().expect("it runs until it is killed");
        assert_killed(child.wait().expect("it was killed"));
        acknowledged = last_acknowledged(lines, acknowledged);
        assert!(acknowledged > epoch);
        epoch = check_content(dir.path());
        assert!(
            epoch == acknowledged || epoch == acknowledged + 1,
            "epoch {acknowledged} was acknowledged, the file is at {epoch}"
        );
        ahead += epoch - acknowledged;
    }
    println!("{epoch} epochs, {ahead} of 40 kills between commit and acknowledgement");
    Ok(())
}

fn kill_at_commit(point: &str, ahead: u64) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    for _ in 0..3 {
        let before = check_content(dir.path());
        let mut child = spawn("commit", dir.path(), &format!("{point}=17*off->1*return"));
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let acknowledged = last_acknowledged(lines, before);
        assert_killed(child.wait()?);
        assert_eq!(acknowledged, before + 17);
        assert_eq!(check_content(dir.path()), acknowledged + ahead);
    }
    Ok(())
}

fn full_disk() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let output =
        Command::new(std::env::current_exe()?).arg(dir.path()).env(ROLE, "full").output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    let (epochs, outcome) = text.trim_end().rsplit_once('\n').ok_or("it printed too little")?;
    let acknowledged = last_acknowledged(epochs.lines().map(|line| Ok(line.to_owned())), 0);
    assert!(acknowledged > 0);
    let epoch = check_content(dir.path());
    match outcome {
        "not written" => assert_eq!(epoch, acknowledged),
        "in doubt" => assert!(epoch == acknowledged || epoch == acknowledged + 1),
        other => return Err(format!("an outcome of {other:?}").into()),
    }
    Ok(())
}

fn capture_and_publish(dir: &Path) {
    let store = Store::open(dir).expect("opens");
    let schema = Arc::new(Schema::new(vec![SqlType::BigInt.field("id", false)]));
    let mut writer =
        store.captures().begin(OBJECT, StageIndex(0), Arc::clone(&schema)).expect("begins");
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..200_000));
    writer.write(&RecordBatch::try_new(schema, vec![ids]).expect("fits")).expect("writes");
    let manifest = writer.finish(None).expect("finishes");
    let mut commit = Commit::new(Epoch(1));
    commit.put_object(OBJECT, vec![1]);
    commit.publish_capture(manifest);
    store.commit(&commit).expect("publishes");
}

fn kill_at_capture(failpoints: &str) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    assert_killed(spawn("capture", dir.path(), failpoints).wait()?);
    let attempt = dir.path().join("captures/1/0/1");
    assert!(attempt.join("1.arrow").exists(), "it was killed after the first chunk");
    let store = Store::open(dir.path())?;
    let stored = store.load()?;
    assert_eq!((stored.epoch, stored.captures.len()), (Epoch(0), 0));
    assert!(!attempt.exists(), "the unfinished attempt is garbage");
    drop(store);

    assert!(spawn("capture", dir.path(), "").wait()?.success());
    let stored = Store::open(dir.path())?.load()?;
    assert_eq!(stored.captures[0].rows, 200_000);
    assert!(attempt.exists(), "the published attempt stays");
    Ok(())
}
