//! Batches of a search: its plans are drawn while others are executed, several at a time where the search allows it.
//!
//! What is drawn depends on the search alone, not on which execution ends first: a plan is drawn as soon as all plans but the
//! last few have been learned, in their order.

use crate::error::ExploreError;
use crate::explorer::{Explorer, Go, Limits, Observation, Standing, Summary};
use crate::file::Refusal;
use crate::search::{Plan, Search};
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// How long a batch goes on; it executes at least one plan.
const BATCH: Duration = Duration::from_millis(50);

type Observed = Result<Observation, ExploreError>;
type Observer<'o> = dyn FnMut(&Plan, &Observation) -> Go + 'o;

/// A search that goes on.
#[derive(Default)]
pub struct Running {
    pub summary: Summary,
    /// By slot.
    snapshots: Vec<Option<Standing>>,
    /// Why there is none. Of a search that ends with its first execution nobody is told: that one began at the beginning anyway.
    refused: Option<Refusal>,
    /// Plans that were drawn and have not been learned, in their order.
    drawn: VecDeque<Plan>,
}

impl Running {
    /// Whether every execution begins at the beginning, as far as is known.
    pub const fn is_without_snapshots(&self) -> bool {
        self.refused.is_some()
    }

    /// From now on every execution begins at the beginning.
    #[must_use]
    pub fn without_snapshots(self, why: Refusal) -> Self {
        let summary = Summary { exhausted: false, refused: Some(why), ..self.summary };
        Self { summary, refused: Some(why), snapshots: Vec::new(), drawn: VecDeque::new() }
    }
}

/// What a slot is given, and what comes of it: the plan's number in the batch, and whether it began at a snapshot.
struct Work {
    number: usize,
    plan: Plan,
}
struct Done {
    slot: usize,
    number: usize,
    plan: Plan,
    /// Or the execution panicked.
    observed: std::thread::Result<Observed>,
    from_snapshot: bool,
}

/// A batch in progress. Plans have numbers from 0.
struct Batch<'b> {
    explorer: &'b Explorer<'b>,
    search: &'b mut dyn Search,
    limits: Limits,
    summary: &'b mut Summary,
    until: Instant,
    /// Not yet handed out, the first of which has the number `handed`.
    drawn: &'b mut VecDeque<Plan>,
    handed: usize,
    learned: usize,
    done: BTreeMap<usize, (Plan, Observed)>,
    /// Plans that were not learned at the end.
    left: BTreeMap<usize, Plan>,
}

/// Slots, and what they are doing.
struct Slots {
    work: Vec<Sender<Work>>,
    idle: Vec<usize>,
    results: Receiver<Done>,
}

impl Explorer<'_> {
    /// Executes what a search plans until it has no more, a limit is reached, or `observe` has seen enough. Observations come in
    /// the order of plans, whatever ends first.
    pub fn search(
        &self,
        search: &mut dyn Search,
        limits: Limits,
        mut observe: impl FnMut(&Plan, &Observation) -> Go,
    ) -> Result<Summary, ExploreError> {
        let mut running = Running::default();
        while self.batch(search, limits, &mut running, &mut observe)? == Go::On {}
        Ok(running.summary)
    }

    /// The next plans of a search. [`Go::Stop`]: it has no more, a limit is reached, or `observe` has seen enough. While
    /// `observe` looks at a failure, nothing else is executed.
    pub fn batch(
        &self,
        search: &mut dyn Search,
        limits: Limits,
        running: &mut Running,
        observe: &mut Observer<'_>,
    ) -> Result<Go, ExploreError> {
        let begin = Instant::now();
        let go = self.next_batch(search, limits, running, observe);
        running.summary.duration += begin.elapsed();
        go
    }

    fn next_batch(
        &self,
        search: &mut dyn Search,
        limits: Limits,
        Running { summary, snapshots, refused, drawn }: &mut Running,
        observe: &mut Observer<'_>,
    ) -> Result<Go, ExploreError> {
        let mut batch = Batch {
            explorer: self,
            search,
            limits,
            summary,
            until: Instant::now() + BATCH,
            drawn,
            handed: 0,
            learned: 0,
            done: BTreeMap::new(),
            left: BTreeMap::new(),
        };
        batch.draw();
        let slots = batch.at_once().min(batch.drawn.len());
        if limits.until.is_over() || slots == 0 {
            let left = batch.schedules_left();
            summary.exhausted = !limits.until.is_over() && left > 0 && search.is_exhaustive();
            return Ok(Go::Stop);
        }
        let went = self.stand_all(slots, snapshots, refused, &mut batch).and_then(|stopped| {
            if batch.summary.schedules + slots as u64 > 1 {
                batch.summary.refused = *refused;
            }
            snapshots.resize_with(snapshots.len().max(slots), || None);
            match stopped {
                Go::Stop => Ok(Go::Stop),
                Go::On if slots == 1 => batch.one_by_one(&mut snapshots[0], observe),
                Go::On => std::thread::scope(|scope| {
                    let slots = self.begin_slots(scope, &mut snapshots[..slots]);
                    batch.go_on(slots, observe)
                }),
            }
        });
        batch.put_back();
        went
    }

    /// Processes that stand where exploration begins. If there can be none, the first plan has been executed instead.
    fn stand_all(
        &self,
        slots: usize,
        snapshots: &mut Vec<Option<Standing>>,
        refused: &mut Option<Refusal>,
        batch: &mut Batch<'_>,
    ) -> Result<Go, ExploreError> {
        while self.snapshots && refused.is_none() && snapshots.len() < slots {
            let Some(plan) = batch.drawn.front() else { break };
            match self.stand(snapshots.len(), plan) {
                Err(error) if error.is_of_nothing() && self.forcing.deadline.is_over() => return Ok(Go::Stop),
                Err(error) => return Err(error),
                Ok(Ok(snapshot)) => snapshots.push(Some(snapshot)),
                Ok(Err(observation)) => {
                    *refused = Some(observation.refused);
                    if let Some(Work { number, plan }) = batch.hand_out() {
                        batch.done.insert(number, (plan, Ok(observation)));
                    }
                }
            }
        }
        Ok(Go::On)
    }

    fn begin_slots<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, snapshots: &'scope mut [Option<Standing>]) -> Slots {
        let (tell, results) = channel();
        let mut work = Vec::new();
        for (slot, snapshot) in snapshots.iter_mut().enumerate() {
            let (give, given) = channel::<Work>();
            let tell = tell.clone();
            work.push(give);
            scope.spawn(move || {
                for Work { number, plan } in given {
                    let observed = catch_unwind(AssertUnwindSafe(|| self.execute_from(slot, &plan, snapshot)));
                    let from_snapshot = snapshot.is_some();
                    if tell.send(Done { slot, number, plan, observed, from_snapshot }).is_err() {
                        return;
                    }
                }
            });
        }
        Slots { idle: (0..work.len()).rev().collect(), work, results }
    }
}

impl Slots {
    fn are_busy(&self) -> bool {
        self.idle.len() < self.work.len()
    }
}

impl Batch<'_> {
    fn at_once(&self) -> usize {
        let together = self.search.parallel() && self.explorer.program.runs_alone();
        if together { self.explorer.jobs.max(1) } else { 1 }
    }

    fn schedules_left(&self) -> u64 {
        self.limits.schedules.saturating_sub(self.summary.schedules)
    }

    /// As many plans as may be drawn now.
    fn draw(&mut self) {
        let at_once = self.at_once();
        // As many again while those are executed.
        let at_most = if at_once > 1 { 2 * at_once } else { 1 };
        let most = usize::try_from(self.schedules_left()).unwrap_or(usize::MAX).min(at_most);
        while self.handed - self.learned + self.drawn.len() < most {
            match self.search.next() {
                Some(plan) => self.drawn.push_back(plan),
                None => break,
            }
        }
    }

    /// The next plan to be executed, unless the batch is over.
    fn hand_out(&mut self) -> Option<Work> {
        let is_over = self.limits.until.is_over()
            || self.handed > 0 && (Instant::now() >= self.until || self.handed >= self.limits.at_a_time);
        let plan = if is_over { None } else { self.drawn.pop_front() }?;
        self.handed += 1;
        Some(Work { number: self.handed - 1, plan })
    }

    fn one_by_one(&mut self, snapshot: &mut Option<Standing>, observe: &mut Observer<'_>) -> Result<Go, ExploreError> {
        loop {
            let (plan, observed) = match self.done.remove(&self.learned) {
                Some(done) => done,
                None => {
                    let Some(Work { plan, .. }) = self.hand_out() else { return Ok(Go::On) };
                    let observed = self.explorer.execute_from(0, &plan, snapshot);
                    self.summary.from_snapshots += u64::from(snapshot.is_some());
                    (plan, observed)
                }
            };
            if self.learn(plan, observed, observe)? == Go::Stop {
                return Ok(Go::Stop);
            }
            // More at a time from here on: in another batch.
            if self.at_once() > 1 {
                return Ok(Go::On);
            }
            self.draw();
        }
    }

    fn go_on(&mut self, mut slots: Slots, observe: &mut Observer<'_>) -> Result<Go, ExploreError> {
        loop {
            while let Some(&slot) = slots.idle.last() {
                let Some(work) = self.hand_out() else { break };
                slots.idle.pop();
                if slots.work[slot].send(work).is_err() {
                    unreachable!("a slot waits for work as long as it can come");
                }
            }
            match self.done.remove(&self.learned) {
                Some((plan, observed)) => {
                    // Whoever looks at a failure executes something itself.
                    if observed.as_ref().is_ok_and(|observation| observation.failure.is_some()) {
                        while slots.are_busy() {
                            self.receive(&mut slots);
                        }
                    }
                    if self.learn(plan, observed, observe)? == Go::Stop {
                        while slots.are_busy() {
                            self.receive(&mut slots);
                        }
                        return Ok(Go::Stop);
                    }
                    self.draw();
                }
                None if slots.are_busy() => self.receive(&mut slots),
                None => return Ok(Go::On),
            }
        }
    }

    fn receive(&mut self, slots: &mut Slots) {
        let Ok(Done { slot, number, plan, observed, from_snapshot }) = slots.results.recv() else {
            unreachable!("a slot that is busy says what came of it");
        };
        let observed = observed.unwrap_or_else(|panic| resume_unwind(panic));
        slots.idle.push(slot);
        self.summary.from_snapshots += u64::from(from_snapshot);
        self.done.insert(number, (plan, observed));
    }

    fn learn(&mut self, plan: Plan, observed: Observed, observe: &mut Observer<'_>) -> Result<Go, ExploreError> {
        let over = self.explorer.forcing.deadline.is_over();
        let observation = match observed {
            // It was ended with the budget, before it had begun.
            Err(error) if error.is_of_nothing() && over => None,
            // The end of the budget ended it: that says nothing about the program.
            other => Some(other?).filter(|observation| !self.explorer.was_cut(observation)),
        };
        let Some(observation) = observation else {
            self.left.insert(self.learned, plan);
            return Ok(Go::Stop);
        };
        self.learned += 1;
        self.summary.schedules += 1;
        self.summary.steps += observation.log.steps.len() as u64;
        self.summary.most_steps = self.summary.most_steps.max(observation.log.steps.len());
        self.search.learn(&plan, &observation.log, observation.end);
        Ok(observe(&plan, &observation))
    }

    /// What was executed and not learned is to be executed again.
    fn put_back(mut self) {
        self.left.extend(std::mem::take(&mut self.done).into_iter().map(|(number, (plan, _))| (number, plan)));
        for (_, plan) in self.left.into_iter().rev() {
            self.drawn.push_front(plan);
        }
    }
}
