//! From an order of synchronisation steps to an order of all events, as close to the trace as the steps allow: values then have
//! the best chance to stay the same.

use crate::closure::Cut;
use crate::dependences::Dependences;
use crate::index::Index;
use rashomon_event::EventIndex;

/// Merges the threads' prefixes: steps in the given order, all else in the order of the trace. `None` if the needs cannot be met
/// so.
pub fn merge(index: &Index<'_>, needs: &Dependences, cut: &Cut, sequence: &[u32]) -> Option<Vec<EventIndex>> {
    let threads = cut.len();
    let total: usize = cut.iter().map(|&count| count as usize).sum();
    let (mut done, mut steps, mut need) = (vec![0u32; threads], vec![0usize; threads], vec![0usize; threads]);
    let mut head = 0;
    let mut order = Vec::with_capacity(total);
    while order.len() < total {
        let mut best: Option<(EventIndex, usize, bool)> = None;
        for thread in 0..threads {
            let at = done[thread];
            if at >= cut[thread] {
                continue;
            }
            let is_step = index.steps[thread].get(steps[thread]).is_some_and(|step| step.at == at);
            if is_step && sequence.get(head) != Some(&(thread as u32)) {
                continue;
            }
            let event = index.threads.at(thread, at);
            if best.is_some_and(|(earlier, ..)| earlier < event) {
                continue;
            }
            while needs.of(thread).get(need[thread]).is_some_and(|need| need.at <= at && done[need.thread as usize] >= need.count)
            {
                need[thread] += 1;
            }
            if needs.of(thread).get(need[thread]).is_none_or(|need| need.at > at) {
                best = Some((event, thread, is_step));
            }
        }
        let (event, thread, is_step) = best?;
        order.push(event);
        done[thread] += 1;
        if is_step {
            steps[thread] += 1;
            head += 1;
        }
    }
    Some(order)
}

/// Each thread runs up to its step when the step's turn comes: for sets too large to merge.
pub fn in_blocks(index: &Index<'_>, cut: &Cut, sequence: &[u32]) -> Vec<EventIndex> {
    let (mut done, mut steps) = (vec![0u32; cut.len()], vec![0usize; cut.len()]);
    let mut order = Vec::new();
    for &thread in sequence {
        let thread = thread as usize;
        let Some(step) = index.steps[thread].get(steps[thread]) else {
            continue;
        };
        order.extend(index.threads.range(thread, done[thread]..step.at + 1));
        done[thread] = step.at + 1;
        steps[thread] += 1;
    }
    for (thread, &count) in cut.iter().enumerate() {
        order.extend(index.threads.range(thread, done[thread]..count));
    }
    order
}
