//! Shortening a failing schedule, and naming what it depends on.
//!
//! First the same failure is looked for with 0, 1, 2, … preemptions, fewer than it has (iterative preemption bounding, within a
//! budget of executions: if the search is exhaustive, no schedule has fewer). Then the list of decisions is cut: the shortest
//! beginning after which the failure follows by itself, when threads run as long as they can. Without the last decision of that
//! list the program does not fail so: of what the two executions do in different orders, the first dependent pair is the
//! *critical reordering* (cf. J.-D. Choi, A. Zeller, "Isolating Failure-Inducing Thread Schedules", ISSTA 2002; here one decision
//! is taken away, and not half of the difference).
//!
//! Guarantee: every claim is an execution that was made. Limit: where no single pair differs (the two executions part in
//! operations that are not visible) none is named.

use crate::error::ExploreError;
use crate::explorer::{Explorer, Go, Limits, Observation};
use crate::failure::Failure;
use crate::log::{Log, Pending};
use crate::preemptions::PreemptionBounding;
use crate::search::Plan;

/// The pair of steps whose order decides: with `first` before `second` the program fails, the other way round it does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Critical {
    pub first: (u32, Pending),
    pub second: (u32, Pending),
}

#[derive(Clone, Debug)]
pub struct Minimised {
    pub decisions: Vec<u32>,
    pub observation: Observation,
    pub preemptions: usize,
    /// No schedule with fewer preemptions fails so.
    pub fewest: bool,
    pub critical: Option<Critical>,
    pub executions: u64,
}

fn plan(decisions: &[u32]) -> Plan {
    Plan::of(decisions.to_vec())
}

/// `budget`: executions. What is reached when the explorer's deadline is over stays; nothing more is claimed of it.
pub fn minimise(
    explorer: &Explorer<'_>,
    failing: &Observation,
    failure: Failure,
    budget: u64,
) -> Result<Minimised, ExploreError> {
    let mut executions = 0;
    let mut best = failing.clone();
    let fails = |observation: &Observation| observation.failure == Some(failure);
    let mut fewest = best.log.preemptions() == 0;
    if let Some(most) = best.log.preemptions().checked_sub(1) {
        let mut search = PreemptionBounding::new(most);
        let mut found = None;
        let limits = Limits::new(budget, explorer.forcing.deadline);
        let summary = explorer.search(&mut search, limits, |_, observation| {
            if fails(observation) {
                found = Some(observation.clone());
                return Go::Stop;
            }
            Go::On
        })?;
        executions += summary.schedules;
        // Fewer preemptions were all tried before.
        fewest = summary.exhausted || found.is_some();
        if let Some(found) = found {
            best = found;
        }
    }
    let mut decisions = best.log.decisions();
    let (mut good, mut bad) = (None, decisions.len());
    // Beginnings: only where the running thread changes is there anything to decide.
    let mut cuts: Vec<usize> = (1..decisions.len()).filter(|&at| decisions[at] != decisions[at - 1]).map(|at| at + 1).collect();
    cuts.insert(0, 0);
    let (mut low, mut high) = (0, cuts.len());
    while low < high {
        let middle = usize::midpoint(low, high);
        if explorer.forcing.deadline.is_over() {
            break;
        }
        let observation = explorer.execute(0, &plan(&decisions[..cuts[middle]]))?;
        executions += 1;
        if explorer.was_cut(&observation) {
            break;
        }
        if fails(&observation) && observation.log.preemptions() <= best.log.preemptions() {
            bad = cuts[middle];
            best = observation;
            high = middle;
        } else {
            good = Some((cuts[middle], observation));
            low = middle + 1;
        }
    }
    decisions.truncate(bad);
    let critical = match good.filter(|(_, observation)| !fails(observation)) {
        Some((_, passing)) => critical(&best.log, &passing.log),
        None => None,
    };
    let preemptions = best.log.preemptions();
    Ok(Minimised { decisions, observation: best, preemptions, fewest, critical, executions })
}

/// The first two dependent steps that the other execution makes the other way round.
pub fn critical(failing: &Log, passing: &Log) -> Option<Critical> {
    let parted = failing.steps.iter().zip(&passing.steps).position(|(one, other)| one.thread != other.thread)?;
    let place = |thread: u32, does: &Pending| {
        passing.steps[parted..].iter().position(|step| step.thread == thread && step.does.same_place(does))
    };
    let pending = |thread: u32| failing.left.iter().find(|(left, _)| *left == thread).map(|(_, pending)| *pending);
    let all: Vec<(u32, Pending)> = failing.steps[parted..].iter().map(|step| (step.thread, step.does)).collect();
    // What was still to come when the execution failed comes last.
    let left = failing.left.iter().map(|(thread, _)| *thread).filter_map(|thread| Some((thread, pending(thread)?)));
    let all: Vec<(u32, Pending)> = all.into_iter().chain(left).collect();
    for (later, (second_thread, second)) in all.iter().enumerate() {
        for (first_thread, first) in &all[..later] {
            if first_thread == second_thread || !first.operation.depends(&second.operation) {
                continue;
            }
            let reversed = match (place(*first_thread, first), place(*second_thread, second)) {
                (Some(first), Some(second)) => second < first,
                (None, Some(_)) => true,
                _ => false,
            };
            if reversed {
                return Some(Critical { first: (*first_thread, *first), second: (*second_thread, *second) });
            }
        }
    }
    None
}
