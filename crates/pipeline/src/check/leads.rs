//! Leads: findings that could still be decided, with what forcing needs to know of each.

use crate::analyse::Analysed;
use crate::analyse::examine::Examination;
use crate::check::known::Known;
use crate::check::prove::may_be_unordered;
use crate::check::pursue::{Pursuit, Pursuits};
use crate::check::tally::Tally;
use crate::findings::alike::{self, Cause, Counts};
use crate::findings::compose::Composer;
use crate::findings::failure::failure_of;
use crate::findings::symbols::Symbols;
use crate::store::run::RunRecord;
use rashomon_event::{
    CandidateKind, Evidence, Finding, FindingId, FindingKind, Frame, KeptPlace, ProcessPath, Schedule, Side, SiteId,
    Surroundings, Verdict,
};
use rashomon_report::ProgramExit;
use rashomon_trace::{LoadedTrace, Misuse};
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A finding on its way, with what can still be tried.
pub struct Lead {
    pub finding: Finding,
    pub(super) alternatives: Vec<Schedule>,
    pub(super) from: Source,
    /// Of a recording that ended wrongly.
    pub(super) exit: Option<ProgramExit>,
    /// What it has in common with others.
    pub(super) cause: Option<Cause>,
    /// Events of its threads before it.
    pub(crate) came: usize,
    /// Another recording that shows the pair unordered, and its sides there, where the one at hand has a schedule instead.
    pub(super) unordered: Option<(Source, Vec<Side>)>,
    /// The first of its schedules did not show it; the others are still to be forced.
    pub(crate) begun: bool,
}

impl Lead {
    /// How the recorded program ended, where that is what was found.
    pub(crate) fn exit(&self) -> Option<ProgramExit> {
        self.exit
    }

    pub(crate) fn cause(&self) -> Option<Cause> {
        self.cause
    }

    /// How doubtful it is that forcing proves it.
    pub(crate) fn doubt(&self) -> Doubt {
        let finding = &self.finding;
        if finding.verdict == Verdict::Refuted {
            return Doubt::Refuted;
        }
        let is_sure = finding.verdict.rank() <= Verdict::Predicted.rank() || self.exit.is_some();
        match finding.evidence {
            _ if is_sure => Doubt::Little,
            Evidence::HappensBefore | Evidence::Observed => Doubt::Little,
            Evidence::LockOrder => Doubt::Cycle,
            _ if self.unordered.is_none() && finding.is_of_library() => Doubt::Library,
            _ if self.begun => Doubt::Again,
            _ => Doubt::Much,
        }
    }

    /// A recording of few places that shows it, unordered, and its sides there: the same replays show all such findings of the
    /// recording, and each costs nearly nothing more.
    pub(crate) fn shared(&self) -> Option<(&Source, &[Side])> {
        self.unordered().find(|(from, _)| !from.kept.is_empty())
    }

    /// Recordings that show it, unordered.
    pub(super) fn unordered(&self) -> impl Iterator<Item = (&Source, &[Side])> {
        let own = may_be_unordered(&self.finding).then_some((&self.from, self.finding.sides.as_slice()));
        let other = self.unordered.as_ref().map(|(from, sides)| (from, sides.as_slice()));
        own.into_iter().chain(other)
    }

    /// Of an execution that was looked at before: how often these were seen is counted.
    pub(crate) fn seen_before(mut self, known: &BTreeSet<FindingId>) -> Self {
        if known.contains(&self.finding.id) {
            self.finding.occurrences = 0;
        }
        self
    }

    /// Whether its other schedules wait until every lead has been forced by one: such leads are many, or time is short.
    pub(crate) fn waits(&self, hurry: Hurry) -> bool {
        let is_one_of_many = matches!(self.doubt(), Doubt::Much | Doubt::Refuted) || hurry == Hurry::Short;
        is_one_of_many && !self.begun && self.finding.schedule.is_some() && !self.alternatives.is_empty()
    }

    /// Whether one schedule is all that it is worth.
    pub(crate) fn is_forced_once(&self) -> bool {
        self.doubt() == Doubt::Library
    }

    /// Was not forced by any schedule yet, and could be.
    pub(crate) fn is_untried(&self) -> bool {
        is_open(self) && !self.begun
    }

    /// Whether the recorded schedule may be wanted again.
    pub(crate) fn replays_its_recording(&self) -> bool {
        self.exit.is_some() || self.finding.schedule.is_none() && is_proven(&self.finding) || may_be_unordered(&self.finding)
    }

    /// Is gone after from now on, as its schedules have not shown it.
    pub(crate) fn pursue(self, run: &RunRecord, pursuits: &mut Pursuits) {
        let schedules = self.finding.schedule.iter().cloned().chain(self.alternatives);
        let pursuit = Pursuit::new(schedules, run.recordings.get(self.from.recording as usize));
        pursuits.add(self.finding, pursuit, self.cause);
    }
}

/// Whether there is time for all that could be tried of all leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hurry {
    Enough,
    /// One schedule of each, and what shows many leads at once, come before the other schedules.
    Short,
}

/// What a lead promises; the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doubt {
    /// An execution showed it, or a checked reordering does.
    Little,
    /// A cycle of locks whose schedule changes what threads read. There are few of them, and each is a bug of its own.
    Cycle,
    /// A pair that was ordered when it was recorded, by a schedule that changes what threads read.
    Much,
    /// Such a pair that its first schedule has not shown.
    Again,
    /// Such a pair of what the language's library does with its own data, which it mostly does well: one schedule is forced.
    Library,
    /// Such a pair that no correct reordering of the recording shows: only by what is read in another order, if at all. They
    /// are forced when nothing else is left.
    Refuted,
}

impl Doubt {
    pub const ALL: [Self; 6] = [Self::Little, Self::Cycle, Self::Much, Self::Again, Self::Library, Self::Refuted];
}

pub(super) type Replays = BTreeMap<(u32, ProcessPath), Option<Arc<Schedule>>>;

/// What recordings gave.
#[derive(Default)]
pub struct Gathered {
    pub(crate) leads: BTreeMap<FindingId, Lead>,
    /// Exits that are wrong if another recording ends with 0.
    pub(crate) exits: BTreeMap<FindingId, Lead>,
    /// Schedules of recorded processes.
    pub(super) replays: Replays,
    /// Replays of recorded processes.
    known: BTreeMap<(u32, ProcessPath), Known>,
    pub(crate) told: BTreeSet<String>,
}

impl Gathered {
    /// Keeps the schedule of a recording that is in memory now; a very long one is loaded again when it is wanted.
    pub(crate) fn remember(&mut self, from: &Source, loaded: &LoadedTrace, quantum: u64, has_client: bool) {
        if loaded.turns().len() <= MOST_REMEMBERED {
            self.replays.insert(from.key(), from.schedule(loaded, quantum, has_client));
        }
    }

    /// What may be unordered in the recording.
    pub(crate) fn note(&mut self, lead: &Lead) {
        if may_be_unordered(&lead.finding) {
            self.known.entry(lead.from.key()).or_default().note(&lead.finding);
        }
    }

    /// Whether what replays of this process have shown is at hand.
    pub(super) fn is_replayed(&self, from: &Source, times: u32) -> bool {
        self.known.get(&from.key()).is_some_and(|known| known.replays.len() >= times.max(1) as usize)
    }

    /// What replays of this process have shown. Of others it is forgotten where that is much.
    pub(super) fn known(&mut self, from: &Source) -> &mut Known {
        if self.known.values().map(Known::events).sum::<usize>() > MOST_REPLAYED {
            self.known.iter_mut().filter(|(key, _)| **key != from.key()).for_each(|(_, known)| known.forget());
        }
        self.known.entry(from.key()).or_default()
    }
}

/// Where a finding was seen first.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Number of the recording.
    pub recording: u32,
    pub process: ProcessPath,
    /// Of a process that another one made: how the others run when it is forced.
    pub surroundings: Option<Surroundings>,
    /// The places whose plain accesses alone were recorded; none: all were.
    pub kept: Vec<KeptPlace>,
}

impl Source {
    /// The initial process.
    pub(super) fn of_recording(recording: u32) -> Self {
        Self { recording, process: ProcessPath::default(), surroundings: None, kept: Vec::new() }
    }

    pub(super) fn key(&self) -> (u32, ProcessPath) {
        (self.recording, self.process.clone())
    }

    /// A client asks the same again: with one it goes on behind external inputs.
    pub(crate) fn schedule(&self, loaded: &LoadedTrace, quantum: u64, has_client: bool) -> Option<Arc<Schedule>> {
        (loaded.trace.mode == rashomon_event::Mode::Serial).then(|| {
            let recorded = if has_client { loaded.whole_schedule(quantum) } else { loaded.replay_schedule(quantum) };
            Arc::new(Schedule { surroundings: self.surroundings.clone(), kept: self.kept.clone(), ..recorded })
        })
    }
}

/// Said of what only values, or uses of reads, show.
const BY_VALUE: &str = "in the predicted order some read sees another write than in the recording: one of the same value, or \
    nothing that happens there depends on the value";

/// Suspicions that are looked at in one recording: to say what one is costs a look at the whole trace.
pub(super) const MOST_OF_ONE_RECORDING: u64 = 4000;

/// Events of all replays in memory together.
const MOST_REPLAYED: usize = 1 << 22;

/// Turns of a schedule that is kept.
pub(super) const MOST_REMEMBERED: usize = 1 << 16;

/// Other witnesses of the same finding that are tried when one does not show it.
pub(super) const MAX_ALTERNATIVES: usize = 3;

pub(super) fn ended_blocked(loaded: &LoadedTrace) -> bool {
    matches!(
        loaded.header.outcome,
        rashomon_trace::RunOutcome::Deadlock | rashomon_trace::RunOutcome::Stuck | rashomon_trace::RunOutcome::Endless
    )
}

/// What a recorded process shows, and what its analysis finds. `exit`: how the recorded program ended, if this is the process
/// that says so; `quantum`: as in the recording's control.
pub(crate) fn leads_of<S: Symbols + ?Sized>(
    loaded: &LoadedTrace,
    (symbols, quantum): (&S, u64),
    from: &Source,
    exit: ProgramExit,
    examination: &mut Examination,
    tally: &mut Tally,
) -> Vec<Lead> {
    // Made when there is something to say: it reads the whole trace and all modules.
    let composer = LazyCell::new(|| Composer::new(loaded, symbols, quantum));
    let mut leads = Vec::new();
    let mut lead = |mut finding: Finding, exit: Option<ProgramExit>, (cause, came): (Option<Cause>, usize)| {
        if let Some(schedule) = &mut finding.schedule {
            schedule.surroundings.clone_from(&from.surroundings);
            schedule.kept.clone_from(&from.kept);
        }
        if !from.process.is_initial() {
            finding.notes.push(format!("seen in process {}, which the program made", from.process));
        }
        let alternatives = Vec::new();
        leads.push(Lead { finding, alternatives, from: from.clone(), exit, cause, came, unordered: None, begun: false });
    };
    if ended_blocked(loaded)
        && let Some(finding) = composer.of_blocked()
    {
        lead(finding, None, (None, 0));
    }
    let (freed, wrong): (Vec<_>, Vec<_>) = loaded.misuses.iter().partition(|record| record.misuse == Misuse::UseAfterFree);
    for record in wrong {
        lead(composer.of_misuse(record), None, (None, 0));
    }
    if let Some(failure) = failure_of(exit) {
        lead(composer.of_failure(failure), Some(exit), (None, 0));
    }
    let mut looked_at = 0;
    let mut racing: BTreeSet<(SiteId, SiteId)> = BTreeSet::new();
    // What is refuted takes no place from what is not.
    let (mut counts, mut refuted) = (Counts::default(), Counts::default());
    while let Some(analysed) = examination.found() {
        if let CandidateKind::Race { first, second } = analysed.candidate.kind {
            let sites = [first, second].map(|event| loaded.trace.event(event).site);
            racing.extend([(sites[0], sites[1]), (sites[1], sites[0])]);
        }
        // Races are what there may be thousands of; other kinds come behind them, and are few.
        looked_at += u64::from(matches!(analysed.candidate.kind, CandidateKind::Race { .. }));
        if looked_at > MOST_OF_ONE_RECORDING && matches!(analysed.candidate.kind, CandidateKind::Race { .. }) {
            tally.set_aside = tally.set_aside.max(looked_at - MOST_OF_ONE_RECORDING);
            continue;
        }
        let finding = composer.described(&analysed.candidate);
        let cause = Cause::of(&finding, &analysed.candidate, &loaded.trace);
        let is_refuted = composer.refutes(&analysed);
        let taken = if is_refuted { &mut refuted } else { &mut counts };
        if taken.count(cause) >= alike::TAKEN {
            if !is_refuted {
                tally.alike.insert(finding.id);
            }
            continue;
        }
        tally.alike.remove(&finding.id);
        let finding = decided(&composer, finding, &analysed);
        let came = analysed.candidate.kind.goals().iter().map(|goal| composer.describer.events_before(*goal)).sum();
        lead(finding, None, (cause, came));
    }
    // Where the two race that is the cause.
    for record in
        freed.into_iter().filter(|record| !record.earlier.is_some_and(|end| racing.contains(&(end.site, record.at.site))))
    {
        lead(composer.of_misuse(record), None, (None, 0));
    }
    for foreseen in examination.take_foreseen() {
        let came = foreseen.order.len();
        lead(composer.of_foreseen(&foreseen), None, (None, came));
    }
    count_what_is_left(examination, tally);
    leads
}

fn count_what_is_left(examination: &Examination, tally: &mut Tally) {
    match examination.statistics() {
        Some(statistics) => {
            tally.out_of_time += statistics.out_of_time as u64;
            tally.cut_short += u64::from(statistics.cut_short);
        }
        None => tally.cut_short += 1,
    }
}

/// What the analysis says of a candidate: its schedule, and what is to be said of it.
fn decided<S: Symbols + ?Sized>(composer: &Composer<'_, S>, finding: Finding, analysed: &Analysed) -> Finding {
    let mut finding = composer.with_witness(finding, analysed.witness.as_ref());
    if analysed.despite_calls {
        composer.doubt(&mut finding);
    }
    if composer.refutes(analysed) {
        finding.verdict = Verdict::Refuted;
    }
    finding.notes.extend(analysed.by_value.then(|| BY_VALUE.to_owned()));
    let rejected = analysed.rejected.as_ref();
    finding.notes.extend(rejected.map(|reason| format!("the predicted schedule was rejected by the checker: {reason}")));
    finding
}

pub(crate) const fn is_proven(finding: &Finding) -> bool {
    finding.verdict.is_proven()
}

/// The two places in the code of a race, in one order.
pub(crate) type RacePlaces = [String; 2];

/// `None`: not a race.
pub(crate) fn race_places(finding: &Finding) -> Option<RacePlaces> {
    let place = |side: &Side| {
        side.stack.first().map_or_else(String::new, |frame| match (&frame.file, frame.line) {
            (Some(file), Some(line)) => format!("{file}:{line}:{}", frame.column.unwrap_or(0)),
            _ => format!("{}+{:#x}", frame.module, frame.offset),
        })
    };
    let [first, second] = finding.sides.as_slice() else { return None };
    let mut places = [place(first), place(second)];
    places.sort_unstable();
    (finding.kind == FindingKind::DataRace).then_some(places)
}

/// The places of the races that are proven.
pub(crate) fn proven_races(findings: &[Finding]) -> BTreeSet<RacePlaces> {
    findings.iter().filter(|finding| is_proven(finding)).filter_map(race_places).collect()
}

/// Open findings that are a proven race under another name: the same calls lead both threads to the same two places. Provocation
/// names the object as it found it, and so calls a race otherwise than who predicted it.
pub(crate) fn proven_otherwise(findings: &[Finding]) -> Vec<FindingId> {
    let calls = |side: &Side| -> Vec<(String, u64)> {
        let place = |frame: &Frame| match (&frame.file, frame.line) {
            (Some(file), Some(line)) => (file.clone(), u64::from(line)),
            _ => (frame.module.clone(), frame.offset),
        };
        side.stack.iter().map(place).collect()
    };
    let both = |finding: &Finding| {
        let mut both: Vec<_> = finding.sides.iter().map(calls).collect();
        both.sort_unstable();
        (finding.kind == FindingKind::DataRace && both.len() == 2).then_some(both)
    };
    let proven: BTreeSet<_> = findings.iter().filter(|finding| is_proven(finding)).filter_map(both).collect();
    let is_open = |finding: &&Finding| !is_proven(finding) && finding.verdict != Verdict::Refuted;
    let again = findings.iter().filter(is_open).filter(|finding| both(finding).is_some_and(|both| proven.contains(&both)));
    again.map(|finding| finding.id.clone()).collect()
}

/// Provoked races at two places whose race a forced schedule shows, too: that says which object it is.
pub(crate) fn told_by_forcing(findings: &[Finding]) -> Vec<FindingId> {
    let proven = findings.iter().filter(|finding| is_proven(finding));
    let (provoked, forced): (Vec<_>, Vec<_>) = proven.partition(|finding| finding.provocation.is_some());
    let forced: BTreeSet<_> = forced.into_iter().filter_map(race_places).collect();
    let again = provoked.into_iter().filter(|finding| race_places(finding).is_some_and(|places| forced.contains(&places)));
    again.map(|finding| finding.id.clone()).collect()
}

/// Lifetime races at two places that a proven finding of another kind has: a use that came too late says more than one that may.
pub(crate) fn told_by_worse(findings: &[Finding]) -> Vec<FindingId> {
    let places = |finding: &Finding| -> Option<[(String, u64); 2]> {
        let [first, second] = finding.sides.as_slice() else { return None };
        let place = |side: &Side| side.stack.first().map(|frame| (frame.module.clone(), frame.offset));
        let mut places = [place(first)?, place(second)?];
        places.sort_unstable();
        Some(places)
    };
    let (lifetimes, others): (Vec<_>, Vec<_>) = findings.iter().partition(|finding| finding.kind == FindingKind::LifetimeRace);
    let worse: BTreeSet<_> =
        others.into_iter().filter(|finding| is_proven(finding) && finding.kind.is_misuse()).filter_map(places).collect();
    let told = lifetimes.into_iter().filter(|finding| places(finding).is_some_and(|places| worse.contains(&places)));
    told.map(|finding| finding.id.clone()).collect()
}

/// Whether forcing could still decide it.
pub(crate) fn is_open(lead: &Lead) -> bool {
    (lead.finding.schedule.is_some() || lead.exit.is_some()) && !is_proven(&lead.finding)
}

/// One finding per id: the surer one stays, the other's schedule may be tried too. Says whether more is known now than before.
pub(crate) fn merge(leads: &mut BTreeMap<FindingId, Lead>, new: Lead) -> bool {
    let Some(old) = leads.get_mut(&new.finding.id) else {
        leads.insert(new.finding.id.clone(), new);
        return true;
    };
    let occurrences = old.finding.occurrences + new.finding.occurrences;
    let is_better =
        |a: &Finding, b: &Finding| (a.verdict.rank(), a.schedule.is_none()) < (b.verdict.rank(), b.schedule.is_none());
    let improved = is_better(&new.finding, &old.finding);
    let other = if improved { std::mem::replace(old, new) } else { new };
    if (!may_be_unordered(&old.finding) || other.shared().is_some() && old.shared().is_none()) && old.unordered.is_none() {
        let shown = may_be_unordered(&other.finding).then(|| (other.from.clone(), other.finding.sides.clone()));
        old.unordered = other.unordered.or(shown);
    }
    old.finding.occurrences = occurrences;
    let known: Vec<&Schedule> = old.finding.schedule.iter().chain(&old.alternatives).collect();
    let fresh: Vec<Schedule> =
        other.finding.schedule.into_iter().chain(other.alternatives).filter(|s| !known.contains(&s)).collect();
    old.alternatives.extend(fresh);
    old.alternatives.truncate(MAX_ALTERNATIVES);
    improved
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_event::{Evidence, Grade, Replays, Trial};

    fn race(id: &str, calls: [&[u32]; 2]) -> Finding {
        let frame = |line: &u32| Frame { file: Some("a.c".into()), line: Some(*line), ..Frame::default() };
        let side = |lines: &[u32]| Side {
            thread: String::new(),
            action: String::new(),
            stack: lines.iter().map(frame).collect(),
            held: Vec::new(),
            created_at: Vec::new(),
        };
        let id = FindingId::new(id).unwrap();
        Finding { sides: calls.map(side).into(), ..Finding::suspected(FindingKind::DataRace, Evidence::HappensBefore, id) }
    }

    #[test]
    fn a_race_that_is_proven_is_not_open_under_another_name() {
        let mut proven = race("race-00000001", [&[1, 10], &[2]]);
        proven.advance(Trial::Shown { grade: Grade::CoEnabled, replays: Replays::default() });
        // The first is the same with its sides exchanged; the second is called from elsewhere.
        let open = [race("race-00000002", [&[2], &[1, 10]]), race("race-00000003", [&[1, 11], &[2]])];
        let all = [vec![proven], open.to_vec()].concat();
        assert_eq!(proven_otherwise(&all), [open[0].id.clone()]);
        assert!(proven_otherwise(&open).is_empty());
    }
}
