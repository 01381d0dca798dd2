//! Loops within loops end with their deadline, too.

use super::*;
use rashomon_event::{AccessClass, Address, EventKind, LockMode, ThreadId};
use rashomon_testkit::TraceBuilder;
use std::cell::Cell;
use std::time::Instant;

const LOCK: Address = Address(0x1000);
const VARIABLES: [Address; 2] = [Address(0x2000), Address(0x3000)];
/// Sections of each thread. Each pair of one thread's with each of the other's is a suspect.
const SECTIONS: usize = 400;
/// Steps between two looks at the clock, with room to spare.
const FEW: usize = 10_000;

fn section(builder: &mut TraceBuilder, thread: ThreadId, accesses: &[(AccessClass, Address)]) {
    builder.push(thread, EventKind::Acquire { lock: LOCK, mode: LockMode::Exclusive, may_wait: true });
    for (class, address) in accesses {
        builder.access(thread, *class, *address, 4);
    }
    builder.push(thread, EventKind::Release { lock: LOCK, mode: LockMode::Exclusive });
}

type Give<'g, 'u> = &'g mut dyn FnMut(Suspect<'u>);

/// How many suspects there are, and how many are given when the time is over.
fn counts(
    builder: TraceBuilder,
    suspects: impl for<'u> Fn(&Trace, &'u Units, Deadline, Give<'_, 'u>, Give<'_, 'u>),
) -> [usize; 2] {
    let trace = builder.build();
    let units = Units::of(&trace, Deadline::NEVER);
    [Deadline::NEVER, Deadline::at(Instant::now())].map(|deadline| {
        let given = Cell::new(0);
        let (mut seen, mut hidden) = (|_: Suspect<'_>| given.set(given.get() + 1), |_: Suspect<'_>| given.set(given.get() + 1));
        suspects(&trace, &units, deadline, &mut seen, &mut hidden);
        given.get()
    })
}

#[test]
fn interposed_accesses_of_many_sections() {
    let mut builder = TraceBuilder::with_threads(2);
    for _ in 0..SECTIONS {
        for thread in [ThreadId(0), ThreadId(1)] {
            section(&mut builder, thread, &[(AccessClass::Read, VARIABLES[0])]);
            section(&mut builder, thread, &[(AccessClass::Write, VARIABLES[0])]);
        }
    }
    let [all, given] = counts(builder, |trace, units, deadline, seen, hidden| {
        interposed::suspects(trace, units, deadline, seen, Some(hidden));
    });
    assert!(all > SECTIONS * SECTIONS && given < FEW, "{given} of {all}");
}

#[test]
fn views_of_many_sections() {
    let mut builder = TraceBuilder::with_threads(2);
    for _ in 0..SECTIONS {
        section(&mut builder, ThreadId(0), &[(AccessClass::Write, VARIABLES[0])]);
        section(&mut builder, ThreadId(0), &[(AccessClass::Write, VARIABLES[1])]);
        section(&mut builder, ThreadId(1), &VARIABLES.map(|variable| (AccessClass::Write, variable)));
    }
    let [all, given] = counts(builder, |trace, units, deadline, seen, hidden| {
        views::suspects(trace, units, deadline, seen, Some(hidden));
    });
    assert!(all > SECTIONS * SECTIONS && given < FEW, "{given} of {all}");
}
