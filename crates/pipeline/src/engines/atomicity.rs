//! Atomicity violations: critical sections that are interleaved, and what comes of it.
//!
//! A lead is two critical sections of a thread that may belong together, and one of another thread that may come between
//! ([`rashomon_predict::atomicity`]). No race is in it, and often nothing is wrong: whether the second section depends on the
//! first is not known. So executions decide. The interleaving is forced, and so are the serial orders, the
//! other thread's section before both or behind both; behind its schedule each execution goes on under several seeds. The lead is
//! proven `violated` if every execution that shows the interleaving ends otherwise than each in which the sections come one after
//! the other, and the schedule that shows it comes about again. Of a stale value, which is overwritten without a look, other
//! output is enough; of other leads it is not, as what is printed may be meant: a progress report is read between two counts.
//!
//! A recording that ended wrongly is looked at first. Its schedule is enforced up to the end of the second section only: if the
//! interleaving is the cause, the end is wrong whatever comes behind. The serial orders are the same up to the first section.
//! Where sections span the cause they are undone with it, so the nearest ones are tried first, and one cause is enough. What ends
//! as it should is no violation, whatever the serial orders end with.
//!
//! Limits. What a program neither prints nor ends with is not compared. The order of lines is not, either. A program whose serial
//! orders end in more than two ways decides nothing.

use crate::check::leads::is_proven;
use crate::check::prove::load_until;
use crate::engines::Asked;
use crate::engines::case::Case;
use crate::engines::engine::{Account, Engine, Expectation, Offer, Registered, Share, Turn, Yield};
use crate::engines::interleave::{self, Decided, Lead, Proven, SEEDS, norm_of, variables};
use crate::engines::portfolio::count;
use crate::error::PipelineError;
use crate::findings::compose::Composer;
use crate::findings::symbols::Symbols;
use crate::progress::Progress;
use crate::record::Scheduling;
use crate::store::run::RecordedRun;
use rashomon_confirm::Ending;
use rashomon_confirm::schedule::Planner;
use rashomon_event::{Deadline, EventIndex, FindingId, FindingKind, Schedule, Trial};
use rashomon_explore::Failure;
use rashomon_predict::Options;
use rashomon_predict::atomicity::{self, Ended as HowEnded};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

pub const NAME: &str = "atomicity";

/// Of what is left behind the first recording, this engine may take one part in so many.
const PART: u32 = 6;
/// Leads of one id: another time of the same accesses may matter where the first does not.
const MOST_OF_ONE: usize = 3;
/// Leads that are executed.
const MOST_TRIED: usize = 32;
/// Recordings that are looked at.
const MOST_RECORDINGS: usize = 12;
/// What a lead is worth before any was tried; and one that happened in an execution that ended wrongly.
const WORTH: f64 = 0.1;
const WORTH_IF_WRONG: f64 = 0.5;

/// Interleaves critical sections, and compares what comes of it.
pub struct Atomicity {
    /// The last unit looked at a recording.
    looked: bool,
    /// Recordings that were looked at, the one that is next, and how many are left.
    seen: BTreeSet<u32>,
    next: Option<u32>,
    left: u32,
    /// Those that there was no time to read.
    unread: u32,
    /// What happened in executions that ended wrongly.
    blamed: VecDeque<Lead>,
    open: VecDeque<Lead>,
    /// Others of the same ids.
    again: VecDeque<Lead>,
    /// What the language's library does by itself, which is not tried.
    of_library: BTreeSet<FindingId>,
    /// How many leads of each id were met, in each recording that ended wrongly, and in all others.
    known: BTreeMap<(FindingId, Option<u32>), usize>,
    proven: Vec<FindingId>,
    /// Exit codes that come of a violation, which explains failures that end so.
    causes: Vec<(i32, FindingId)>,
    tried: usize,
    executions: u64,
    expectation: Option<Expectation>,
    of_blamed: Option<Expectation>,
}

impl Atomicity {
    const fn new() -> Self {
        Self {
            looked: false,
            seen: BTreeSet::new(),
            next: None,
            left: 0,
            unread: 0,
            blamed: VecDeque::new(),
            open: VecDeque::new(),
            again: VecDeque::new(),
            of_library: BTreeSet::new(),
            known: BTreeMap::new(),
            proven: Vec::new(),
            causes: Vec::new(),
            tried: 0,
            executions: 0,
            expectation: None,
            of_blamed: None,
        }
    }

    /// Which recording is next: first those that ended wrongly.
    fn choose<S: Symbols + ?Sized>(&mut self, case: &Case<'_, '_, S>) {
        let norm = norm_of(case);
        let whole = |(number, recorded): &(u32, &RecordedRun)| recorded.kept.is_empty() && !self.seen.contains(number);
        let all = (0..).zip(&case.run.recordings).filter(whole);
        let (wrong, others): (Vec<_>, Vec<_>) = all.partition(|(_, recorded)| norm.is_wrong(recorded.exit));
        let others = others.into_iter().take(MOST_RECORDINGS.saturating_sub(self.seen.len()));
        let next: Vec<u32> = wrong.into_iter().take(MOST_RECORDINGS).chain(others).map(|(number, _)| number).collect();
        (self.next, self.left) = (next.first().copied(), next.len() as u32);
    }

    /// Leads of the next recording; the first of each id is kept.
    fn look<S: Symbols + ?Sized>(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<usize, PipelineError> {
        let job = case.job;
        let Some(number) = self.next.take() else { return Ok(0) };
        self.seen.insert(number);
        self.left = self.left.saturating_sub(1);
        let Some(recorded) = case.run.recordings.get(number as usize) else { return Ok(0) };
        if recorded.policy == Scheduling::Free.name() {
            return Ok(0);
        }
        let ended = if norm_of(case).is_wrong(recorded.exit) { HowEnded::Wrongly } else { HowEnded::Well };
        case.observer.progress(Progress::Working(&format!("looking for critical sections in recording {}", number + 1)));
        let Ok(loaded) = load_until(&job.store.recording(number), until) else {
            self.unread += 1;
            return Ok(0);
        };
        let predictions = atomicity::predict(&loaded.trace, &Options { deadline: until, ..Options::default() }, ended);
        if predictions.is_empty() || until.is_over() {
            self.unread += u32::from(until.is_over());
            return Ok(0);
        }
        let quantum = job.settings.record.quantum;
        let (composer, planner) = (Composer::new(&loaded, job.symbols, quantum), Planner::new(&loaded.trace, quantum));
        let recorded = loaded.replay_schedule(quantum);
        let before = self.leads();
        for prediction in predictions {
            // Each schedule is as long as the recording.
            if until.is_over() {
                self.unread += 1;
                break;
            }
            let Some(finding) = composer.of_violation(&prediction.violation) else { continue };
            if !prediction.is_blamed && finding.is_of_library() {
                self.of_library.insert(finding.id);
                continue;
            }
            let met = self.known.entry((finding.id.clone(), prediction.is_blamed.then_some(number))).or_default();
            *met += 1;
            if *met > MOST_OF_ONE {
                continue;
            }
            let is_first = *met == 1;
            let schedules = |orders: &[Vec<EventIndex>]| -> Vec<Schedule> {
                orders.iter().filter_map(|order| Some(planner.of_order(order).ok()?.schedule)).collect()
            };
            let (mut violated, mut serial) = (schedules(&prediction.violated), schedules(&prediction.serial));
            let blames = prediction.is_blamed.then_some(number);
            if ended == HowEnded::Well {
                // If it does not happen in the recording, that is one of the others.
                let recording = if prediction.violated.is_empty() { &mut violated } else { &mut serial };
                recording.push(recorded.clone());
            }
            if !violated.is_empty() {
                let pattern = prediction.violation.pattern;
                let sources = composer.sources_of_violation(&prediction.violation);
                let lead = Lead { pattern, finding, sources, violated, serial, blames };
                match (blames, is_first) {
                    (Some(_), _) => self.blamed.push_back(lead),
                    (None, true) => self.open.push_back(lead),
                    (None, false) => self.again.push_back(lead),
                }
            }
        }
        let proven = self.proven.clone();
        proven.iter().for_each(|id| self.blames_no_more(id));
        Ok(self.leads().saturating_sub(before))
    }

    /// Whether the next unit looks at a recording. Each second one decides a lead that is not like another, if there is any:
    /// to look at all recordings may take all the time there is.
    fn is_to_look(&self) -> bool {
        let decides = self.looked && !(self.open.is_empty() && self.blamed.is_empty()) && self.tried < MOST_TRIED;
        self.next.is_some() && !decides
    }

    fn leads(&self) -> usize {
        self.blamed.len() + self.open.len() + self.again.len()
    }

    /// The next lead that is not proven.
    fn pop(&mut self) -> Option<Lead> {
        loop {
            let lead = self.blamed.pop_front().or_else(|| self.open.pop_front()).or_else(|| self.again.pop_front())?;
            if !self.proven.contains(&lead.finding.id) {
                return Some(lead);
            }
        }
    }

    /// Recordings in which it happened ended wrongly for this reason.
    fn blames_no_more(&mut self, id: &FindingId) {
        let explained: BTreeSet<Option<u32>> = self.known.keys().filter(|(known, _)| known == id).map(|(_, of)| *of).collect();
        self.blamed.retain(|lead| !explained.contains(&lead.blames));
    }

    /// Whether the lead is proven.
    fn decide<S: Symbols + ?Sized>(
        &mut self,
        case: &mut Case<'_, '_, S>,
        mut lead: Lead,
        until: Deadline,
    ) -> Result<bool, PipelineError> {
        let job = case.job;
        let (decided, made) = interleave::decide(case, &lead, NAME, until)?;
        self.executions += made;
        let Decided::Shown(outcome) = decided else { return Ok(false) };
        let outcome_ended = outcome.ended.0;
        let finding = &mut lead.finding;
        (finding.sides, finding.subject) = (outcome.finding.sides, outcome.finding.subject);
        finding.forced = outcome.finding.forced;
        finding.schedule = Some(outcome.schedule);
        finding.notes.extend(outcome.notes);
        finding.advance(Trial::Shown { grade: rashomon_event::Grade::Violated, replays: outcome.replays });
        job.complete(finding);
        job.store.write_finding(finding)?;
        case.observer.progress(Progress::Decided(finding));
        case.violations.push(Proven {
            id: finding.id.clone(),
            variables: variables(finding),
            sources: lead.sources,
            ended: outcome.ended,
        });
        self.proven.push(finding.id.clone());
        if let (Some(_), Ending::Code(code)) = (lead.blames, outcome_ended) {
            self.causes.push((code, finding.id.clone()));
        }
        self.blames_no_more(&finding.id.clone());
        Ok(true)
    }
}

impl<S: Symbols + ?Sized> Engine<S> for Atomicity {
    fn name(&self) -> &'static str {
        NAME
    }

    fn offer(&mut self, case: &Case<'_, '_, S>) -> Option<Offer> {
        if case.job.program.client.is_some() {
            return None;
        }
        self.choose(case);
        if self.is_to_look() {
            return Some(Offer { takes: case.takes(1), gives: WORTH });
        }
        if self.leads() == 0 || self.tried == MOST_TRIED {
            return None;
        }
        let takes = case.takes(4 * SEEDS + u64::from(case.job.settings.times));
        let (expectation, worth) = match self.blamed.is_empty() {
            true => (&mut self.expectation, WORTH),
            false => (&mut self.of_blamed, WORTH_IF_WRONG),
        };
        Some(expectation.get_or_insert(Expectation::new(worth, takes)).offer())
    }

    /// Looks at one recording, or decides one lead.
    fn step(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<Yield, PipelineError> {
        self.looked = self.is_to_look();
        if self.looked {
            return Ok(Yield { leads: self.look(case, until)?, ..Yield::default() });
        }
        let is_blamed = !self.blamed.is_empty();
        let Some(lead) = self.pop() else { return Ok(Yield::default()) };
        self.tried += 1;
        case.observer.progress(Progress::Working(&format!("interleaving critical sections: pair {}", self.tried)));
        let before = self.executions;
        let made = Yield { proven: usize::from(self.decide(case, lead, until)?), ..Yield::default() };
        let took = case.takes(self.executions - before);
        if let Some(expectation) = if is_blamed { &mut self.of_blamed } else { &mut self.expectation } {
            expectation.learn(made, took);
        }
        Ok(made)
    }

    /// Failures say what one cause of them is.
    fn finish(&mut self, case: &mut Case<'_, '_, S>) -> Result<(), PipelineError> {
        let store = case.job.store;
        let findings = if self.causes.is_empty() { Vec::new() } else { store.findings()? };
        let failures = findings.into_iter().filter(|finding| finding.kind == FindingKind::Failure && is_proven(finding));
        for mut failure in failures {
            let cause = self.causes.iter().find(|(code, _)| failure.subject == Failure::Code(*code).to_string());
            if let Some((_, cause)) = cause {
                failure.notes.push(format!("a cause: {cause}; critical sections that are interleaved so end the program so"));
                store.write_finding(&failure)?;
                case.observer.progress(Progress::Decided(&failure));
            }
        }
        store.clear_scratch(NAME)
    }

    fn account(&self) -> Account {
        let tried = (self.tried > 0).then(|| {
            let (pairs, executions) = (count(self.tried as u64, "pair"), count(self.executions, "execution"));
            format!("{pairs} of critical sections interleaved with another thread's in {executions}")
        });
        let unread = u64::from(self.left + self.unread);
        let open = match (self.leads() as u64, unread) {
            (0, 0) => None,
            (0, unread) => Some(format!("critical sections of {} that belong together: no time", count(unread, "recording"))),
            (open, _) => Some(format!("{} of critical sections not interleaved", count(open, "pair"))),
        };
        let of_library = self.of_library.len() as u64;
        let words = || format!("{} of critical sections of the language's library", count(of_library, "pair"));
        let of_library = (of_library > 0).then(words);
        let left = [open, of_library].into_iter().flatten().reduce(|open, of_library| format!("{open}; {of_library}"));
        Account { tried, left, pairs: self.leads() as u64 }
    }
}

/// Where there is a program to execute.
pub(super) fn of_check<'a, S: Symbols + ?Sized>(asked: &mut Asked<'a>) -> Option<Registered<'a, S>> {
    if asked.stored || asked.budget.is_zero() {
        return None;
    }
    let share = Share::AtMost((asked.budget / PART).max(Duration::from_millis(1)));
    Some(Registered { engine: Box::new(Atomicity::new()), share, turn: Turn::ByOffer })
}
