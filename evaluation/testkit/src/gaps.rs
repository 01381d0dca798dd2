//! Calls into unseen code for traces that have none.

use crate::random::SplitMix;
use rashomon_event::{Access, Event, EventIndex, Gap, ThreadId, Trace};

/// Makes calls into unseen code of stretches of threads, which reach some of what the trace accesses, and handles of threads.
/// What they order is not said: [`Trace::kept`] stays as it is.
pub fn add_gaps(trace: &mut Trace, seed: u64) {
    let mut rng = SplitMix(seed);
    let mut below = |bound: usize| rng.below(bound as u64) as usize;
    let accessed: Vec<Access> = trace.events.iter().filter_map(Event::access).collect();
    for thread in (0..trace.threads.len() as u32).map(ThreadId) {
        let own: Vec<EventIndex> = trace.indices().filter(|&event| trace.event(event).thread == thread).collect();
        for _ in 0..if own.is_empty() { 0 } else { below(3) } {
            let begin = below(own.len());
            let end = begin + below(own.len() - begin);
            let reached = accessed.iter().filter(|_| below(accessed.len()) < 2);
            let reach = reached.map(|access| (access.address, u64::from(access.size))).collect();
            let end = (below(5) > 0).then_some(own[end]);
            let handle = (below(4) == 0).then(|| ThreadId(below(trace.threads.len()) as u32));
            let (begin, threads) = (own[begin], handle.into_iter().collect());
            trace.gaps.push(Gap { thread, begin, end, module: None, function: None, reach, threads });
        }
    }
    trace.gaps.sort_by_key(|gap| gap.begin);
}
