//! Provocation of a recording's targets: re-executions until every target is decided or the budget is spent.
//!
//! After the RaceHunter paper (Programming and Computer Software 50(6), 2024), §3. `docs/theory-provocation.md` says what is done differently, and why what
//! is reported is true. Every catch is a finding in the store before the next execution starts.

use crate::check::{Job, reproduce_command};
use crate::describe::Describer;
use crate::error::PipelineError;
use crate::progress::{Observer, Progress};
use crate::prove::load;
use crate::provoke_catch::{finding_of, place_at};
pub use crate::provoke_plan::{Decision, Pair, Strategy};
use crate::provoke_plan::{Plan, Round};
use crate::run::RunRecord;
use crate::symbols::Symbols;
use rashomon_confirm::execution::OUTPUT_FILE;
use rashomon_confirm::provoke::Setting;
use rashomon_confirm::{Ending, Output, ProvokedRun, provoke};
use rashomon_event::provocation::PROVOCATION_VERSION;
use rashomon_event::{CodePlace, Evidence, Finding, First, Provocation};
use rashomon_trace::{After, Catch, LoadedTrace, ProvokeRequest, Watched};
use std::path::Path;
use std::time::{Duration, Instant};

/// How much longer than the monitored execution a thread is held at most (the paper's k).
const SLOWER: f64 = 1.5;
const SHORTEST_HOLD: Duration = Duration::from_millis(100);
/// At a break-point that was drawn.
const BREAK: Duration = Duration::from_millis(10);
/// How much longer than the recorded execution one may take, holds apart, and what it may take at least.
const SERIAL: u32 = 3;
const LEAST: Duration = Duration::from_secs(3);
/// Executions in which the two sides of a proven pair are to meet once more in a given order.
const ORDER_TRIES: u32 = 10;
/// Outputs are compared up to this length.
const MOST_OUTPUT: u64 = 64 << 20;

/// How to provoke.
#[derive(Clone, Debug)]
pub struct ProvokeSettings {
    /// Wall-clock time of all executions together.
    pub budget: Duration,
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
    /// Executions, those that compare orders included.
    pub executions: u64,
    pub holds: u64,
    /// Until every target was decided; and time spent in holds.
    pub deciding: Duration,
    pub held: Duration,
}

/// One provocation of one recording.
struct Campaign<'c, 'j, S: ?Sized> {
    job: &'c Job<'j, S>,
    run: &'c RunRecord,
    settings: &'c ProvokeSettings,
    loaded: &'c LoadedTrace,
    recorded: Describer<'c, S>,
    deadline: Instant,
    /// Of the recorded execution.
    native: Duration,
    hold: Duration,
    plan: Plan,
    known: Vec<[CodePlace; 2]>,
    tally: ProvokeTally,
    proven: Vec<Proven>,
}

/// A finding, and what brought it about.
struct Proven {
    finding: Finding,
    provocation: Provocation,
}

impl<S: Symbols + ?Sized> Job<'_, S> {
    /// Provokes the targets of the first recording of a store.
    pub fn provoke_all(
        &self,
        run: &RunRecord,
        settings: &ProvokeSettings,
        observer: &mut dyn Observer,
    ) -> Result<ProvokeTally, PipelineError> {
        let recording = run.recordings.first();
        let loaded = load(&self.store.recording(0))?;
        let native = Duration::from_millis(recording.map_or(0, |recording| recording.milliseconds));
        let hold = settings.hold.unwrap_or_else(|| match settings.strategy {
            Strategy::Random => BREAK,
            _ => native.mul_f64(SLOWER).max(SHORTEST_HOLD),
        });
        let identities = rashomon_trace::provoked::identities(&self.store.recording(0))?;
        let plan = Plan::new(&loaded.trace, &identities, settings.strategy, settings.with_ordered);
        let mut campaign = Campaign {
            job: self,
            run,
            settings,
            loaded: &loaded,
            recorded: Describer::new(&loaded.trace, &loaded.sync_objects, self.symbols),
            deadline: Instant::now() + settings.budget,
            native,
            hold,
            tally: ProvokeTally {
                targets: plan.pairs.len() as u64,
                merged: plan.pairs.iter().map(|pair| pair.target.occurrences).sum(),
                ..ProvokeTally::default()
            },
            plan,
            known: Vec::new(),
            proven: Vec::new(),
        };
        let start = Instant::now();
        campaign.decide(observer)?;
        campaign.tally.deciding = start.elapsed();
        if settings.orders {
            campaign.compare_orders(observer)?;
        }
        let scratch = self.store.scratch();
        if scratch.exists() {
            std::fs::remove_dir_all(&scratch).map_err(PipelineError::io("remove", &scratch))?;
        }
        Ok(campaign.finish())
    }
}

impl<S: Symbols + ?Sized> Campaign<'_, '_, S> {
    /// Executes until every target is decided.
    fn decide(&mut self, observer: &mut dyn Observer) -> Result<(), PipelineError> {
        // Executions at the same time would restore the world under each other's feet.
        let jobs = if self.job.program.before_each.is_some() { 1 } else { self.settings.jobs.max(1) };
        for number in 0.. {
            let left = match self.settings.executions {
                0 => u64::MAX,
                most => most.saturating_sub(self.tally.executions),
            };
            if self.plan.is_done() || self.remaining().is_zero() || left == 0 {
                break;
            }
            let rounds = self.plan.rounds(number, jobs.min(usize::try_from(left).unwrap_or(usize::MAX)));
            observer.progress(Progress::Provoking { execution: self.tally.executions + 1, open: self.plan.open() });
            for (round, run) in rounds.iter().zip(self.execute_all(&rounds)?) {
                self.tally.executions += 1;
                self.tally.holds += run.provoked.descriptors.iter().map(|state| state.holds).sum::<u64>();
                self.tally.held += run.provoked.held;
                for catch in &run.provoked.catches {
                    self.caught(round, &run, catch, observer)?;
                }
                self.plan.learn(round, &run.provoked);
            }
        }
        Ok(())
    }

    fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// The executions of one round, at the same time.
    fn execute_all(&self, rounds: &[Round]) -> Result<Vec<ProvokedRun>, PipelineError> {
        let scratch = self.job.store.scratch();
        let after = if self.settings.stop { After::Stop } else { After::Continue };
        let (program, modules, known, hold) = (self.job.program, &self.plan.modules, &self.known, self.hold);
        let setting = self.setting(after, Output::Discard);
        let one = |number: usize, round: &Round| {
            let request = ProvokeRequest {
                modules,
                watched: &round.watched,
                known,
                hold,
                holds: round.all_holds(hold),
                favoured: round.favoured.as_ref(),
                first: First::Either,
            };
            Ok(provoke(program, &request, &scratch.join(format!("provoke-{number}")), &setting)?)
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
        let limit = self.job.settings.forced_limit.unwrap_or(own).min(self.remaining().max(Duration::from_millis(100)));
        Setting { input: forcing.input, output, limit, after, processes: forcing.processes }
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
        if self.known.contains(&sites) || self.known.contains(&[sites[1], sites[0]]) {
            return Ok(());
        }
        self.known.push(sites);
        let same = |pair: &Pair| pair.places == sites || pair.places == [sites[1], sites[0]];
        let mut evidence = Evidence::Conflict;
        let (mut subject, mut occurrences) = (None, 1);
        for pair in self.plan.pairs.iter_mut().filter(|pair| same(pair)) {
            pair.decision = Decision::Proven;
            evidence = pair.target.evidence;
            occurrences = pair.target.occurrences;
            let accesses = [pair.target.first, pair.target.second].map(|event| self.loaded.trace.event(event).access());
            if let [Some(one), Some(other)] = accesses {
                let (at, size) = crate::compose::common_bytes(&one, &other);
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
        if let Some(known) = self.proven.iter_mut().find(|proven| proven.finding.id == finding.id) {
            // The read and the write of one `x++`, say.
            known.finding.occurrences += finding.occurrences;
            return Ok(());
        }
        self.job.store.write_finding(&finding)?;
        observer.progress(Progress::Decided(&finding));
        self.proven.push(Proven { finding, provocation });
        Ok(())
    }

    /// Lets each proven pair meet twice more, each side going first once, and says what came of it.
    fn compare_orders(&mut self, observer: &mut dyn Observer) -> Result<(), PipelineError> {
        let session = self.job.store.scratch().join("order");
        for index in 0..self.proven.len() {
            let mut outcomes = Vec::new();
            for first in [First::Held, First::Arrived] {
                let provocation = self.proven[index].provocation.clone();
                let outcome = self.in_order(&provocation, first, &session)?;
                outcomes.push(outcome);
            }
            let sides: Vec<String> = self.proven[index].finding.sides.iter().map(side_words).collect();
            let note = match outcomes.as_slice() {
                [Some(one), Some(other)] if one == other => format!("both orders of the accesses end alike: {}", one.words()),
                [Some(one), Some(other)] => {
                    let what = if one.ending == other.ending { ", with different output" } else { "" };
                    format!("the order matters: {} first: {}; {} first: {}{what}", sides[0], one.words(), sides[1], other.words())
                }
                _ => continue,
            };
            let proven = &mut self.proven[index];
            proven.finding.notes.push(note);
            self.job.store.write_finding(&proven.finding)?;
            observer.progress(Progress::Decided(&proven.finding));
        }
        Ok(())
    }

    /// What comes of the execution in which the pair met and this side went first; `None` if it did not meet again.
    fn in_order(&mut self, provocation: &Provocation, first: First, session: &Path) -> Result<Option<Ended>, PipelineError> {
        for _ in 0..ORDER_TRIES {
            if self.remaining().is_zero() {
                return Ok(None);
            }
            let watched = [Watched { descriptor: provocation.held.clone(), holds: 1 }];
            let request = request_of(provocation, &watched, first);
            let run = provoke(self.job.program, &request, session, &self.setting(After::Continue, Output::Keep))?;
            self.tally.executions += 1;
            if met(&run, provocation) {
                return Ok(Some(Ended { ending: run.execution.ending, output: output_of(session)? }));
            }
        }
        Ok(None)
    }

    fn finish(mut self) -> ProvokeTally {
        let count = |decision| self.plan.pairs.iter().filter(|pair| pair.decision == decision).count() as u64;
        self.tally.proven = count(Decision::Proven);
        self.tally.not_provoked = count(Decision::NotProvoked);
        self.tally.not_reached = count(Decision::NotReached);
        self.tally.open = count(Decision::Open);
        self.tally
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
    }
}

/// Whether the pair stood side by side in that execution.
pub fn met(run: &ProvokedRun, provocation: &Provocation) -> bool {
    let place = |site| place_at(&run.modules, &provocation.modules, site);
    let wanted = [provocation.held.site, provocation.arriving];
    run.provoked.catches.iter().any(|catch| {
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

/// What can be seen of an execution from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ended {
    ending: Ending,
    output: Vec<u8>,
}

impl Ended {
    fn words(&self) -> String {
        match self.ending {
            Ending::Code(code) => format!("exit code {code}"),
            Ending::Signal(signal) => format!("signal {signal}"),
            Ending::TimedOut => "it does not end".into(),
        }
    }
}

fn output_of(session: &Path) -> Result<Vec<u8>, PipelineError> {
    use std::io::Read as _;
    let path = session.join(OUTPUT_FILE);
    let mut output = Vec::new();
    let file = std::fs::File::open(&path).map_err(PipelineError::io("open", &path))?;
    file.take(MOST_OUTPUT).read_to_end(&mut output).map_err(PipelineError::io("read", &path))?;
    Ok(output)
}
