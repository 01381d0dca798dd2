//! Interleavings that may be violations: each is executed, and so are the serial orders, and what comes of them is compared.
//!
//! What is forced is an order of critical sections; behind its schedule each execution goes on under several seeds. A lead is
//! proven `violated` if every execution that shows the interleaving ends otherwise than each in which the sections come one after
//! the other, and the schedule that shows it comes about again (`docs/theory-atomicity.md`).

use crate::check::prove::load_until;
use crate::ended::Ended;
use crate::engines::case::Case;
use crate::error::PipelineError;
use crate::findings::atomicity::Sources;
use crate::findings::compose::Composer;
use crate::findings::failure::Norm;
use crate::findings::symbols::Symbols;
use crate::timeline::Drawing;
use rashomon_confirm::force::{Manner, force_in};
use rashomon_confirm::{Ending, Forcing, Output};
use rashomon_event::{Deadline, Finding, FindingId, Replays, Schedule};
use rashomon_predict::atomicity::{Pattern, Violation};
use rashomon_trace::{Enforcement, LoadedTrace, Policy};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Seeds under which each order goes on behind its schedule.
pub(super) const SEEDS: u64 = 3;
/// Outcomes of serial orders. Where there are more, another one says nothing.
const MOST_OUTCOMES: usize = 2;

/// Sections that may be interleaved, and schedules that do it.
pub(super) struct Lead {
    pub pattern: Pattern,
    pub finding: Finding,
    pub sources: Sources,
    /// The sections interleaved; what comes about at first is taken.
    pub violated: Vec<Schedule>,
    /// One after the other.
    pub serial: Vec<Schedule>,
    /// The recording that ended wrongly, where it happened in one.
    pub blames: Option<u32>,
}

/// What is told already: another pair of sections that do the same to the same variable is no news.
pub(crate) struct Proven {
    pub id: FindingId,
    pub variables: BTreeSet<String>,
    pub sources: Sources,
    pub ended: EndedSo,
}

pub(super) fn variables(finding: &Finding) -> BTreeSet<String> {
    finding.subject.split(" and ").map(str::to_owned).collect()
}

/// How an execution ended, and the lines that it printed.
pub(crate) type EndedSo = (Ending, Vec<String>);

/// What one execution showed.
struct Seen {
    violation: Option<Violation>,
    /// It ended before the last access.
    begun: bool,
    ended: EndedSo,
    loaded: LoadedTrace,
}

/// Which end is right.
pub(super) fn norm_of<S: Symbols + ?Sized>(case: &Case<'_, '_, S>) -> Norm {
    Norm::of(case.job.settings.expected_exit, case.run.recordings.iter().map(|recorded| recorded.exit))
}

impl Seen {
    const fn shows(&self) -> bool {
        self.violation.is_some() || self.begun
    }
}

/// What executions showed of a lead.
pub(super) enum Decided {
    /// Nothing, or nothing that is certain.
    Nothing,
    /// What is told already.
    Known(FindingId),
    Shown(Box<Outcome>),
}

/// A violation that was executed.
pub(super) struct Outcome {
    pub finding: Finding,
    pub schedule: Schedule,
    pub replays: Replays,
    pub notes: Vec<String>,
    /// With the sections interleaved.
    pub ended: EndedSo,
}

/// Executions for one lead.
struct Executions<'e, 'c, 'j, S: ?Sized> {
    case: &'e mut Case<'c, 'j, S>,
    session: PathBuf,
    forcing: Forcing,
    made: u64,
}

/// Executes a lead's orders, in the scratch folder of an engine. What came of it, and how many executions there were.
pub(super) fn decide<S: Symbols + ?Sized>(
    case: &mut Case<'_, '_, S>,
    lead: &Lead,
    engine: &str,
    until: Deadline,
) -> Result<(Decided, u64), PipelineError> {
    let job = case.job;
    let session = job.store.scratch(engine).join("session");
    let forcing = Forcing { deadline: until, output: Output::Keep, ..job.forcing(case.run) };
    let mut executions = Executions { session, forcing, case, made: 0 };
    let decided = executions.compare(lead);
    let made = executions.made;
    case.tally.executions += made;
    Ok((decided?, made))
}

impl<S: Symbols + ?Sized> Executions<'_, '_, '_, S> {
    fn compare(&mut self, lead: &Lead) -> Result<Decided, PipelineError> {
        let touched = variables(&lead.finding);
        // The same with the threads exchanged.
        let is_same_code = |known: &&Proven| known.sources == lead.sources && !known.variables.is_disjoint(&touched);
        if let Some(known) = self.case.violations.iter().find(is_same_code) {
            return Ok(Decided::Known(known.id.clone()));
        }
        let mut schedules = lead.violated.iter();
        let (order, first) = loop {
            let Some(order) = schedules.next() else { return Ok(Decided::Nothing) };
            if let Some(seen) = self.execute(lead, order, 1)?.filter(Seen::shows) {
                break (order, seen);
            }
        };
        let Seen { violation, loaded, ended, .. } = first;
        // What is printed may be meant, where the sections are not known to depend on each other.
        let by_output = matches!(lead.pattern, Pattern::Stale | Pattern::Correlated) && violation.is_some();
        let is_same = |one: &EndedSo, other: &EndedSo| if by_output { one == other } else { one.0 == other.0 };
        let right = norm_of(self.case).code().map(Ending::Code);
        let ends_well = Some(ended.0) == right;
        if ends_well && !by_output {
            return Ok(Decided::Nothing);
        }
        let is_told = |known: &&Proven| known.ended == ended && !known.variables.is_disjoint(&touched);
        if let Some(known) = self.case.violations.iter().find(is_told) {
            return Ok(Decided::Known(known.id.clone()));
        }
        let mut violated = vec![ended];
        let mut serial: Vec<EndedSo> = Vec::new();
        for seed in 1..=SEEDS {
            if seed > 1 {
                violated.extend(self.execute(lead, order, seed)?.filter(Seen::shows).map(|seen| seen.ended));
            }
            for schedule in &lead.serial {
                // It may happen again elsewhere. That it does no harm there says what this one does.
                let is_of_use = |seen: &Seen| !seen.shows() || seen.ended.0 != violated[0].0;
                if let Some(seen) = self.execute(lead, schedule, seed)?.filter(is_of_use)
                    && !serial.contains(&seen.ended)
                {
                    serial.push(seen.ended);
                }
            }
            if violated.iter().any(|one| serial.iter().any(|other| is_same(one, other))) || serial.len() > MOST_OUTCOMES {
                return Ok(Decided::Nothing);
            }
        }
        let is_cured = ends_well && serial.iter().any(|other| Some(other.0) != right);
        if serial.is_empty() || is_cured || self.forcing.deadline.is_over() {
            return Ok(Decided::Nothing);
        }
        let schedule = loaded.replay_schedule(order.quantum);
        let mut replays = Replays::default();
        for _ in 0..self.forcing.times.max(1) {
            let again = self.execute(lead, &schedule, 1)?.is_some_and(|seen| seen.shows() && seen.ended == violated[0]);
            replays = Replays { shown: replays.shown + u32::from(again), of: replays.of + 1 };
        }
        if replays.shown < replays.of {
            return Ok(Decided::Nothing);
        }
        let composer = Composer::new(&loaded, self.case.job.symbols, schedule.quantum);
        let shown = violation.and_then(|violation| composer.of_shown(&violation));
        let mut notes = vec![difference(&violated[0], &serial)];
        if shown.is_none() {
            notes.push("the program ended before the last of these accesses".to_owned());
        }
        let mut finding = shown.unwrap_or_else(|| lead.finding.clone());
        finding.forced = Some(Box::new(Drawing::of(&composer).to_its_end(&finding)));
        let ended = violated.swap_remove(0);
        Ok(Decided::Shown(Box::new(Outcome { finding, schedule, replays, notes, ended })))
    }

    /// `None`: it left the schedule, or did not end.
    fn execute(&mut self, lead: &Lead, schedule: &Schedule, seed: u64) -> Result<Option<Seen>, PipelineError> {
        let job = self.case.job;
        let manner = Manner { enforcement: Enforcement::Strict, policy: Policy::Random, seed };
        let attempt = force_in(manner, &[], job.program, schedule, &self.session, &self.forcing)?;
        self.made += 1;
        let ending = attempt.execution.ending;
        if !attempt.outcome.is_orderly() || ending == Ending::TimedOut {
            return Ok(None);
        }
        let Ok(loaded) = load_until(&self.session, self.forcing.deadline) else { return Ok(None) };
        let composer = Composer::new(&loaded, job.symbols, schedule.quantum);
        let violation = match lead.pattern {
            Pattern::Correlated => composer.extended_at(&lead.sources, self.forcing.deadline),
            _ => composer.violation_at(&lead.sources, self.forcing.deadline),
        };
        let begun = violation.is_none() && composer.shows_beginning(&lead.sources, self.forcing.deadline);
        let lines = Ended::of(ending, &self.session)?.sorted_lines();
        Ok(Some(Seen { violation, begun, ended: (ending, lines), loaded }))
    }
}

/// What the interleaving did that no serial order did, in words.
fn difference(violated: &EndedSo, serial: &[EndedSo]) -> String {
    let ending = |ending: Ending| match ending {
        Ending::Code(code) => format!("ends with exit code {code}"),
        Ending::Signal(signal) => format!("is ended by signal {signal}"),
        Ending::TimedOut => "does not end".to_owned(),
    };
    let usual = &serial[0];
    if serial.iter().all(|other| other.0 != violated.0) {
        return format!("interleaved so the program {}; one after the other it {}", ending(violated.0), ending(usual.0));
    }
    let only = |one: &[String], other: &[String]| one.iter().find(|line| !other.contains(line)).cloned();
    let words = |line: Option<String>| line.map_or_else(|| "does not print that".to_owned(), |line| format!("prints `{line}`"));
    let (mine, theirs) = (only(&violated.1, &usual.1), only(&usual.1, &violated.1));
    match (mine, theirs) {
        (None, Some(line)) => format!("interleaved so the program does not print `{line}`, which it prints otherwise"),
        (mine, theirs) => format!("interleaved so the program {}; one after the other it {}", words(mine), words(theirs)),
    }
}
