//! Who takes units and executes them.

use crate::archive::{self, place};
use crate::cache::{Cache, Fetch, make_executable};
use crate::content::Hash;
use crate::coordinate::object_of;
use crate::error::QueueError;
use crate::exchange::{Exchange, Taken, patiently};
use crate::message::{Came, Outcome, ShippedFile, Unit};
use rashomon_files::Folder;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A unit that was handed out so often and fails here fails for good.
const ATTEMPTS: u64 = 3;
/// Until a unit is handed out again that failed here, is of another version, or met a full queue.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
const AFTER_REFUSAL: Duration = Duration::from_secs(5);
/// How long a unit is waited for in one request; longer from one to the next while none comes, as workers are many.
const WITHIN: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(16);

/// What a worker tells.
#[derive(Debug)]
pub enum Deed<'a> {
    Began(&'a Unit),
    Finished(&'a Unit),
    /// Somebody else was faster.
    Second(&'a Unit),
    /// Its coordinator is gone.
    Over(&'a Unit),
    GivenBack(&'a str),
    Waiting(&'a QueueError),
}

/// A unit with its files in place.
pub struct Task<'a> {
    pub unit: &'a Unit,
    /// What is executed.
    pub program: PathBuf,
    /// In which it is executed; the shipped files are in it.
    pub folder: PathBuf,
    /// The store whose recordings it begins with.
    pub recording: Option<PathBuf>,
    /// Where its store is to be made.
    pub store: PathBuf,
}

/// Why there is no archive of a unit.
#[derive(Debug, PartialEq, Eq)]
pub enum Unmade {
    /// Another attempt, or another machine, may make it.
    Failed(String),
    /// It is larger than what is sent, wherever it is made.
    TooLarge(String),
}

impl From<QueueError> for Unmade {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::TooLarge(reason) => Self::TooLarge(reason),
            other => Self::Failed(other.to_string()),
        }
    }
}

pub trait Execute: Sync {
    /// Executes the unit and packs the store that came of it; or says why there is none.
    fn execute(&self, task: &Task<'_>) -> Result<Vec<u8>, Unmade>;
}

pub struct Worker<'a> {
    pub exchange: &'a dyn Exchange,
    /// Of the tool.
    pub version: &'a str,
    /// For people.
    pub name: &'a str,
    /// Where programs are kept and units executed.
    pub cache: &'a Path,
    /// A unit that is not renewed for so long is somebody else's.
    pub lease: Duration,
    /// How long a queue that does not answer is waited for.
    pub patience: Duration,
    pub tell: &'a (dyn Fn(Deed<'_>) + Sync),
}

impl Worker<'_> {
    /// Takes units: for ever, or until none comes for some seconds and none is announced. `once`: also until one is of another
    /// version, which is an error then.
    pub fn run(&self, execute: &dyn Execute, once: bool) -> Result<(), QueueError> {
        let mut told = BTreeSet::new();
        let mut within = WITHIN;
        loop {
            // Asked first: what was announced until then is there now.
            let stays = !once || self.patiently(|| self.exchange.is_announced())?;
            let Some(taken) = self.patiently(|| self.exchange.take(within))? else {
                if !stays {
                    return Ok(());
                }
                if !once {
                    within = (within * 2).min(LONGEST);
                }
                continue;
            };
            within = WITHIN;
            match self.handle(&*taken, execute) {
                Err(error @ QueueError::OtherVersion { .. }) => {
                    // Told before it is certain: it comes back in any case.
                    let returned = taken.give_back(AFTER_REFUSAL);
                    if once {
                        return returned.and(Err(error));
                    }
                    let words = error.to_string();
                    if told.insert(words.clone()) {
                        (self.tell)(Deed::GivenBack(&words));
                    }
                }
                Err(error) => {
                    (self.tell)(Deed::GivenBack(&error.to_string()));
                    // If that does not arrive, its lease runs out.
                    let _ = taken.give_back(AFTER_FAILURE);
                }
                Ok(()) => {}
            }
        }
    }

    fn patiently<T>(&self, call: impl FnMut() -> Result<T, QueueError>) -> Result<T, QueueError> {
        patiently(self.patience, &mut |error| (self.tell)(Deed::Waiting(error)), call)
    }

    fn handle(&self, taken: &dyn Taken, execute: &dyn Execute) -> Result<(), QueueError> {
        let unit = Unit::read(taken.message(), self.version)?;
        if !self.patiently(|| self.exchange.is_open(&unit.job))? {
            (self.tell)(Deed::Over(&unit));
            self.drop_unit(taken);
            return Ok(());
        }
        if self.patiently(|| self.exchange.outcome(&unit.job, unit.number))?.is_some() {
            (self.tell)(Deed::Second(&unit));
            self.drop_unit(taken);
            return Ok(());
        }
        (self.tell)(Deed::Began(&unit));
        let came = self.kept(taken, || self.execute(&unit, execute))?;
        let (came, object) = match came {
            Ok(archive) => {
                let hash = Hash::of(&archive);
                let nonce = rashomon_files::unforeseeable().map_err(QueueError::io("read", "/dev/urandom"))?;
                let object = format!("{}-{}-{nonce}", unit.job, unit.number);
                self.kept(taken, || self.patiently(|| self.exchange.keep(&object, &archive)))?;
                (Came::Archive { object: object.clone(), hash, size: archive.len() as u64 }, Some(object))
            }
            Err(Unmade::Failed(reason)) if taken.deliveries() < ATTEMPTS => {
                (self.tell)(Deed::GivenBack(&format!("{}: {reason}", unit.words())));
                return taken.give_back(AFTER_FAILURE);
            }
            Err(Unmade::Failed(reason) | Unmade::TooLarge(reason)) => (Came::Failure(reason), None),
        };
        let outcome = serde_json::to_vec(&Outcome { worker: self.name.to_owned(), came }).unwrap_or_default();
        let mut is_first = self.patiently(|| self.exchange.conclude(&unit.job, unit.number, &outcome))?;
        if !is_first {
            // It may have been this one, whose answer was lost.
            is_first = self.patiently(|| self.exchange.outcome(&unit.job, unit.number))?.is_some_and(|there| there == outcome);
        }
        if !is_first && let Some(object) = object {
            let _ = self.exchange.discard(&object);
        }
        (self.tell)(if is_first { Deed::Finished(&unit) } else { Deed::Second(&unit) });
        self.drop_unit(taken);
        Ok(())
    }

    /// A server that was killed may have forgotten who has the unit, and confirms nothing: then it hands the unit out again, and
    /// whoever takes it sees that there is an outcome.
    fn drop_unit(&self, taken: &dyn Taken) {
        if taken.done().is_err() {
            let _ = taken.done();
        }
    }

    /// Does something that may take long, and renews the lease meanwhile.
    fn kept<T>(&self, taken: &dyn Taken, work: impl FnOnce() -> T) -> T {
        let (ended, changed) = (Mutex::new(false), Condvar::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut guard = ended.lock().unwrap_or_else(PoisonError::into_inner);
                while !*guard {
                    let waited = changed.wait_timeout(guard, self.lease / 4).unwrap_or_else(PoisonError::into_inner);
                    guard = waited.0;
                    if !*guard && waited.1.timed_out() {
                        // Without an answer the lease may run out: then the unit is executed twice, and counts once.
                        let _ = taken.renew();
                    }
                }
            });
            let result = work();
            *ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
            changed.notify_all();
            result
        })
    }

    /// The inner error: why there is no store. The outer one: what has nothing to do with the unit.
    fn execute(&self, unit: &Unit, execute: &dyn Execute) -> Result<Result<Vec<u8>, Unmade>, QueueError> {
        let cache = Cache { folder: self.cache };
        let fetch = |hash: &Hash, size: u64| self.patiently(|| self.exchange.fetch(&object_of(&unit.job, hash), size));
        let program = match self.program_at_its_path(&cache, unit) {
            Some(path) => path,
            None => cache.file(&unit.program, &fetch)?,
        };
        let place = Place::new(self.cache)?;
        let folder = place.0.join("folder");
        fs::create_dir(&folder).map_err(QueueError::io("create", &folder))?;
        for file in &unit.files {
            self.lay_down(&cache, file, &folder, &fetch)?;
        }
        let recording = match &unit.recording {
            Some(file) => Some(self.unpack(&cache, file, place.0.join("recording"), &fetch)?),
            None => None,
        };
        let task = Task { unit, program, folder, recording, store: place.0.join("store") };
        Ok(execute.execute(&task))
    }

    /// The coordinator's program, where this machine has the very same at the same place.
    fn program_at_its_path(&self, cache: &Cache<'_>, unit: &Unit) -> Option<PathBuf> {
        let path = PathBuf::from(&unit.program_path);
        (path.is_absolute() && cache.content(&path, &unit.program).is_some()).then_some(path)
    }

    fn lay_down(&self, cache: &Cache<'_>, file: &ShippedFile, folder: &Path, fetch: &Fetch<'_>) -> Result<(), QueueError> {
        let cached = cache.file(file, fetch)?;
        // A copy: the program may change it.
        let bytes = held(cache, &cached, file)?;
        place(&Folder::open(folder).map_err(QueueError::io("open", folder))?, &file.path, &bytes)?;
        make_executable(&folder.join(&file.path), file.executable)
    }

    /// The store that a unit begins with, in a folder of its own.
    fn unpack(&self, cache: &Cache<'_>, file: &ShippedFile, folder: PathBuf, fetch: &Fetch<'_>) -> Result<PathBuf, QueueError> {
        let bytes = held(cache, &cache.recording(file, fetch)?, file)?;
        fs::create_dir(&folder).map_err(QueueError::io("create", &folder))?;
        archive::unpack(&bytes, &folder)?;
        Ok(folder)
    }
}

/// What a file in the cache holds.
fn held(cache: &Cache<'_>, cached: &Path, file: &ShippedFile) -> Result<Vec<u8>, QueueError> {
    cache.content(cached, file).ok_or_else(|| QueueError::damaged(&file.path, "it changed meanwhile"))
}

/// A folder of one unit, removed with this value.
struct Place(PathBuf);

impl Place {
    fn new(cache: &Path) -> Result<Self, QueueError> {
        let name = rashomon_files::unforeseeable().map_err(QueueError::io("read", "/dev/urandom"))?;
        let path = cache.join(format!("unit-{name}"));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(QueueError::io("create", &path))?;
        Ok(Self(path))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed takes room and does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}
