//! Events per second of each linear pass on a generated trace: `order_throughput [EVENTS] [THREADS] [LOCKS]`.

use rashomon_order::{LockGraph, Model, SharedMemory, hybrid, races};
use std::time::Instant;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u32>().unwrap_or(0));
    let (events, threads, locks) =
        (arguments.next().unwrap_or(10_000_000), arguments.next().unwrap_or(12), arguments.next().unwrap_or(100));
    let trace = rashomon_testkit::large(7, threads, u64::from(locks), events as usize);
    let timed = |name: &str, run: &mut dyn FnMut() -> usize| {
        let start = Instant::now();
        let found = run();
        let seconds = start.elapsed().as_secs_f64();
        println!("{name:14} {seconds:6.2} s  {:6.1} M events/s  {found}", f64::from(events) / seconds / 1e6);
    };
    let mut memory = None;
    timed("shared memory", &mut || memory.insert(SharedMemory::new(&trace)).len());
    let Some(memory) = memory else { return };
    timed("races", &mut || races(&trace, &memory, Model::CPP20, 4).len());
    timed("hybrid", &mut || hybrid(&trace, &memory, 4).len());
    timed("lock graph", &mut || LockGraph::new(&trace).patterns(5, 10_000).len());
}
