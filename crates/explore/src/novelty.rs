//! What an explored execution shows that none before it did: the measure by which going on is worth its time.
//!
//! Two things are counted, each by places in the code. *Sites* are operations that ran. *Orders* are two dependent operations of
//! different threads, the later one the first such behind the earlier one: who has a lock after whom, which write a read comes
//! behind. Places are addresses of the execution, so all executions have to be loaded to the same places (no address space layout
//! randomisation).
//!
//! It is a measure and no proof: values and longer patterns are not in it.

use crate::dependence::keys;
use crate::log::Log;
use rustc_hash::{FxHashMap, FxHashSet};

/// What all executions so far have shown.
#[derive(Clone, Debug, Default)]
pub struct Novelty {
    sites: FxHashSet<(u64, u64)>,
    orders: FxHashSet<[(u64, u64); 2]>,
}

impl Novelty {
    /// Adds what an execution did. Says how much of it was new.
    pub fn learn(&mut self, log: &Log) -> usize {
        let mut new = 0;
        // By object: who came last, and who wrote last. A reader has an order with the writer before it alone.
        let mut last: FxHashMap<u64, [Option<usize>; 2]> = FxHashMap::default();
        for (at, step) in log.steps.iter().enumerate() {
            let operation = &step.does.operation;
            let place = (step.does.site, operation.op);
            new += usize::from(self.sites.insert(place));
            for key in keys(operation) {
                let known = last.entry(key).or_default();
                for earlier in known.iter().flatten().map(|earlier| &log.steps[*earlier]) {
                    if earlier.thread != step.thread && earlier.does.operation.depends(operation) {
                        new += usize::from(self.orders.insert([(earlier.does.site, earlier.does.operation.op), place]));
                    }
                }
                if operation.class == 0 || operation.writes() {
                    known[1] = Some(at);
                }
                known[0] = Some(at);
            }
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Pending, Step};
    use rashomon_abi::exploration::Operation;
    use rashomon_abi::record::AccessClass;

    /// Thread, site and class of accesses to one variable.
    fn log(steps: &[(u32, u64, AccessClass)]) -> Log {
        let step = |&(thread, site, class): &(u32, u64, AccessClass)| {
            let operation = Operation { object: 64, bytes: 4, class: class as u64, ..Operation::default() };
            let does = Pending { operation, site, ..Pending::default() };
            Step { thread, enabled: 3, asleep: 0, waiting: 0, does, after: None }
        };
        Log { steps: steps.iter().map(step).collect(), ..Log::default() }
    }

    #[test]
    fn another_order_of_dependent_operations_is_new_once() {
        let (read, write) = ((0, 1, AccessClass::Read), (1, 2, AccessClass::Write));
        let mut novelty = Novelty::default();
        assert_eq!(novelty.learn(&log(&[read, write])), 3, "two sites and their order");
        assert_eq!(novelty.learn(&log(&[read, write])), 0);
        assert_eq!(novelty.learn(&log(&[write, read])), 1);
        assert_eq!(novelty.learn(&log(&[write, read])), 0);
    }

    #[test]
    fn reads_have_no_order() {
        let mut novelty = Novelty::default();
        assert_eq!(novelty.learn(&log(&[(0, 1, AccessClass::Read), (1, 2, AccessClass::Read)])), 2);
        assert_eq!(novelty.learn(&log(&[(1, 2, AccessClass::Read), (0, 1, AccessClass::Read)])), 0);
    }
}
