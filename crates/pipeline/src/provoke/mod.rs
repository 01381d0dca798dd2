//! Provocation of a recording's targets: re-executions until every target is decided or the budget is spent.
//!
//! After the RaceHunter paper (Programming and Computer Software 50(6), 2024), §3. `docs/theory-provocation.md` says what is
//! done differently, and why what is reported is true. Every catch is a finding in the store before the next execution starts.

mod blocked;
mod catch;
mod drawn;
mod orders;
pub(crate) mod plan;
mod vary;

use crate::check::Job;
use crate::check::leads::race_places;
use crate::error::PipelineError;
use crate::findings::describe::Describer;
use crate::findings::symbols::Symbols;
use crate::progress::{Observer, Progress};
use crate::provoke::blocked::{Blocked, Told};
use crate::provoke::catch::{finding_of, place_at};
use crate::provoke::plan::{HOLDS, Plan, Round};
pub use crate::provoke::plan::{Pair, Strategy, TargetState};
use crate::provoke::vary::Proven;
pub(crate) use crate::provoke::vary::{Known, varied_after};
use crate::store::reproduce_command;
use crate::store::run::RunRecord;
use rashomon_confirm::provoke::Setting;
use rashomon_confirm::{Output, ProvokedRun, Time, provoke};
use rashomon_event::library::is_library_at_work;
use rashomon_event::provocation::PROVOCATION_VERSION;
use rashomon_event::{Deadline, Descriptor, EventIndex, Evidence, First, Provocation};
use rashomon_order::targets::Target;
use rashomon_trace::{After, Catch, LoadedTrace, ProvokeRequest, Watched};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Of the engine.
pub const NAME: &str = "provoke";

/// How much longer than the monitored execution a thread is held at most (the paper's k).
const SLOWER: f64 = 1.5;
const SHORTEST_HOLD: Duration = Duration::from_millis(100);
/// At a break-point that was drawn.
pub(crate) const BREAK: Duration = Duration::from_millis(10);
/// How much longer than the recorded execution one may take, holds apart, and what it may take at least.
const SERIAL: u32 = 3;
const LEAST: Duration = Duration::from_secs(3);
/// Executions in which the two sides of a proven pair are to meet once more in a given order.
const ORDER_TRIES: u32 = 10;

/// How to provoke.
#[derive(Clone, Debug)]
pub struct ProvokeSettings {
    /// The most executions; 0: no limit.
    pub executions: u64,
    /// Longest time that a thread is held; `None`: from the duration of the recorded execution.
    pub hold: Option<Duration>,
    /// Executions at the same time.
    pub jobs: usize,
    /// Whether both orders of each proven pair are executed and compared.
    pub orders: bool,
    /// End each execution when nothing is left to be tried in it.
    pub stop: bool,
    pub strategy: Strategy,
    /// Also try pairs that the creation and joining of threads orders.
    pub with_ordered: bool,
    /// When every target is decided, go on with other schedules until the budget is spent.
    pub whole_budget: bool,
    /// Otherwise go on for so long, where an execution takes less: what was not provoked may have been so by chance, and what was
    /// not recorded is no target.
    pub second_look: Duration,
    /// Also try what a language's library does with data of its own, where something orders it.
    pub library: bool,
}

impl ProvokeSettings {
    /// Whether executions are varied when every target is decided.
    pub(crate) const fn varies(&self) -> bool {
        self.whole_budget || !self.second_look.is_zero()
    }

    /// A few executions for what nobody else could decide.
    pub const fn of_check(jobs: usize) -> Self {
        Self {
            executions: 30,
            hold: None,
            jobs,
            orders: false,
            stop: true,
            strategy: Strategy::Targets,
            with_ordered: false,
            whole_budget: false,
            second_look: Duration::ZERO,
            library: false,
        }
    }
}

/// What became of the targets.
#[derive(Clone, Debug, Default)]
pub struct ProvokeTally {
    pub targets: u64,
    /// Pairs of accesses (by thread, place, bytes and what creation and joining tell apart) that they were merged from.
    pub merged: u64,
    pub proven: u64,
    pub not_provoked: u64,
    pub not_reached: u64,
    /// Undecided when the budget was spent.
    pub open: u64,
    /// Executions, those that compare orders and those that were varied included.
    pub executions: u64,
    /// Further recordings that the targets are from, and varied executions.
    pub recordings: u64,
    pub varied: u64,
    pub holds: u64,
    /// Until every target was decided; and time spent in holds.
    pub deciding: Duration,
    pub held: Duration,
    /// What else the report has to say.
    pub notes: Vec<String>,
}

/// One provocation of one recording.
pub(crate) struct Campaign<'c, 'j, S: ?Sized> {
    job: &'c Job<'j, S>,
    run: &'c RunRecord,
    settings: &'c ProvokeSettings,
    loaded: &'c LoadedTrace,
    recorded: Describer<'c, S>,
    deadline: Deadline,
    /// Of the recorded execution.
    native: Duration,
    hold: Duration,
    plan: Plan,
    /// What earlier campaigns had decided of the plan's pairs.
    before: Vec<TargetState>,
    known: Known,
    /// Executions of earlier campaigns.
    made: u64,
    /// Behind it no execution begins that is as long as those before.
    second_look: Deadline,
    tally: ProvokeTally,
}

impl ProvokeTally {
    /// How many targets are decided so.
    fn of(&mut self, decision: TargetState) -> Option<&mut u64> {
        match decision {
            TargetState::Open => None,
            TargetState::Proven => Some(&mut self.proven),
            TargetState::NotProvoked => Some(&mut self.not_provoked),
            TargetState::NotReached => Some(&mut self.not_reached),
        }
    }

    fn add(&mut self, other: &Self) {
        self.targets += other.targets;
        self.merged += other.merged;
        self.executions += other.executions;
        self.varied += other.varied;
        self.holds += other.holds;
        self.deciding += other.deciding;
        self.held += other.held;
        self.notes.extend(other.notes.iter().cloned());
    }
}

/// There was no time to find all pairs of a recording.
const CUT_SHORT: &str =
    "the recording is long: not all pairs of accesses were found to hold threads at; a larger --budget gives more";

impl<'c, 'j, S: Symbols + ?Sized> Campaign<'c, 'j, S> {
    /// `made`: executions before this campaign.
    pub(crate) fn new(
        (job, run, settings): (&'c Job<'j, S>, &'c RunRecord, &'c ProvokeSettings),
        (session, loaded): (&Path, &'c LoadedTrace),
        deadline: Deadline,
        mut known: Known,
        made: u64,
    ) -> Result<Self, PipelineError> {
        let native = Duration::from_millis(run.recordings.first().map_or(0, |recording| recording.milliseconds));
        let hold = settings.hold.unwrap_or_else(|| match settings.strategy {
            Strategy::Random => BREAK,
            _ => native.mul_f64(SLOWER).max(SHORTEST_HOLD),
        });
        let identities = rashomon_trace::provoked::identities(session)?;
        // Half of the time is for what is found.
        let looking = deadline.less(deadline.limit(Duration::MAX) / 2);
        let recorded = Describer::new(&loaded.trace, &loaded.sync_objects, job.symbols).with_frames(&loaded.frames);
        let mut plan = Plan::new(&loaded.trace, &identities, settings, looking);
        if !settings.library {
            let at_work = |event: EventIndex| {
                let event = loaded.trace.event(event);
                is_library_at_work(&recorded.stack(event.site, event.context))
            };
            let is_doubtful = |target: &Target| target.evidence != Evidence::HappensBefore;
            plan.pairs.retain(|Pair { target, .. }| !(is_doubtful(target) && at_work(target.first) && at_work(target.second)));
        }
        let shard = job.settings.shard;
        plan.pairs.retain(|pair| shard.owns_places(pair.places));
        plan.seeds = shard.seeds();
        known.enter(&mut plan);
        let before: Vec<TargetState> = plan.pairs.iter().map(|pair| pair.decision).collect();
        let open = || plan.pairs.iter().filter(|pair| pair.decision == TargetState::Open);
        let tally = ProvokeTally {
            targets: open().count() as u64,
            merged: open().map(|pair| pair.target.occurrences).sum(),
            notes: (!plan.complete).then(|| CUT_SHORT.to_owned()).into_iter().collect(),
            ..ProvokeTally::default()
        };
        Ok(Self {
            job,
            run,
            settings,
            loaded,
            recorded,
            deadline,
            native,
            hold,
            plan,
            before,
            known,
            made,
            second_look: Deadline::NEVER,
            tally,
        })
    }

    fn blocked(&self) -> Blocked<'c, 'j, S> {
        Blocked { job: self.job, run: self.run, deadline: self.deadline }
    }

    fn note(&mut self, told: Told) {
        self.tally.executions += told.executions;
        self.tally.notes.extend(told.note);
    }

    /// Executions that there may still be.
    fn left(&self) -> u64 {
        match self.settings.executions {
            0 => u64::MAX,
            most => most.saturating_sub(self.made + self.tally.executions),
        }
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.remaining().is_zero() || self.left() == 0
    }

    /// Whether more time could decide more.
    pub(crate) fn has_more(&self) -> bool {
        self.left() > 0 && self.has_targets()
    }

    pub(crate) fn has_targets(&self) -> bool {
        self.plan.open() > 0
    }

    /// Executes until every target is decided, and what is proven in both orders.
    pub(crate) fn decide_targets(&mut self, observer: &mut dyn Observer) -> Result<(), PipelineError> {
        let blocked = self.blocked().store(self.loaded, &mut self.known.blocked, observer)?;
        self.note(blocked);
        let start = Instant::now();
        self.decide(observer)?;
        self.tally.deciding = start.elapsed();
        self.repeat_proven(observer)
    }

    fn jobs(&self) -> usize {
        // Executions at the same time would restore the world under each other's feet.
        if self.job.program.runs_alone() { self.settings.jobs.max(1) } else { 1 }
    }

    /// Executes until every target is decided.
    fn decide(&mut self, observer: &mut dyn Observer) -> Result<(), PipelineError> {
        for number in 0.. {
            if self.plan.is_done() || self.is_spent() {
                break;
            }
            let share = self.jobs().min(usize::try_from(self.left()).unwrap_or(usize::MAX));
            let rounds = self.plan.rounds(number, share);
            for (round, run) in rounds.iter().zip(self.execute(&rounds, observer)?) {
                self.plan.learn(round, &run.provoked);
            }
        }
        Ok(())
    }

    /// Executes, and stores what is caught.
    fn execute(&mut self, rounds: &[Round], observer: &mut dyn Observer) -> Result<Vec<ProvokedRun>, PipelineError> {
        observer.progress(Progress::Provoking { execution: self.made + self.tally.executions + 1, open: self.plan.open() });
        let runs = self.execute_all(rounds)?;
        for (number, (round, run)) in rounds.iter().zip(&runs).enumerate() {
            let blocked = self.blocked().store_from(&self.session(number), &mut self.known.blocked, observer)?;
            self.note(blocked);
            self.tally.executions += 1;
            self.tally.holds += run.provoked.descriptors.iter().map(|state| state.holds).sum::<u64>();
            self.tally.held += run.provoked.held;
            for catch in &run.provoked.catches {
                self.caught(round, run, catch, observer)?;
            }
        }
        Ok(runs)
    }

    /// Of one of the executions that are made at the same time.
    fn session(&self, number: usize) -> PathBuf {
        self.job.store.scratch(NAME).join(format!("provoke-{number}"))
    }

    fn remaining(&self) -> Duration {
        self.deadline.limit(Duration::MAX)
    }

    /// The executions of one round, at the same time.
    fn execute_all(&self, rounds: &[Round]) -> Result<Vec<ProvokedRun>, PipelineError> {
        let after = if self.settings.stop { After::Stop } else { After::Continue };
        let (program, modules, known, usual) = (self.job.program, &self.plan.modules, self.known.proven.as_slice(), self.hold);
        let setting = self.setting(after, Output::Discard);
        let sessions: Vec<PathBuf> = (0..rounds.len()).map(|number| self.session(number)).collect();
        let one = |number: usize, round: &Round| {
            let hold = round.hold.unwrap_or(usual);
            let request = ProvokeRequest {
                modules,
                watched: &round.watched,
                known,
                hold,
                holds: round.all_holds(hold),
                favoured: round.favoured.as_ref(),
                first: First::Either,
                recorded: false,
            };
            Ok(provoke(program, &request, &sessions[number], &setting)?)
        };
        if let [round] = rounds {
            return Ok(vec![one(0, round)?]);
        }
        std::thread::scope(|scope| {
            let one = &one;
            let handles: Vec<_> =
                rounds.iter().enumerate().map(|(number, round)| scope.spawn(move || one(number, round))).collect();
            let results = handles.into_iter().map(|handle| match handle.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            results.collect()
        })
    }

    fn setting(&self, after: After, output: Output) -> Setting {
        let forcing = self.job.forcing(self.run);
        // A race may make the program hang.
        let own = self.native * SERIAL + all_holds(self.hold) + LEAST;
        let limit = self.job.settings.forced_limit.unwrap_or(own);
        let until = Deadline::within(self.remaining().max(Duration::from_millis(100)));
        Setting { input: forcing.input, output, time: Time { limit: Some(limit), until }, after, processes: forcing.processes }
    }

    /// A catch is a proof. It goes into the store at once.
    fn caught(
        &mut self,
        round: &Round,
        run: &ProvokedRun,
        catch: &Catch,
        observer: &mut dyn Observer,
    ) -> Result<(), PipelineError> {
        let sites = [catch.held.site, catch.arrived.site].map(|site| place_at(&run.modules, &self.plan.modules, site));
        if self.known.proven.contains(&sites) || self.known.proven.contains(&[sites[1], sites[0]]) {
            return Ok(());
        }
        self.known.proven.push(sites);
        let same = |pair: &Pair| pair.places == sites || pair.places == [sites[1], sites[0]];
        let mut evidence = Evidence::Conflict;
        let (mut subject, mut occurrences) = (None, 1);
        for pair in self.plan.pairs.iter_mut().filter(|pair| same(pair)) {
            pair.decision = TargetState::Proven;
            evidence = pair.target.evidence;
            occurrences = pair.target.occurrences;
            let accesses = [pair.target.first, pair.target.second].map(|event| self.loaded.trace.access(event));
            if let [Some(one), Some(other)] = accesses {
                let (at, size) = crate::findings::compose::common_bytes(&one, &other);
                subject = Some(self.recorded.data(at, size));
            }
        }
        let unforeseen = subject.is_none();
        let mut finding = finding_of(&run.modules, catch, self.job.symbols, &self.recorded, evidence, subject);
        finding.occurrences = occurrences;
        if unforeseen {
            finding
                .notes
                .push("these two accesses do not meet in the recorded execution: holding one made the other happen".into());
        }
        let known_by_others = race_places(&finding).is_some_and(|places| self.known.by_others.contains(&places));
        if known_by_others || self.job.store.has_proof(&finding.id) {
            // Another engine's proof says more: which object it is, and the whole schedule.
            return Ok(());
        }
        let mut held = round.watched[catch.descriptor].descriptor.clone();
        held.ordinal = catch.ordinal;
        let provocation = Provocation {
            version: PROVOCATION_VERSION,
            modules: self.plan.modules.clone(),
            held,
            arriving: sites[1],
            favoured: round.favoured.clone(),
            hold_milliseconds: u64::try_from(self.hold.as_millis()).unwrap_or(u64::MAX),
        };
        finding.provocation = Some(provocation.clone());
        finding.reproduce = Some(reproduce_command(&self.job.settings.tool, self.job.store, &finding.id));
        if let Some(known) = self.known.findings.iter_mut().find(|proven| proven.finding.id == finding.id) {
            // The read and the write of one `x++`, say.
            known.finding.occurrences += finding.occurrences;
            return Ok(());
        }
        self.job.store.write_finding(&finding)?;
        observer.progress(Progress::Decided(&finding));
        self.known.findings.push(Proven { finding, provocation });
        Ok(())
    }

    /// Adds what became of the plan's pairs to what earlier campaigns know and tell.
    pub(crate) fn finish(mut self, told: &mut ProvokeTally) -> Known {
        told.add(&self.tally);
        for (pair, before) in self.plan.pairs.iter().zip(self.before) {
            if before == pair.decision {
                told.open += u64::from(before == TargetState::Open);
                continue;
            }
            if let Some(count) = told.of(before) {
                *count = count.saturating_sub(1);
            }
            if let Some(count) = told.of(pair.decision) {
                *count += 1;
            }
        }
        self.known.learn(&self.plan);
        self.known
    }
}

/// How long all holds of an execution may last: no execution is to take much longer than its threads one after the other.
fn all_holds(hold: Duration) -> Duration {
    hold * 2 + Duration::from_secs(1)
}

/// The request that brings a proven pair about again.
pub fn request_of<'a>(provocation: &'a Provocation, watched: &'a [Watched], first: First) -> ProvokeRequest<'a> {
    let hold = Duration::from_millis(provocation.hold_milliseconds);
    ProvokeRequest {
        modules: &provocation.modules,
        watched,
        known: &[],
        hold,
        holds: all_holds(hold),
        favoured: provocation.favoured.as_ref(),
        first,
        recorded: false,
    }
}

/// Where threads are held in the execution of that number, from 1, that is to bring a proven pair about again: where and when it
/// was; at any time, as threads do not run alike; and, every third time, at either side, whoever comes.
pub fn watched_again(provocation: &Provocation, number: u32) -> Vec<Watched> {
    let held = &provocation.held;
    match number % 3 {
        1 => vec![Watched { descriptor: held.clone(), holds: 1 }],
        2 => vec![Watched { descriptor: Descriptor { ordinal: 0, ..held.clone() }, holds: HOLDS }],
        _ => {
            let anybody = |site| Descriptor { thread: None, identity: 0, site, frames: Vec::new(), ordinal: 0 };
            let mut sites = vec![held.site, provocation.arriving];
            sites.dedup();
            sites.into_iter().map(|site| Watched { descriptor: anybody(site), holds: HOLDS }).collect()
        }
    }
}

/// Whether the pair stood side by side in that execution.
pub fn met(run: &ProvokedRun, provocation: &Provocation) -> bool {
    meeting(run, provocation).is_some()
}

/// Where it did.
fn meeting<'r>(run: &'r ProvokedRun, provocation: &Provocation) -> Option<&'r Catch> {
    let place = |site| place_at(&run.modules, &provocation.modules, site);
    let wanted = [provocation.held.site, provocation.arriving];
    run.provoked.catches.iter().find(|catch| {
        let sites = [place(catch.held.site), place(catch.arrived.site)];
        sites == wanted || [sites[1], sites[0]] == wanted
    })
}

fn side_words(side: &rashomon_event::Side) -> String {
    let line = side.stack.iter().find_map(|frame| frame.line);
    match line {
        Some(line) => format!("{} in line {line}", side.action),
        None => side.action.clone(),
    }
}
