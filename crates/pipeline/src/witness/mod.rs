//! Witnesses by model checking: a lockset warning of a recording becomes an execution in which both accesses are next to each
//! other.
//!
//! O. Shacham, M. Sagiv, A. Schuster, "Scaling Model Checking of Dataraces Using Dynamic Information", JPDC 67 (2007). Phase 1 is
//! `rashomon_predict::shacham`. Phase 2 (§3.2) explores the program itself from the prefix on: t^a1 stands right before a1 and
//! is left out (§3.2.2), a hint lets t^a2 go as far as it can (§4.3); how the suffix is searched is in [`suffix`]. A witness
//! (Definition 3.1) is kept as a schedule, executed again from the beginning, and called proven when both accesses were side by
//! side.
//!
//! Deviation 1: the model is the program: no bits of integers are left out. The state behind the prefix is reached once by
//! executing the program, and, if one execution from there is not enough, again for a process that stands there, from which all
//! others are forked ([`rashomon_confirm::snapshot`]); where the program does not allow that, each execution begins at the
//! beginning. Deviation 2: while t^a1 is held, any access that conflicts with a1 is a witness, also one at another place than a2.
//! Deviation 3: where the extended prefix diverges when executed (what the program does depends on something that is not in the
//! trace), the one up to a1 is tried.
//!
//! Guarantee: a witness happened. That none was found is said together with what was covered: all schedules within the bound on
//! preemptions, or a limit.

mod steps;
pub mod suffix;

use crate::check::prove::{Prover, load};
use crate::check::{Job, longest};
use crate::error::PipelineError;
use crate::findings::compose::Composer;
use crate::findings::symbols::Symbols;
use crate::progress::{Observer, Progress};
use crate::store::run::RunRecord;
use crate::witness::steps::steps;
use crate::witness::suffix::{Races, Suffix};
use rashomon_confirm::force::folder_of;
use rashomon_confirm::force::remove;
use rashomon_confirm::{Forcing, Planner};
use rashomon_event::{
    Candidate, CandidateKind, Deadline, Evidence, Finding, FindingId, FindingKind, Goal, Schedule, SiteId, Trace, Verdict,
    Witness, WitnessLevel,
};
use rashomon_explore::explorer::{Go, Limits};
use rashomon_explore::file::Refusal;
use rashomon_explore::schedule::of_log;
use rashomon_explore::search::Plan;
use rashomon_explore::{Expected, Explorer, Failure, VisibleAccesses};
use rashomon_predict::shacham::partner::AccessLocks;
pub use rashomon_predict::shacham::{LocksetStates, Pair};
use rashomon_predict::shacham::{partner, prefix, warnings};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Of the engine.
pub const NAME: &str = "witness";

/// Pairs of the same two source sites that are tried.
const PER_SITE_PAIR: usize = 6;

#[derive(Clone, Copy, Debug)]
pub struct WitnessSettings {
    pub states: LocksetStates,
    /// Leave t^a1 out.
    pub exclude: bool,
    /// Let t^a2 go as far as it can.
    pub hint: bool,
    /// Fig. 8; without it the prefix ends at a1.
    pub extend: bool,
    /// How what follows the prefix is searched.
    pub suffix: Suffix,
    /// Of one pair.
    pub schedules: u64,
    pub steps: u64,
    pub jobs: usize,
    /// Go on from process snapshots where the program allows that.
    pub snapshots: bool,
    /// Search only for findings that the store has and nothing has decided, and store only what is proven.
    pub undecided: bool,
}

impl WitnessSettings {
    /// For what the deciders of a check left undecided.
    pub fn of_check(jobs: usize) -> Self {
        Self {
            states: LocksetStates::None,
            exclude: true,
            hint: true,
            extend: true,
            suffix: Suffix::Preemptions { most: 2, remember: true },
            schedules: 100,
            steps: 100_000,
            jobs,
            snapshots: true,
            undecided: true,
        }
    }
}

/// What became of one pair of source sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Fig. 8 ended at an access that conflicts with a1.
    ByPrefix,
    BySearch,
    /// No schedule within the bound shows it.
    Exhausted,
    /// A limit was reached first.
    Unknown,
}

impl Found {
    pub const fn words(self) -> &'static str {
        match self {
            Self::ByPrefix => "witness by the prefix",
            Self::BySearch => "witness by search",
            Self::Exhausted => "none within the bounds",
            Self::Unknown => "none before a limit was reached",
        }
    }
}

/// One row: a pair of source sites.
#[derive(Clone, Debug)]
pub struct Searched {
    pub sites: [String; 2],
    pub found: Found,
    pub schedules: u64,
    /// Of the search, the proof not included.
    pub duration: Duration,
    /// Accesses executed before the search began; by the prefix alone, before both threads stood side by side.
    pub prefix: u64,
    pub pairs: usize,
    pub id: Option<FindingId>,
}

impl Searched {
    /// Before anything was tried.
    fn of<S: Symbols + ?Sized>(composer: &Composer<'_, S>, pair: Pair, pairs: usize) -> Self {
        let place = |event| composer.describer.place_of(event);
        let words = |event| place(event).map_or_else(|| "??".into(), |frame| rashomon_report::text::frame_words(&frame));
        Self {
            sites: [pair.a1, pair.a2].map(words),
            found: Found::Exhausted,
            schedules: 0,
            duration: Duration::ZERO,
            prefix: 0,
            pairs,
            id: None,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Witnessed {
    pub warnings: usize,
    /// Warnings without a partner.
    pub spurious: usize,
    pub searched: Vec<Searched>,
    pub executions: u64,
    /// Of them, those that went on from a process snapshot.
    pub from_snapshots: u64,
    /// Why there was no snapshot where one was wanted, the last time.
    pub refused: Option<Refusal>,
    /// Executed by the recorded execution, kept or not.
    pub accesses: u64,
    pub events: u64,
    pub threads: u64,
}

impl Witnessed {
    /// Pairs of source sites with a witness that came about again.
    pub fn proven(&self) -> usize {
        self.searched.iter().filter(|row| row.id.is_some()).count()
    }
}

/// What came of the search for one pair.
struct PairSearched {
    found: Found,
    schedules: u64,
    from_snapshots: u64,
    refused: Option<Refusal>,
    shown: Option<Shown>,
}

/// A schedule that ends with both side by side.
struct Shown {
    schedule: Schedule,
    pair: Pair,
    /// Turns of the schedule, and accesses, before the search began.
    turns: usize,
    accesses: u64,
}

fn sites_of(trace: &Trace, pair: Pair) -> (SiteId, SiteId) {
    let (one, other) = (trace.event(pair.a1).site, trace.event(pair.a2).site);
    (one.min(other), one.max(other))
}

/// The pairs that warnings lead to, by their sites.
fn pairs_by_sites(trace: &Trace, states: LocksetStates, witnessed: &mut Witnessed) -> BTreeMap<(SiteId, SiteId), Vec<Pair>> {
    let locks = AccessLocks::of(trace);
    let mut by_sites: BTreeMap<(SiteId, SiteId), Vec<Pair>> = BTreeMap::new();
    for warning in warnings(trace, states) {
        witnessed.warnings += 1;
        match partner(trace, &locks, &warning) {
            None => witnessed.spurious += 1,
            Some(pair) => {
                let pairs = by_sites.entry(sites_of(trace, pair)).or_default();
                if !pairs.contains(&pair) {
                    pairs.push(pair);
                }
            }
        }
    }
    by_sites
}

impl<S: Symbols + ?Sized> Job<'_, S> {
    fn forcing_of_search(&self, run: &RunRecord, until: Deadline) -> Forcing {
        let mut forcing = Forcing { deadline: until, ..self.forcing(run) };
        if self.program.client.is_some() && self.settings.forced_limit.is_none() {
            // While one thread is held, the client that awaits its answer waits, too, and nothing ends the execution but its
            // time.
            forcing.limit = forcing.limit.min(longest(run) * 2 + Duration::from_secs(1));
        }
        forcing
    }

    /// Searches a witness for each pair of source sites with a lockset warning in one recording; stores what it finds.
    pub(crate) fn witnesses_of(
        &self,
        run: &RunRecord,
        recording: u32,
        settings: &WitnessSettings,
        until: Deadline,
        witnessed: &mut Witnessed,
        observer: &mut dyn Observer,
    ) -> Result<(), PipelineError> {
        let Some(loaded) = self.load_for_search(recording, until, observer)? else { return Ok(()) };
        let trace = &loaded.trace;
        witnessed.accesses = witnessed.accesses.max(loaded.header.accesses_executed);
        witnessed.events += trace.events.len() as u64;
        witnessed.threads = witnessed.threads.max(trace.threads.len() as u64);
        let by_sites = pairs_by_sites(trace, settings.states, witnessed);
        let races = Races::of(trace, until);
        let composer = Composer::new(&loaded, self.symbols, self.settings.record.quantum);
        let scratch = self.store.scratch(NAME);
        let forcing = self.forcing_of_search(run, until);
        let mut prover =
            Prover { program: self.program, forcing: forcing.clone(), symbols: self.symbols, scratch: &scratch, executions: 0 };
        let undecided: Option<BTreeSet<FindingId>> = match settings.undecided {
            true => Some(self.store.findings()?.into_iter().filter(is_undecided).map(|finding| finding.id).collect()),
            false => None,
        };
        let of = by_sites.len();
        for (number, mut pairs) in by_sites.into_values().enumerate() {
            // Late ones first: there is less behind them. Different threads before more of the same.
            pairs.sort_by_key(|pair| std::cmp::Reverse(pair.a1));
            pairs.truncate(PER_SITE_PAIR);
            let first = pairs[0];
            let mut finding = composer.of_candidate(&candidate(first), None);
            if witnessed.searched.iter().any(|row| row.id.as_ref() == Some(&finding.id)) {
                continue;
            }
            if !self.settings.shard.owns(&finding.id) {
                continue;
            }
            let late = until.is_over();
            if undecided.as_ref().is_some_and(|undecided| !undecided.contains(&finding.id) || late) {
                continue;
            }
            observer.progress(Progress::Forcing { id: &finding.id.clone(), number, of });
            let mut row = Searched::of(&composer, first, pairs.len());
            if late {
                row.found = Found::Unknown;
            }
            for pair in pairs.into_iter().filter(|_| !late) {
                let searched = self.search_pair(trace, (pair, &races), settings, &forcing, until, &mut row.duration)?;
                row.schedules += searched.schedules;
                witnessed.from_snapshots += searched.from_snapshots;
                witnessed.refused = searched.refused.or(witnessed.refused);
                match searched.shown {
                    Some(shown) => {
                        row.found = searched.found;
                        row.prefix = shown.accesses;
                        finding = composer.of_candidate(&candidate(shown.pair), None);
                        if self.prove(&mut prover, &mut finding, &mut row, &shown)? {
                            break;
                        }
                    }
                    None if searched.found == Found::Unknown => row.found = Found::Unknown,
                    None => {}
                }
            }
            if finding.verdict.is_proven() {
                row.id = Some(finding.id.clone());
            }
            if row.id.is_some() || undecided.is_none() {
                self.complete(&mut finding);
                self.store.write_finding(&finding)?;
                observer.progress(Progress::Decided(&finding));
            }
            witnessed.executions += row.schedules;
            witnessed.searched.push(row);
        }
        witnessed.executions += prover.executions;
        remove(&scratch)?;
        Ok(())
    }

    /// Executes a schedule that was found, from the beginning; stores and tells what it shows. `true`: proven.
    fn prove(
        &self,
        prover: &mut Prover<'_, S>,
        finding: &mut Finding,
        row: &mut Searched,
        shown: &Shown,
    ) -> Result<bool, PipelineError> {
        let session = self.store.proof(&finding.id);
        let proven = prover.force_schedule(finding, &shown.schedule, &session)?;
        let searched = shown.schedule.turns.len() - shown.turns;
        finding.notes.push(match row.found {
            Found::ByPrefix => format!("{}: {} turns", row.found.words(), shown.turns),
            _ => format!(
                "{}: {searched} turns behind a prefix of {} turns with {} accesses, after which one thread stands right before \
                    its access; {} schedules were tried",
                row.found.words(),
                shown.turns,
                shown.accesses,
                row.schedules
            ),
        });
        if proven && let Ok(loaded) = load(&folder_of(&shown.schedule, &session)) {
            let composer = Composer::new(&loaded, self.symbols, shown.schedule.quantum);
            (finding.steps, finding.earlier_steps) = steps(&composer);
            if row.found == Found::ByPrefix {
                row.prefix = loaded.header.accesses_executed;
            }
        }
        self.clean_up(&session)?;
        Ok(proven)
    }

    /// From where `base` ends on, to the two accesses.
    fn explorer_of(
        &self,
        planner: &Planner<'_>,
        trace: &Trace,
        pair: Pair,
        base: Schedule,
        settings: &WitnessSettings,
        forcing: &Forcing,
    ) -> Explorer<'_> {
        let thread = |event| Some(trace.event(event).thread.0);
        let sites = [pair.a1, pair.a2].map(|event| planner.code_place(trace.event(event).site));
        Explorer {
            program: self.program,
            forcing: forcing.clone(),
            base,
            folder: self.store.scratch(NAME),
            accesses: VisibleAccesses::Sites(sites.to_vec()),
            races: true,
            hold: if settings.exclude { thread(pair.a1) } else { None },
            prefer: if settings.hint { thread(pair.a2) } else { None },
            last: 0,
            steps: settings.steps,
            expected: Expected::AnyCode,
            jobs: settings.jobs,
            // What restores the program's world would have to do so in the middle of it.
            snapshots: settings.snapshots && self.program.runs_alone(),
        }
    }

    /// Searches a schedule that ends with both side by side. `duration`: what that takes is added to it.
    fn search_pair(
        &self,
        trace: &Trace,
        (pair, races): (Pair, &Races<'_>),
        settings: &WitnessSettings,
        forcing: &Forcing,
        until: Deadline,
        duration: &mut Duration,
    ) -> Result<PairSearched, PipelineError> {
        let begin = Instant::now();
        let planner = Planner::new(trace, 0);
        let built = prefix(trace, pair, settings.extend);
        if let Some(race) = built.race {
            let met = Pair { a1: pair.a1, a2: race };
            let schedule = planner.plan(&witness(met, built.order.clone()))?.schedule;
            *duration += begin.elapsed();
            let shown = Shown { turns: schedule.turns.len(), schedule, pair: met, accesses: 0 };
            return Ok(PairSearched {
                found: Found::ByPrefix,
                schedules: 0,
                from_snapshots: 0,
                refused: None,
                shown: Some(shown),
            });
        }
        let (mut schedules, mut from_snapshots, mut refused) = (0, 0, None);
        let mut orders = vec![built.order];
        if settings.extend {
            orders.push(prefix(trace, pair, false).order);
        }
        let mut exhausted = true;
        for order in orders {
            let base = standing(&planner, pair, order)?;
            let explorer = self.explorer_of(&planner, trace, pair, base, settings, forcing);
            let (mut search, may_exhaust) = settings.suffix.search(|| races.are_only(&explorer.accesses));
            let limits = Limits::new(settings.schedules.saturating_sub(schedules), until);
            let mut schedule = None;
            let mut diverged = false;
            let summary = explorer.search(search.as_mut(), limits, |_, observation| {
                if observation.failure == Some(Failure::Race) {
                    schedule = Some(of_log(&explorer.base, &observation.log, Some(observation.race)));
                    return Go::Stop;
                }
                // The prefix is not what the program does: nothing that follows says anything.
                diverged = observation.header.outcome == rashomon_trace::RunOutcome::Diverged;
                if diverged { Go::Stop } else { Go::On }
            })?;
            schedules += summary.schedules;
            from_snapshots += summary.from_snapshots;
            refused = refused.or(summary.refused);
            if let Some(schedule) = schedule {
                *duration += begin.elapsed();
                let turns = explorer.base.turns.len();
                let shown = Shown { schedule, pair, turns, accesses: accesses_of(explorer)? };
                return Ok(PairSearched { found: Found::BySearch, schedules, from_snapshots, refused, shown: Some(shown) });
            }
            exhausted &= may_exhaust && summary.exhausted && search.is_exhaustive();
            if !diverged {
                break;
            }
        }
        *duration += begin.elapsed();
        let found = if exhausted { Found::Exhausted } else { Found::Unknown };
        Ok(PairSearched { found, schedules, from_snapshots, refused, shown: None })
    }
}

/// Accesses that an execution makes up to where exploration begins.
fn accesses_of(explorer: Explorer<'_>) -> Result<u64, PipelineError> {
    let short = Explorer { steps: 1, ..explorer };
    let begin = Plan::of(Vec::new());
    Ok(short.execute(0, &begin)?.header.accesses_executed)
}

fn is_undecided(finding: &Finding) -> bool {
    finding.kind == FindingKind::DataRace
        && matches!(finding.verdict, Verdict::Suspected | Verdict::Predicted | Verdict::Diverged { .. })
}

fn candidate(pair: Pair) -> Candidate {
    let kind = CandidateKind::Race { first: pair.a1, second: pair.a2 };
    Candidate { kind, evidence: Evidence::Lockset, occurrences: 1 }
}

fn witness(pair: Pair, order: Vec<rashomon_event::EventIndex>) -> Witness {
    let candidate = CandidateKind::Race { first: pair.a1, second: pair.a2 };
    Witness { candidate, order, level: WitnessLevel::Causal }
}

/// The schedule after which t^a1 stands right before a1, and every other thread where the prefix ends for it.
fn standing(
    planner: &Planner<'_>,
    pair: Pair,
    order: Vec<rashomon_event::EventIndex>,
) -> Result<Schedule, rashomon_confirm::ConfirmError> {
    let both = Pair { a1: pair.a1, a2: pair.a1 };
    Ok(Schedule { goal: Goal::None, ..planner.plan(&witness(both, order))?.schedule })
}
