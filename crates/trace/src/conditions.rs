//! Condition variables that are destroyed while a thread waits for them: undefined (POSIX.1-2017, `pthread_cond_destroy`).
//!
//! A thread is waited for no more once a broadcast, or a signal of its own, was sent: to destroy the condition variable then is
//! right. Which waiter a signal wakes is not known before the wait ends, so as many may be woken as signals were sent.
//!
//! Limit. The order of signals and waits has to be the one in which they took effect, as in serial recordings.

use crate::misuse::Moment;
use rashomon_abi::record::Op;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
struct Condition {
    /// Where each thread that waits began to.
    waiting: Vec<Moment>,
    /// How many of them were sent a signal.
    woken: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Conditions {
    /// By machine address.
    known: BTreeMap<u64, Condition>,
}

impl Conditions {
    /// Where a thread began to wait that still does, if the operation destroys what it waits for.
    pub(crate) fn step(&mut self, op: Op, machine: u64, at: Moment) -> Option<Moment> {
        match op {
            Op::CondWaitBegin => self.known.entry(machine).or_default().waiting.push(at),
            Op::CondWaitEnd => {
                let condition = self.known.get_mut(&machine)?;
                let own = condition.waiting.iter().position(|waiting| waiting.thread == at.thread)?;
                condition.waiting.remove(own);
                condition.woken = condition.woken.saturating_sub(1);
            }
            Op::CondSignal | Op::CondBroadcast => {
                let condition = self.known.get_mut(&machine)?;
                let all = condition.waiting.len();
                condition.woken = if op == Op::CondBroadcast { all } else { all.min(condition.woken + 1) };
            }
            Op::CondInit => {
                self.known.remove(&machine);
            }
            Op::CondDestroy => {
                let condition = self.known.remove(&machine)?;
                return (condition.woken < condition.waiting.len()).then(|| condition.waiting[0]);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_event::{ContextId, EventIndex, SiteId, ThreadId};

    fn told(operations: &[(u32, Op)]) -> Vec<(u32, u32)> {
        let moment = |number: u32, thread: u32| Moment {
            thread: ThreadId(thread),
            site: SiteId(number),
            context: ContextId::ROOT,
            before: EventIndex(number),
        };
        let mut conditions = Conditions::default();
        let steps = (0..).zip(operations).filter_map(|(number, &(thread, op))| {
            conditions.step(op, 4096, moment(number, thread)).map(|waiting| (number, waiting.site.0))
        });
        steps.collect()
    }

    use Op::{CondBroadcast, CondDestroy, CondInit, CondSignal, CondWaitBegin, CondWaitEnd};

    #[test]
    fn who_waits_and_was_sent_nothing_is_told() {
        assert_eq!(told(&[(1, CondWaitBegin), (0, CondDestroy)]), [(1, 0)]);
        assert_eq!(told(&[(1, CondWaitBegin), (2, CondWaitBegin), (0, CondSignal), (0, CondDestroy)]), [(3, 0)]);
        assert_eq!(told(&[(0, CondSignal), (1, CondWaitBegin), (0, CondDestroy)]), [(2, 1)]);
    }

    #[test]
    fn who_was_woken_waits_no_more() {
        assert_eq!(told(&[(1, CondWaitBegin), (0, CondSignal), (0, CondDestroy)]), []);
        assert_eq!(told(&[(1, CondWaitBegin), (2, CondWaitBegin), (0, CondBroadcast), (0, CondDestroy)]), []);
        assert_eq!(told(&[(1, CondWaitBegin), (1, CondWaitEnd), (0, CondDestroy)]), []);
        assert_eq!(told(&[(1, CondWaitBegin), (0, CondInit), (0, CondDestroy)]), []);
    }
}
