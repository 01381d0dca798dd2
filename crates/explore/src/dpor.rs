//! All schedules up to the order of independent steps.
//!
//! P. Abdulla, S. Aronis, B. Jonsson, K. Sagonas, "Optimal Dynamic Partial Order Reduction", POPL 2014, Algorithm 1 (source
//! sets), with sleep sets (Godefroid 1996); the race detection is that of C. Flanagan, P. Godefroid, POPL 2005, Fig. 3, clock
//! vectors included.
//!
//! Deviation 1: an acquisition that waits is reversed with the earlier acquisition of the lock, not with the release between them
//! (which never can be next at the same time). Deviation 2: operations that are pending when an execution ends are treated as
//! steps that come next. Deviation 3: threads that only poll for what another is to do are not scheduled while they do so;
//! without it a loop that waits would have endlessly many executions. Deviation 4: of several operations that could be reversed
//! with a step only the last of those that are ordered among themselves is, object by object: the others follow in the execution
//! that this leads to. Deviation 5: the orderly end of the process, with which every step of another thread is in conflict, is
//! made last: an earlier one shows a beginning of what a later one shows. Where a thread that fails ends the process, what the
//! others could do next is tried before its last step.
//!
//! Guarantee: when nothing is left to try, every schedule is equivalent to an executed one, for visible operations, if the
//! program is deterministic but for its schedule (`tests/oracle.rs` compares with brute force). Limit: nothing is claimed of
//! programs that wait for files or in other ways that name no object. Cost: one execution for each source-set branch; O(n t)
//! memory for n steps of t threads. Executions are made one after the other.

use crate::dependence::{Order, is_opaque};
use crate::file::End;
use crate::log::{Log, Pending};
use crate::search::{Plan, Search};
use rashomon_abi::record::Op;
use rashomon_event::counted;

#[derive(Clone, Debug)]
struct Node {
    chosen: u32,
    /// Those that may be chosen.
    enabled: u64,
    backtrack: u64,
    done: u64,
    asleep: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Dpor {
    path: Vec<Node>,
    begun: bool,
    given: bool,
    executed: u64,
    redundant: u64,
    /// An execution did not follow its decisions: the program is not deterministic.
    strayed: bool,
    cut: bool,
    /// Somebody did what nobody knows the dependences of.
    opaque: bool,
}

impl Dpor {
    pub fn new() -> Self {
        Self::default()
    }

    fn add_races(&mut self, log: &Log, from: usize) {
        let order = Order::of(log);
        for at in from..log.steps.len() {
            let step = &log.steps[at];
            for earlier in order.reversible(at) {
                self.add(earlier, order.initials(earlier, at, step.thread, &step.does), step.thread);
            }
        }
        for (thread, pending) in &log.left {
            for earlier in order.reversible_pending(*thread, pending) {
                self.add(earlier, order.initials(earlier, log.steps.len(), *thread, pending), *thread);
            }
        }
    }

    fn add(&mut self, at: usize, initials: u64, thread: u32) {
        let Some(node) = self.path.get_mut(at) else { return };
        if node.backtrack & initials != 0 {
            return;
        }
        let possible = initials & node.enabled;
        node.backtrack |= if possible >> thread & 1 != 0 {
            1 << thread
        } else if possible != 0 {
            1 << possible.trailing_zeros()
        } else {
            node.enabled
        };
    }
}

impl Search for Dpor {
    fn next(&mut self) -> Option<Plan> {
        if self.given {
            return None;
        }
        let plan = |decisions: Vec<u32>, asleep| Plan { asleep, ..Plan::of(decisions) };
        if !self.begun {
            self.begun = true;
            self.given = true;
            return Some(plan(Vec::new(), 0));
        }
        while let Some(node) = self.path.last_mut() {
            node.done |= 1 << node.chosen;
            let left = node.backtrack & node.enabled & !node.done & !node.asleep;
            if left == 0 {
                self.path.pop();
                continue;
            }
            node.chosen = left.trailing_zeros();
            let asleep = node.asleep | node.done;
            self.given = true;
            return Some(plan(self.path.iter().map(|node| node.chosen).collect(), asleep));
        }
        None
    }

    fn learn(&mut self, plan: &Plan, log: &Log, end: End) {
        self.given = false;
        self.executed += 1;
        self.redundant += u64::from(end == End::Asleep);
        // What would have followed is not known.
        self.cut |= !matches!(end, End::None | End::Asleep | End::Held);
        self.opaque |= log.steps.iter().any(|step| is_opaque(&step.does.operation));
        if !log.has_whole_sets() {
            self.cut = true;
            self.path.clear();
            return;
        }
        let known = self.path.len();
        let followed =
            log.steps.len() >= known && log.steps.iter().zip(&self.path).all(|(step, node)| step.thread == node.chosen);
        if !followed {
            self.strayed = true;
            return;
        }
        for step in &log.steps[known..] {
            let enabled = step.enabled & !step.waiting | 1 << step.thread;
            let backtrack = 1 << step.thread;
            self.path.push(Node { chosen: step.thread, enabled, backtrack, done: 0, asleep: step.asleep });
        }
        self.add_races(log, plan.decisions.len().saturating_sub(1));
        if end == End::None
            && let Some(last) = self.path.last_mut()
        {
            let joined = |thread: u32| {
                let waits = |pending: &Pending| {
                    pending.operation.op == Op::ThreadJoin as u64 && pending.operation.object == 1 + u64::from(thread)
                };
                log.left.iter().any(|(_, pending)| waits(pending))
            };
            // What has nothing left to do but to end, and nobody waits for, cannot fail any more.
            let left = log.left.iter().filter(|(thread, pending)| !pending.ends_thread() || joined(*thread));
            last.backtrack |= left.fold(0, |set, (thread, _)| set | 1 << thread) & last.enabled;
        }
    }

    fn is_exhaustive(&self) -> bool {
        self.begun && self.path.is_empty() && !self.strayed && !self.cut && !self.opaque
    }

    fn parallel(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        format!("{}, {} of them ended as redundant", counted(self.executed, "schedule"), self.redundant)
    }
}
