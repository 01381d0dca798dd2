//! Positions in threads against plain lists of each thread's events.

use rashomon_event::EventIndex;
use rashomon_testkit::{Features, Shape, random};

#[test]
fn is_the_order_of_the_trace_thread_by_thread() {
    for seed in 0..200 {
        let shape = Shape { threads: 1 + (seed % 4) as u32, events: 60, variables: 2, locks: 1, features: Features::ALL };
        let trace = random(seed, shape);
        let order = trace.program_order();
        let mut listed: Vec<Vec<EventIndex>> = vec![Vec::new(); 1 + (seed % 4) as usize];
        for event in trace.indices() {
            let thread = trace.event(event).thread;
            assert_eq!(order.place(event), (thread.0, listed[thread.index()].len() as u32), "seed {seed}, {event}");
            for (thread, events) in listed.iter().enumerate() {
                assert_eq!(order.before(thread, event) as usize, events.len(), "seed {seed}, {event}");
            }
            listed[thread.index()].push(event);
        }
        for (thread, events) in listed.iter().enumerate() {
            let count = events.len() as u32;
            assert_eq!((order.count(thread), order.before(thread, EventIndex(u32::MAX))), (count, count));
            assert_eq!(order.last(thread), events.last().copied());
            for (event, next) in events.iter().zip(events.iter().skip(1).map(Some).chain([None])) {
                assert_eq!(order.next(*event), next.copied());
            }
            for start in 0..=count {
                let end = start + (count - start) * 2 / 3;
                let expected = &events[start as usize..end as usize];
                assert!(order.range(thread, start..end).eq(expected.iter().copied()), "seed {seed}, {start} to {end}");
                assert!(order.range(thread, start..count).rev().eq(events[start as usize..].iter().rev().copied()));
            }
            assert!((0..count).map(|at| order.at(thread, at)).eq(events.iter().copied()));
        }
    }
}
