//! Online detection of what recordings lost.
//!
//! A recording holds so many bytes, and prediction so much time: of a long execution neither may see all. The online detector
//! sees every access, at the price of an ordinary execution, but a race that it reports cannot be replayed. So it says where to
//! look: the places of its reports are recorded, serially and as a whole, without any other plain access
//! ([`Manner::Places`]). What is unordered there is proven as in any other recording, by replays of its schedule.
//!
//! Only for recordings that lost something; of others prediction has seen all that the detector would. What the detector reports
//! and no recording shows again is counted and not told: it would be neither proven nor predicted, and libraries without
//! instrumentation may have ordered it.

use crate::check::known::{FRAMES, place_of};
use crate::check::leads::is_proven;
use crate::check::plan::Next;
use crate::check::prove::may_be_unordered;
use crate::detect::Flags;
use crate::engines::Asked;
use crate::engines::case::{Case, Manner};
use crate::engines::engine::{Account, Engine, Expectation, Offer, Registered, Share, Turn, Yield};
use crate::engines::portfolio::count;
use crate::error::PipelineError;
use crate::findings::symbols::Symbols;
use crate::progress::Progress;
use crate::record::Scheduling;
use crate::store::run::RunRecord;
use rashomon_abi::{DETECT_VARIABLE, REPORTER_VARIABLE};
use rashomon_confirm::force::remove;
use rashomon_confirm::{Output, Time, execute, no_session};
use rashomon_event::{Deadline, Finding, FindingKind, KeptPlace};
use rashomon_files::Links;
use rashomon_report::ProgramExit;
use rashomon_trace::Policy;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

pub const NAME: &str = "detect";

/// Of the budget it may take one part in so many.
const PART: u32 = 4;
/// An execution under the detector takes so many times as long as one that is recorded, and a recording of its places.
const DETECTED: u64 = 2;
/// Leads that are expected of one, before the first: recordings have shown most of what there is, so that what they have shown
/// for sure is forced first.
const EXPECTED: f64 = 0.3;
/// Leads that are expected of the first recording of places between which the detector has just seen races: of many races at
/// once, and what is recorded of so few places is analysed, and replayed for all of them together, in little time.
const EXPECTED_OF_SEEN: f64 = 2.0;
/// Executions under the detector; each may come to other races.
const DETECTIONS: u32 = 3;
/// Recordings of its places behind each, at most; and how many in a row may show nothing new.
const MOST: u32 = 4;
const FRUITLESS: u32 = 2;
/// Of what is left of its time, one execution of a program that does not end by itself may take one part in so many.
const PART_OF_ENDLESS: u32 = 4;
const POLICIES: [Policy; 3] = [Policy::Random, Policy::Pct, Policy::RoundRobin];
/// Bytes of reports that are read.
const LARGEST: u64 = 64 << 20;

/// A race of two places, as the detector tells it: the innermost frames of both accesses.
type Race = [Vec<KeptPlace>; 2];

/// Executions under the detector, then recordings of the places that it reported.
pub struct Detect {
    /// Executions under the detector.
    detections: u32,
    /// Recordings of its places in all.
    recordings: u32,
    /// Of these, how many were made since the last detection.
    behind: u32,
    /// Of those, how many at the end showed nothing new.
    fruitless: u32,
    races: BTreeSet<Race>,
    expectation: Option<Expectation>,
    is_over: bool,
}

impl Detect {
    const fn new() -> Self {
        Self { detections: 0, recordings: 0, behind: 0, fruitless: 0, races: BTreeSet::new(), expectation: None, is_over: false }
    }

    /// Races that no recording has shown, and nothing has proven.
    fn open(&self, findings: &[Finding]) -> Vec<&Race> {
        let is_known = |finding: &&Finding| is_proven(finding) || may_be_unordered(finding);
        let known: BTreeSet<[KeptPlace; 2]> = findings.iter().filter(is_known).filter_map(places_of).collect();
        let is_open = |race: &&Race| {
            let [first, second] = race;
            !first.iter().any(|one| second.iter().any(|other| known.contains(&sorted([one.clone(), other.clone()]))))
        };
        self.races.iter().filter(is_open).collect()
    }

    /// The program under the detector, in parallel as its user runs it.
    fn detect<S: Symbols + ?Sized>(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<(), PipelineError> {
        case.observer.progress(Progress::Working("looking for races in a parallel execution"));
        self.detections += 1;
        (self.behind, self.fruitless) = (0, 0);
        let folder = case.job.store.scratch(NAME);
        remove(&folder)?;
        std::fs::create_dir_all(&folder).map_err(PipelineError::io("create", &folder))?;
        let mut flags = Flags::default();
        let mut pushed = flags.push("log_path", folder.join(REPORTS));
        // Addresses are enough, and nothing but races is wanted.
        let others = [("exitcode", "0"), ("detect_deadlocks", "0"), ("report_thread_leaks", "0"), ("symbolize", "0")];
        for (name, value) in [("format", "json")].into_iter().chain(others) {
            pushed = pushed.and_then(|()| flags.push(name, value));
        }
        pushed.map_err(|error| PipelineError::Malformed { path: folder.clone(), reason: error.to_string() })?;
        let mut program = case.job.program.clone();
        let set = [(DETECT_VARIABLE.into(), flags.into_text()), (REPORTER_VARIABLE.into(), case.job.settings.tool.clone())];
        program.environment.extend(set);
        let forcing = case.job.forcing(case.run);
        let time = Time { limit: Some(forcing.limit), until: until_of_one(case.run, until) };
        execute(&program, no_session(), &forcing.input, Output::Discard, time)?;
        case.tally.executions += 1;
        self.races.append(&mut reported(&folder)?);
        Ok(remove(&folder)?)
    }

    /// The places of races that are open, where one more recording may show something.
    fn places<S: Symbols + ?Sized>(&self, case: &Case<'_, '_, S>) -> Result<Vec<KeptPlace>, PipelineError> {
        if self.detections == 0 || self.behind >= MOST || self.fruitless >= FRUITLESS {
            return Ok(Vec::new());
        }
        let findings = case.job.store.findings()?;
        let places: BTreeSet<&KeptPlace> = self.open(&findings).into_iter().flatten().flatten().collect();
        Ok(places.into_iter().cloned().collect())
    }

    /// One recording of these places. Leads that no recording had.
    fn record<S: Symbols + ?Sized>(
        &mut self,
        case: &mut Case<'_, '_, S>,
        kept: Vec<KeptPlace>,
        until: Deadline,
    ) -> Result<usize, PipelineError> {
        let policy = POLICIES[self.recordings as usize % POLICIES.len()];
        let seed = case.job.settings.record.seed.wrapping_add(u64::from(self.recordings));
        self.recordings += 1;
        self.behind += 1;
        self.fruitless += 1;
        let before = case.gathered.leads.len();
        case.observer.progress(Progress::Working(&format!("recording {} alone", count(kept.len() as u64, "place"))));
        let next = Next { scheduling: Scheduling::Serial(policy), seed };
        let ended = until_of_one(case.run, until);
        if case.record_next(next, Manner::Places { kept, until: ended })? {
            let number = case.run.recordings.len() as u32 - 1;
            if let Some(shown) = case.analyse_late(number, until)?.shown {
                case.novelty.learn(shown);
            }
        }
        let made = case.gathered.leads.len() - before;
        if made > 0 {
            self.fruitless = 0;
        }
        Ok(made)
    }
}

/// When an execution is ended: of a program that does not end by itself, so early that there is time for what it shows.
fn until_of_one(run: &RunRecord, until: Deadline) -> Deadline {
    match (run.recordings.first(), until.left()) {
        (Some(first), Some(left)) if first.exit == ProgramExit::TimedOut => Deadline::within(left / PART_OF_ENDLESS),
        _ => until,
    }
}

impl<S: Symbols + ?Sized> Engine<S> for Detect {
    fn name(&self) -> &'static str {
        NAME
    }

    fn offer(&mut self, case: &Case<'_, '_, S>) -> Option<Offer> {
        if self.is_over || !case.has_lost() {
            return None;
        }
        if self.detections > 0 && self.behind == 0 && !self.races.is_empty() {
            return Some(Expectation::new(EXPECTED_OF_SEEN, case.takes(DETECTED)).offer());
        }
        let expectation = self.expectation.get_or_insert_with(|| Expectation::new(EXPECTED, case.takes(DETECTED)));
        Some(expectation.offer())
    }

    /// An execution under the detector, or a recording.
    fn step(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<Yield, PipelineError> {
        let kept = self.places(case)?;
        let made = if !kept.is_empty() {
            Yield { recordings: 1, leads: self.record(case, kept, until)?, proven: 0 }
        } else if self.detections < DETECTIONS && !(self.detections > 0 && self.races.is_empty()) {
            return self.detect(case, until).map(|()| Yield::default());
        } else {
            self.is_over = true;
            Yield::default()
        };
        if let Some(expectation) = &mut self.expectation {
            expectation.learn(made, case.takes(DETECTED));
        }
        Ok(made)
    }

    fn finish(&mut self, case: &mut Case<'_, '_, S>) -> Result<(), PipelineError> {
        case.job.store.clear_scratch(NAME)
    }

    fn account(&self) -> Account {
        let tried = (self.detections > 0).then(|| {
            let times = count(u64::from(self.detections), "execution");
            if self.races.is_empty() && self.recordings == 0 {
                return format!("nothing seen by the online detector in {times}");
            }
            let places = count(self.races.len() as u64, "pair");
            let seen = format!("{places} of racing places seen by the online detector in {times}");
            if self.recordings == 0 {
                return seen;
            }
            format!("{seen}, and {} of such places alone", count(u64::from(self.recordings), "recording"))
        });
        Account { tried, ..Account::default() }
    }
}

/// Where recordings may have lost accesses, and time is given.
pub(super) fn of_check<'a, S: Symbols + ?Sized>(asked: &mut Asked<'a>) -> Option<Registered<'a, S>> {
    if asked.stored || !asked.feeds_back || asked.budget.is_zero() {
        return None;
    }
    let share = Share::AtMost(asked.budget / PART);
    Some(Registered { engine: Box::new(Detect::new()), share, turn: Turn::ByOffer })
}

/// Begin of the names of files with reports.
const REPORTS: &str = "reports";

/// The races of all reports: files `reports.PID`, of lines with an object each.
fn reported(folder: &Path) -> Result<BTreeSet<Race>, PipelineError> {
    let mut races = BTreeSet::new();
    let entries = std::fs::read_dir(folder).map_err(PipelineError::io("read", folder))?;
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        let bytes = rashomon_files::read(&path, Links::Refused, LARGEST).map_err(PipelineError::io("read", &path))?;
        races.extend(bytes.split(|&byte| byte == b'\n').filter_map(race_of));
    }
    Ok(races)
}

/// A line that is no race, or is cut short, is none.
fn race_of(line: &[u8]) -> Option<Race> {
    let report: Value = serde_json::from_slice(line).ok()?;
    let [first, second] = report["accesses"].as_array()?.as_slice() else { return None };
    let mut race = [innermost(&first["stack"])?, innermost(&second["stack"])?];
    race.sort_unstable();
    (report["kind"] == "data-race").then_some(race)
}

/// The innermost places of a stack: inlined calls are at one.
fn innermost(stack: &Value) -> Option<Vec<KeptPlace>> {
    let place = |frame: &Value| {
        let offset = u64::from_str_radix(frame["offset"].as_str()?.strip_prefix("0x")?, 16).ok()?;
        // Frames are told by the call, not by what it returns to.
        Some(KeptPlace { module: frame["module"].as_str()?.to_owned(), offset: offset.checked_add(1)? })
    };
    let mut places: Vec<KeptPlace> = stack.as_array()?.iter().filter_map(place).collect();
    places.dedup();
    places.truncate(FRAMES);
    (!places.is_empty()).then_some(places)
}

/// Of a race.
fn places_of(finding: &Finding) -> Option<[KeptPlace; 2]> {
    let [first, second] = finding.sides.as_slice() else { return None };
    let place = |side: &rashomon_event::Side| side.stack.first().and_then(place_of);
    let places = [place(first)?, place(second)?];
    (finding.kind == FindingKind::DataRace).then(|| sorted(places))
}

fn sorted(mut places: [KeptPlace; 2]) -> [KeptPlace; 2] {
    places.sort_unstable();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(offset: u64) -> KeptPlace {
        KeptPlace { module: "/program".into(), offset }
    }

    #[test]
    fn a_report_is_read_as_the_places_behind_its_calls() {
        let frame = |offset: &str| format!(r#"{{"module":"/program","offset":"{offset}"}}"#);
        let stack = |offsets: &[&str]| offsets.iter().map(|offset| frame(offset)).collect::<Vec<_>>().join(",");
        let report = |kind: &str, first: &[&str], second: &[&str]| {
            format!(r#"{{"kind":"{kind}","accesses":[{{"stack":[{}]}},{{"stack":[{}]}}]}}"#, stack(first), stack(second))
        };
        let race = race_of(report("data-race", &["0x1f", "0x1f", "0x2f", "0x3f", "0x4f"], &["0xf"]).as_bytes());
        assert_eq!(race, Some([vec![place(0x10)], vec![place(0x20), place(0x30), place(0x40)]]));
        assert_eq!(race_of(report("thread-leak", &["0x1f"], &["0xf"]).as_bytes()), None);
        assert_eq!(race_of(report("data-race", &[], &["0xf"]).as_bytes()), None);
        assert_eq!(race_of(b"{\"kind\":\"data-race\",\"accesses\":[{"), None);
    }
}
