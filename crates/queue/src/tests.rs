//! Jobs from their beginning to their end, whatever happens to the queue.

use crate::archive;
use crate::cache::Cache;
use crate::content::Hash;
use crate::coordinate::{Coordinator, Distributed, Progress};
use crate::error::QueueError;
use crate::exchange::Exchange as _;
use crate::message::{PROTOCOL, RECORDING, ShippedFile, Unit};
use crate::pretend::Pretend;
use crate::work::{Deed, Execute, Task, Unmade, Worker};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

const VERSION: &str = "1.2.3";
const PROGRAM: &[u8] = b"the program";
const INPUT: &[u8] = b"its input";
const PATIENCE: Duration = Duration::from_secs(20);

fn file(path: &str, content: &[u8]) -> ShippedFile {
    ShippedFile { path: path.into(), hash: Hash::of(content), size: content.len() as u64, executable: path == "program" }
}

fn units(of: u32) -> Vec<Unit> {
    let unit = Unit {
        protocol: PROTOCOL,
        version: VERSION.into(),
        job: "job".into(),
        number: 1,
        of,
        options: vec!["--proofs=1".into()],
        program: file("program", PROGRAM),
        program_path: "/nowhere/program".into(),
        arguments: Vec::new(),
        files: vec![file("a/input", INPUT)],
        recording: None,
    };
    (1..=of).map(|number| Unit { number, ..unit.clone() }).collect()
}

fn contents() -> BTreeMap<Hash, Vec<u8>> {
    [PROGRAM, INPUT].map(|content| (Hash::of(content), content.to_vec())).into()
}

/// What does not work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failing {
    Nothing,
    Recording,
    /// What comes of it is too large.
    Large,
    Everything,
}

/// Makes a store that holds the unit's number; the recording is drawn, and each part is to begin with the same.
struct Numbering {
    executed: AtomicU32,
    recorded: AtomicU32,
    /// Parts began with these.
    recordings: Mutex<BTreeSet<Option<String>>>,
    failing: Failing,
}

impl Execute for Numbering {
    fn execute(&self, task: &Task<'_>) -> Result<Vec<u8>, Unmade> {
        let counted = if task.unit.is_recording() { &self.recorded } else { &self.executed };
        let times = counted.fetch_add(1, Ordering::SeqCst);
        let begun = task.recording.as_ref().map(|folder| fs::read_to_string(folder.join("recorded")).unwrap());
        if !task.unit.is_recording() {
            self.recordings.lock().unwrap().insert(begun);
        }
        assert_eq!(fs::read(&task.program).unwrap(), PROGRAM);
        assert_eq!(fs::read(task.folder.join("a/input")).unwrap(), INPUT);
        match self.failing {
            Failing::Everything => return Err(Unmade::Failed("it does not work".into())),
            Failing::Recording if task.unit.is_recording() => return Err(Unmade::Failed("it does not work".into())),
            Failing::Large if task.unit.is_recording() => return Err(Unmade::TooLarge("it is large".into())),
            _ => {}
        }
        fs::create_dir(&task.store).unwrap();
        if task.unit.is_recording() {
            fs::write(task.store.join("recorded"), format!("attempt {times}")).unwrap();
        }
        fs::write(task.store.join("number"), task.unit.number.to_string()).unwrap();
        Ok(archive::pack(&task.store, &|_, bytes| bytes)?)
    }
}

struct Job {
    pretend: Pretend,
    execute: Numbering,
    /// How often the archive of each unit was accepted.
    accepted: Mutex<BTreeMap<u32, u32>>,
    over: AtomicBool,
}

impl Job {
    fn new(failing: Failing) -> Self {
        let (executed, recorded) = (AtomicU32::new(0), AtomicU32::new(0));
        let execute = Numbering { executed, recorded, recordings: Mutex::default(), failing };
        Self { pretend: Pretend::default(), execute, accepted: Mutex::default(), over: AtomicBool::new(false) }
    }

    fn coordinate(&self, of: u32) -> Result<Distributed, QueueError> {
        let mut tell = |_: Progress<'_>| {};
        let mut coordinator = Coordinator { exchange: &self.pretend, patience: PATIENCE, tell: &mut tell };
        let units = units(of);
        let recording = Unit { number: RECORDING, ..units[0].clone() };
        let result = coordinator.distribute(Some(&recording), &units, &contents(), &mut |number, bytes| {
            let folder = tempfile::tempdir().unwrap();
            archive::unpack(bytes, folder.path()).map_err(|error| error.to_string())?;
            assert_eq!(fs::read_to_string(folder.path().join("number")).unwrap(), number.to_string());
            *self.accepted.lock().unwrap().entry(number).or_default() += 1;
            Ok(())
        });
        self.over.store(true, Ordering::SeqCst);
        result
    }

    fn work(&self, version: &str, cache: &std::path::Path, tell: &(dyn Fn(Deed<'_>) + Sync)) -> Result<(), QueueError> {
        let worker = Worker {
            exchange: &self.pretend,
            version,
            name: "worker",
            cache,
            lease: Duration::from_millis(40),
            patience: PATIENCE,
            tell,
        };
        while !self.over.load(Ordering::SeqCst) {
            worker.run(&self.execute, true)?;
        }
        Ok(())
    }

    /// With so many workers, and something that happens meanwhile.
    fn run(&self, of: u32, workers: u32, mut meanwhile: impl FnMut() + Send) -> Distributed {
        let cache = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            let coordinator = scope.spawn(|| self.coordinate(of));
            for _ in 0..workers {
                scope.spawn(|| self.work(VERSION, cache.path(), &|_| {}).unwrap());
            }
            while !self.over.load(Ordering::SeqCst) {
                meanwhile();
                std::thread::sleep(Duration::from_millis(1));
            }
            coordinator.join().unwrap().unwrap()
        })
    }

    /// Each unit is in once, and so is the recording that all of them began with.
    #[track_caller]
    fn each_once(&self, of: u32) {
        self.each_once_from(RECORDING, of);
        let recordings = self.execute.recordings.lock().unwrap();
        assert!(recordings.len() == 1 && recordings.iter().all(Option::is_some), "{recordings:?}");
    }

    #[track_caller]
    fn each_once_from(&self, first: u32, of: u32) {
        let expected: BTreeMap<u32, u32> = (first..=of).map(|number| (number, 1)).collect();
        assert_eq!(*self.accepted.lock().unwrap(), expected);
        assert!(self.pretend.state().objects.is_empty() && self.pretend.state().units.is_empty(), "all is tidied up");
    }
}

#[test]
fn each_unit_comes_in_once() {
    let job = Job::new(Failing::Nothing);
    assert!(job.run(20, 3, || {}).failed.is_empty());
    job.each_once(20);
    assert_eq!(job.execute.executed.load(Ordering::SeqCst), 20);
    assert_eq!(job.execute.recorded.load(Ordering::SeqCst), 1);
}

#[test]
fn without_a_recording_units_make_their_own() {
    for (failing, attempts, said) in [(Failing::Recording, 3, "it does not work"), (Failing::Large, 1, "it is large")] {
        let job = Job::new(failing);
        let distributed = job.run(5, 2, || {});
        assert!(distributed.failed.is_empty() && distributed.unrecorded.is_some_and(|reason| reason.contains(said)));
        assert_eq!(job.execute.recorded.load(Ordering::SeqCst), attempts);
        job.each_once_from(1, 5);
        assert_eq!(*job.execute.recordings.lock().unwrap(), BTreeSet::from([None]));
    }
}

/// Makes the recording while another worker asks for units in vain.
struct Slow<'a> {
    pretend: &'a Pretend,
    numbering: &'a Numbering,
    has_ended: &'a AtomicBool,
}

impl Execute for Slow<'_> {
    fn execute(&self, task: &Task<'_>) -> Result<Vec<u8>, Unmade> {
        if task.unit.is_recording() {
            let before = self.pretend.state().asked_in_vain;
            while self.pretend.state().asked_in_vain < before + 2 {
                assert!(!self.has_ended.load(Ordering::SeqCst), "there is more to come");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        self.numbering.execute(task)
    }
}

#[test]
fn workers_wait_for_what_follows_the_recording() {
    let job = Job::new(Failing::Nothing);
    let (cache, has_ended) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    let worker = Worker {
        exchange: &job.pretend,
        version: VERSION,
        name: "worker",
        cache: cache.path(),
        lease: PATIENCE,
        patience: PATIENCE,
        tell: &|_| {},
    };
    let slow = Slow { pretend: &job.pretend, numbering: &job.execute, has_ended: &has_ended };
    std::thread::scope(|scope| {
        let coordinator = scope.spawn(|| job.coordinate(4));
        while !job.pretend.is_announced().unwrap() {
            std::thread::sleep(Duration::from_millis(1));
        }
        for _ in 0..2 {
            scope.spawn(|| {
                worker.run(&slow, true).unwrap();
                has_ended.store(true, Ordering::SeqCst);
            });
        }
        assert!(coordinator.join().unwrap().unwrap().failed.is_empty());
    });
    job.each_once(4);
}

#[test]
fn a_cache_does_not_keep_all_recordings() {
    let cache = tempfile::tempdir().unwrap();
    for number in 0..7 {
        let content = format!("recording {number}").into_bytes();
        let fetch = |_: &Hash, _: u64| Ok(content.clone());
        let recording = file("recording", &content);
        let path = Cache { folder: cache.path() }.recording(&recording, &fetch).unwrap();
        assert_eq!(fs::read(path).unwrap(), content);
    }
    assert_eq!(fs::read_dir(cache.path().join("recordings")).unwrap().count(), 4);
}

#[test]
fn leases_that_run_out_make_no_second_result() {
    let job = Job::new(Failing::Nothing);
    let pretend = job.pretend.clone();
    assert!(job.run(30, 3, || pretend.expire()).failed.is_empty());
    job.each_once(30);
}

#[test]
fn lost_answers_lose_nothing() {
    let job = Job::new(Failing::Nothing);
    let pretend = job.pretend.clone();
    pretend.state().losing = Some(7);
    // Units whose delivery was lost come back when their lease runs out.
    assert!(job.run(10, 2, || pretend.expire()).failed.is_empty());
    let accepted = job.accepted.lock().unwrap();
    assert!(accepted.len() == 11 && accepted.values().all(|times| *times == 1), "{accepted:?}");
}

#[test]
fn units_that_the_queue_loses_are_handed_out_again() {
    let job = Job::new(Failing::Nothing);
    let pretend = job.pretend.clone();
    let mut rounds = 0;
    let distributed = job.run(10, 1, || {
        rounds += 1;
        if rounds < 4 {
            pretend.state().units.clear();
        }
    });
    assert!(distributed.failed.is_empty());
    job.each_once(10);
}

#[test]
fn damaged_archives_are_made_again_and_end_some_day() {
    let job = Job::new(Failing::Nothing);
    job.pretend.state().damaging = 2;
    assert!(job.run(3, 1, || {}).failed.is_empty());
    job.each_once(3);
    let job = Job::new(Failing::Nothing);
    job.pretend.state().damaging = u32::MAX;
    let Distributed { failed, unrecorded } = job.run(2, 1, || {});
    assert!(unrecorded.is_some_and(|reason| reason.contains("another hash")));
    assert!(failed.len() == 2 && failed[&1].contains("another hash"), "{failed:?}");
}

#[test]
fn what_fails_everywhere_fails_with_its_reason() {
    let job = Job::new(Failing::Everything);
    let failed = job.run(2, 1, || {}).failed;
    assert!(failed.len() == 2 && failed[&1].contains("it does not work"), "{failed:?}");
    assert_eq!(job.execute.executed.load(Ordering::SeqCst), 6, "three attempts each");
}

#[test]
fn another_version_gives_the_unit_back() {
    let job = Job::new(Failing::Nothing);
    let cache = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        let coordinator = scope.spawn(|| job.coordinate(1));
        let start = Instant::now();
        while job.pretend.state().units.is_empty() {
            assert!(start.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(1));
        }
        let error = job.work("9.9.9", cache.path(), &|_| {}).unwrap_err().to_string();
        assert!(error.contains("rashomon 1.2.3") && error.contains("this worker of rashomon 9.9.9"), "{error}");
        assert_eq!(job.pretend.queued("job").unwrap().len(), 1, "it is still there");
        job.work(VERSION, cache.path(), &|_| {}).unwrap();
        assert!(coordinator.join().unwrap().unwrap().failed.is_empty());
    });
    job.each_once(1);
}

#[test]
fn what_a_coordinator_left_behind_is_dropped() {
    let job = Job::new(Failing::Nothing);
    let unit = &units(1)[0];
    job.pretend.publish("job", 1, 0, &unit.message()).unwrap();
    let cache = tempfile::tempdir().unwrap();
    let over = AtomicU32::new(0);
    let tell = |deed: Deed<'_>| {
        if matches!(deed, Deed::Over(_)) {
            over.fetch_add(1, Ordering::SeqCst);
            job.over.store(true, Ordering::SeqCst);
        }
    };
    job.work(VERSION, cache.path(), &tell).unwrap();
    assert_eq!((over.load(Ordering::SeqCst), job.execute.executed.load(Ordering::SeqCst)), (1, 0));
    assert!(job.pretend.state().units.is_empty());
}

#[test]
fn messages_that_lead_elsewhere_are_refused() {
    let good = &units(1)[0];
    assert!(Unit::read(&good.message(), VERSION).is_ok());
    assert!(Unit::read(&Unit { number: RECORDING, ..good.clone() }.message(), VERSION).is_ok());
    let bad = [
        Unit { job: "a.b".into(), ..good.clone() },
        Unit { number: 2, ..good.clone() },
        Unit { number: RECORDING, recording: Some(file("recording", b"")), ..good.clone() },
        Unit { recording: Some(file("../recording", b"")), ..good.clone() },
        Unit { recording: Some(ShippedFile { size: 1 << 31, ..file("recording", b"") }), ..good.clone() },
        Unit { options: vec!["--".into()], ..good.clone() },
        Unit { options: vec!["/bin/sh".into()], ..good.clone() },
        Unit { files: vec![file("../x", b"")], ..good.clone() },
        Unit { program: file("a/b", b""), ..good.clone() },
        Unit { program: ShippedFile { size: u64::MAX, ..file("p", b"") }, ..good.clone() },
    ];
    for unit in bad {
        assert!(matches!(Unit::read(&unit.message(), VERSION), Err(QueueError::Damaged { .. })), "{unit:?}");
    }
    assert!(Unit::read(b"{}", VERSION).is_err());
}
