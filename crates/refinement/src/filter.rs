//! Which shared objects are worth a model (§3): those with a pair of accesses that neither creation, joining, conditions,
//! barriers and their like order, nor a common lock keeps apart.

use crate::objects::Objects;
use rashomon_event::Trace;
use rashomon_order::{SharedMemory, hybrid};
use std::collections::BTreeSet;

/// Pairs kept of each pair of places in the program.
const REPRESENTATIVES: usize = 4;

/// Numbers of the objects that are left, in order.
pub fn suspicious(trace: &Trace, objects: &Objects) -> Vec<usize> {
    let memory = SharedMemory::new(trace);
    let mut left = BTreeSet::new();
    for pair in hybrid(trace, &memory, REPRESENTATIVES) {
        for &(first, second) in &pair.pairs {
            if let (Some(one), Some(other)) = (trace.access(first), trace.access(second)) {
                let of_one: BTreeSet<usize> = objects.touched(&one).collect();
                left.extend(objects.touched(&other).filter(|object| of_one.contains(object)));
            }
        }
    }
    left.into_iter().collect()
}
