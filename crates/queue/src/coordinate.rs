//! Who hands out a job, and gathers what comes of it.

use crate::archive::LARGEST_ARCHIVE;
use crate::content::Hash;
use crate::error::QueueError;
use crate::exchange::{Exchange, patiently};
use crate::message::{Came, Outcome, RECORDING, ShippedFile, Unit};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// An archive that cannot be used this often ends the attempts at its unit.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(200);
/// All units are looked through so often, for those that the queue has lost; but behind so many times what the last look took, as
/// of a job with many units a look costs the queue much.
const LOOKED_EVERY: Duration = Duration::from_secs(1);
const TIMES_A_LOOK: u32 = 20;
/// The queue forgets a job of which it hears nothing for some minutes.
const OPENED_EVERY: Duration = Duration::from_secs(20);

/// Takes the archive of a unit by its number, or says why not. The recording comes first, if there is one.
pub type Accept<'a> = dyn FnMut(u32, &[u8]) -> Result<(), String> + 'a;

/// What the coordinator tells.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The recording is in, and goes to all units.
    Recorded { worker: &'a str },
    /// There is none that can be shipped.
    Unrecorded { reason: &'a str },
    /// A unit is in.
    Done { done: usize, of: usize, worker: &'a str },
    /// One was lost, and is handed out again.
    Again { number: u32, reason: &'a str },
    /// It will not be in.
    Failed { number: u32, reason: &'a str },
    /// The queue does not answer; it is asked again.
    Waiting(&'a QueueError),
}

/// What came of a job.
#[derive(Debug, Default)]
pub struct Distributed {
    /// Units of which there is no archive, and why.
    pub failed: BTreeMap<u32, String>,
    /// Why there was no recording for them to begin with, if there was to be one.
    pub unrecorded: Option<String>,
}

pub struct Coordinator<'a> {
    pub exchange: &'a dyn Exchange,
    /// How long a queue that does not answer is waited for.
    pub patience: Duration,
    pub tell: &'a mut dyn FnMut(Progress<'_>),
}

struct Job<'a> {
    units: BTreeMap<u32, &'a Unit>,
    name: String,
    /// What the others begin with.
    recording: Option<ShippedFile>,
    missing: BTreeSet<u32>,
    /// How often each was handed out again.
    attempts: BTreeMap<u32, u32>,
    /// How often an archive of it could not be used.
    damaged: BTreeMap<u32, u32>,
    result: Distributed,
}

/// The name under which a job's file is kept.
pub(crate) fn object_of(job: &str, hash: &Hash) -> String {
    format!("{job}-{}", hash.as_str())
}

impl Coordinator<'_> {
    /// Hands out all units, which are of one job, with their files' contents, and gives each archive to `accept`, which may
    /// refuse it. Returns when there is an outcome of each. What was handed out is removed from the queue.
    ///
    /// A unit that makes a `recording` is handed out before them, and its archive is shipped to all: they are cut out of the same
    /// leads then. Where it fails they are handed out all the same, each to make a recording of its own. Three failures may be
    /// those of one bad machine, which is the fastest to come back for more, and one recording is not to be more in danger than
    /// the units are. A program that cannot be executed anywhere fails in each of them, with its reason.
    pub fn distribute(
        &mut self,
        recording: Option<&Unit>,
        units: &[Unit],
        contents: &BTreeMap<Hash, Vec<u8>>,
        accept: &mut Accept<'_>,
    ) -> Result<Distributed, QueueError> {
        let Some(first) = units.first() else { return Ok(Distributed::default()) };
        let mut job = Job {
            units: recording.into_iter().chain(units).map(|unit| (unit.number, unit)).collect(),
            name: first.job.clone(),
            recording: None,
            missing: recording.iter().map(|unit| unit.number).collect(),
            attempts: BTreeMap::new(),
            damaged: BTreeMap::new(),
            result: Distributed::default(),
        };
        let outcome = self.run(&mut job, contents, accept);
        // Also where it failed: nobody will ask for the rest. What cannot be removed now, the queue forgets some day.
        for hash in contents.keys().chain(job.recording.iter().map(|file| &file.hash)) {
            let _ = self.exchange.discard(&object_of(&job.name, hash));
        }
        let _ = self.exchange.announce(&job.name, false);
        let _ = self.exchange.close_job(&job.name);
        outcome.map(|()| job.result)
    }

    fn patiently<T>(&mut self, call: impl FnMut() -> Result<T, QueueError>) -> Result<T, QueueError> {
        let tell = &mut *self.tell;
        patiently(self.patience, &mut |error| tell(Progress::Waiting(error)), call)
    }

    fn run(&mut self, job: &mut Job<'_>, contents: &BTreeMap<Hash, Vec<u8>>, accept: &mut Accept<'_>) -> Result<(), QueueError> {
        let exchange = self.exchange;
        self.patiently(|| exchange.open_job(&job.name))?;
        for (hash, content) in contents {
            self.patiently(|| exchange.keep(&object_of(&job.name, hash), content))?;
        }
        self.hand_out(job, accept)?;
        job.missing = job.units.keys().copied().filter(|number| *number != RECORDING).collect();
        self.hand_out(job, accept)
    }

    /// Says that the job is there, and whether more is to come.
    fn open(&mut self, job: &Job<'_>) -> Result<(), QueueError> {
        let exchange = self.exchange;
        self.patiently(|| exchange.open_job(&job.name))?;
        let is_recorded = !job.missing.contains(&RECORDING);
        self.patiently(|| exchange.announce(&job.name, !is_recorded))
    }

    /// All units that are missing; returns when none is.
    fn hand_out(&mut self, job: &mut Job<'_>, accept: &mut Accept<'_>) -> Result<(), QueueError> {
        let exchange = self.exchange;
        for number in job.missing.clone() {
            self.publish(job, number)?;
        }
        // Behind the units, as workers may end where there are none.
        self.open(job)?;
        let mut opened = Instant::now();
        let (mut looked, mut position): (Option<(Instant, Duration)>, u64) = (None, 0);
        while !job.missing.is_empty() {
            if opened.elapsed() > OPENED_EVERY {
                self.open(job)?;
                opened = Instant::now();
            }
            if looked.is_some_and(|(at, took)| at.elapsed() < LOOKED_EVERY.max(took * TIMES_A_LOOK)) {
                let (concluded, behind) = self.patiently(|| exchange.concluded_after(&job.name, position))?;
                position = behind;
                for number in concluded {
                    if job.missing.contains(&number) {
                        self.gather(job, number, accept)?;
                    }
                }
            } else {
                let begin = Instant::now();
                self.look_through(job, accept)?;
                looked = Some((Instant::now(), begin.elapsed()));
            }
            if !job.missing.is_empty() {
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    }

    /// All units that are missing: what there is of them, and what the queue has lost.
    fn look_through(&mut self, job: &mut Job<'_>, accept: &mut Accept<'_>) -> Result<(), QueueError> {
        let exchange = self.exchange;
        // In this order: what is in neither is lost, as a worker that has concluded a unit takes it out of the queue then.
        let queued = self.patiently(|| exchange.queued(&job.name))?;
        let concluded = self.patiently(|| exchange.concluded(&job.name))?;
        for number in job.missing.clone() {
            let there = concluded.contains(&number) && self.gather(job, number, accept)?;
            if !there && !queued.contains(&number) {
                (self.tell)(Progress::Again { number, reason: "the queue has lost it" });
                self.again(job, number)?;
            }
        }
        Ok(())
    }

    fn publish(&mut self, job: &Job<'_>, number: u32) -> Result<(), QueueError> {
        let Some(unit) = job.units.get(&number) else { return Ok(()) };
        let message = match &job.recording {
            Some(recording) => Unit { recording: Some(recording.clone()), ..(*unit).clone() }.message(),
            None => unit.message(),
        };
        let attempt = job.attempts.get(&number).copied().unwrap_or(0);
        let exchange = self.exchange;
        self.patiently(|| exchange.publish(&job.name, number, attempt, &message))
    }

    fn again(&mut self, job: &mut Job<'_>, number: u32) -> Result<(), QueueError> {
        *job.attempts.entry(number).or_default() += 1;
        self.publish(job, number)
    }

    /// `false`: there is no outcome yet. One whose archive cannot be used is taken back.
    fn gather(&mut self, job: &mut Job<'_>, number: u32, accept: &mut Accept<'_>) -> Result<bool, QueueError> {
        let exchange = self.exchange;
        let Some(bytes) = self.patiently(|| exchange.outcome(&job.name, number))? else { return Ok(false) };
        let used = match serde_json::from_slice::<Outcome>(&bytes) {
            Err(error) => Err(format!("its outcome is damaged: {error}")),
            Ok(Outcome { came: Came::Failure(reason), worker }) => {
                self.fail(job, number, format!("{reason} (worker {worker})"));
                return Ok(true);
            }
            Ok(Outcome { came: Came::Archive { object, hash, size }, worker }) => {
                let fetched = self.patiently(|| exchange.fetch(&object, size.min(LARGEST_ARCHIVE)));
                let used = match fetched {
                    Err(error @ (QueueError::Missing { .. } | QueueError::Damaged { .. } | QueueError::TooLarge(_))) => {
                        Err(error.to_string())
                    }
                    Err(error) => return Err(error),
                    Ok(archive) if Hash::of(&archive) != hash => Err("its archive has another hash than it should".into()),
                    Ok(archive) => accept(number, &archive).map(|()| archive),
                };
                // Used or not, nobody fetches it again.
                let _ = exchange.discard(&object);
                if let (RECORDING, Ok(archive)) = (number, &used)
                    && let Err(reason) = self.ship(job, hash, archive)?
                {
                    self.fail(job, number, reason);
                    return Ok(true);
                }
                used.map(|_| worker)
            }
        };
        match used {
            Ok(worker) => {
                job.missing.remove(&number);
                let of = job.units.keys().filter(|number| **number != RECORDING).count();
                (self.tell)(match number {
                    RECORDING => Progress::Recorded { worker: &worker },
                    _ => Progress::Done { done: of - job.missing.len(), of, worker: &worker },
                });
            }
            Err(reason) => {
                let damaged = job.damaged.entry(number).or_default();
                *damaged += 1;
                if *damaged >= ATTEMPTS {
                    self.fail(job, number, reason);
                    return Ok(true);
                }
                (self.tell)(Progress::Again { number, reason: &reason });
                self.patiently(|| exchange.reopen(&job.name, number))?;
                self.again(job, number)?;
            }
        }
        Ok(true)
    }

    /// Keeps the recording for all units. The inner error: there is no room for it.
    fn ship(&mut self, job: &mut Job<'_>, hash: Hash, archive: &[u8]) -> Result<Result<(), String>, QueueError> {
        let exchange = self.exchange;
        let object = object_of(&job.name, &hash);
        match self.patiently(|| exchange.keep(&object, archive)) {
            Err(error @ QueueError::Full { .. }) => Ok(Err(error.to_string())),
            Err(error) => Err(error),
            Ok(()) => {
                let size = archive.len() as u64;
                job.recording = Some(ShippedFile { path: "recording".into(), hash, size, executable: false });
                Ok(Ok(()))
            }
        }
    }

    fn fail(&mut self, job: &mut Job<'_>, number: u32, reason: String) {
        job.missing.remove(&number);
        if number == RECORDING {
            (self.tell)(Progress::Unrecorded { reason: &reason });
            job.result.unrecorded = Some(reason);
        } else {
            (self.tell)(Progress::Failed { number, reason: &reason });
            job.result.failed.insert(number, reason);
        }
    }
}
