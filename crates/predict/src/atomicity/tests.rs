//! Loops within loops end with their deadline, too.

use super::*;
use rashomon_event::{AccessClass, Address, Context, ContextId, Event, EventKind, LockMode, ThreadId};
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
    let [all, given] = counts(builder, |_, units, deadline, seen, hidden| {
        views::suspects(units, deadline, seen, Some(hidden));
    });
    assert!(all > SECTIONS * SECTIONS && given < FEW, "{given} of {all}");
}

/// A worker's loop: each turn looks at the variable in one call and writes it in the next, all from one function.
#[test]
fn sections_of_two_calls_do_not_belong_together() {
    let near = |leaves: bool| {
        let mut builder = TraceBuilder::with_threads(2);
        let classes = [AccessClass::Read, AccessClass::Read, AccessClass::Write];
        for class in classes {
            section(&mut builder, ThreadId(0), &[(class, VARIABLES[0])]);
        }
        section(&mut builder, ThreadId(1), &[(AccessClass::Write, VARIABLES[0])]);
        let mut trace = builder.build();
        let accesses: Vec<EventIndex> = trace.indices().filter(|index| trace.access(*index).is_some()).collect();
        // The turn, and what it calls twice.
        let of = |parent, call| Context { parent: ContextId(parent), call: SiteId(call) };
        trace.contexts = vec![of(0, 0), of(0, 1), of(1, 2), of(1, 3)];
        let [between, looks, acts] = [if leaves { 0 } else { 1 }, 2, 3];
        for (access, context) in accesses.iter().zip([looks, between, acts]) {
            for index in access.index() - 1..=access.index() + 1 {
                change(&mut trace, index, |event| event.context = ContextId(context));
            }
        }
        let units = Units::of(&trace, Deadline::NEVER);
        units.are_near(accesses[0], accesses[2])
    };
    assert!(near(false));
    assert!(!near(true));
}

fn change(trace: &mut Trace, at: usize, change: impl Fn(&mut Event)) {
    trace.events.change(|place, event| {
        if place == at {
            change(event)
        }
    });
}

/// A container's member functions may call each other however deep: the section is where lock and access are.
#[test]
fn what_a_section_calls_is_not_counted() {
    let near = |leaves_both: bool| {
        let mut builder = TraceBuilder::with_threads(2);
        for class in [AccessClass::Read, AccessClass::Write] {
            section(&mut builder, ThreadId(0), &[(class, VARIABLES[0])]);
        }
        section(&mut builder, ThreadId(1), &[(AccessClass::Write, VARIABLES[0])]);
        let mut trace = builder.build();
        let accesses: Vec<EventIndex> = trace.indices().filter(|index| trace.access(*index).is_some()).collect();
        let of = |parent, call| Context { parent: ContextId(parent), call: SiteId(call) };
        // 1: has both, by calls of 2 and of 6; 5: four calls below 2; 7: a guard's function.
        trace.contexts = vec![of(0, 0), of(0, 1), of(1, 2), of(2, 3), of(3, 4), of(4, 5), of(1, 6), of(2, 7)];
        // The section of the look is in 2, or no function but the outermost has both.
        let deep = if leaves_both { 5 } else { 7 };
        for (access, [begun, made]) in accesses.iter().zip([[deep, 5], [6, 6]]) {
            change(&mut trace, access.index() - 1, |event| event.context = ContextId(begun));
            change(&mut trace, access.index(), |event| event.context = ContextId(made));
            change(&mut trace, access.index() + 1, |event| event.context = ContextId(begun));
        }
        Units::of(&trace, Deadline::NEVER).are_near(accesses[0], accesses[1])
    };
    assert!(near(false));
    assert!(!near(true));
}

/// What two sections call may read the variable for both: a container's member function.
#[test]
fn who_looks_again_from_elsewhere_has_not_begun_anew() {
    let suspects = |calls: [u32; 2]| {
        let mut builder = TraceBuilder::with_threads(2);
        for _ in 0..2 {
            section(&mut builder, ThreadId(0), &[(AccessClass::Read, VARIABLES[0])]);
        }
        section(&mut builder, ThreadId(1), &[(AccessClass::Write, VARIABLES[0])]);
        let mut trace = builder.build();
        let accesses: Vec<EventIndex> = trace.indices().filter(|index| trace.access(*index).is_some()).collect();
        let of = |parent, call| Context { parent: ContextId(parent), call: SiteId(call) };
        // Both sections are in 1, which calls the member function from two places.
        trace.contexts = vec![of(0, 0), of(0, 1), of(1, 2), of(1, 3)];
        for (access, call) in accesses.iter().zip(calls) {
            change(&mut trace, access.index(), |event| event.context = ContextId(call));
            change(&mut trace, access.index(), |event| event.site = SiteId(7));
            for around in [access.index() - 1, access.index() + 1] {
                change(&mut trace, around, |event| event.context = ContextId(1));
            }
        }
        let units = Units::of(&trace, Deadline::NEVER);
        let found = Cell::new(0);
        let count = |_: Suspect<'_>| found.set(found.get() + 1);
        interposed::suspects(&trace, &units, Deadline::NEVER, count, Some(count));
        found.get()
    };
    assert_eq!(suspects([2, 3]), 1);
    assert_eq!(suspects([2, 2]), 0);
}

/// Two threads that read both variables and write both, in two critical sections or in one.
fn halves(sections: &[&[(AccessClass, Address)]]) -> Trace {
    let mut builder = TraceBuilder::with_threads(2);
    for thread in [ThreadId(0), ThreadId(1)] {
        for accesses in sections {
            section(&mut builder, thread, accesses);
        }
    }
    builder.build()
}

fn whole_of(trace: &Trace) -> Extended {
    let of = |thread| {
        let mut mine = trace.indices().filter(|index| trace.event(*index).thread == thread && trace.access(*index).is_some());
        let first = mine.next().expect("it accesses something");
        (thread, first, mine.next_back().expect("it accesses more"))
    };
    let members = VARIABLES.map(|variable| (variable.0, variable.0 + 4)).to_vec();
    Extended { members, units: [of(ThreadId(0)), of(ThreadId(1))] }
}

#[test]
fn a_unit_comes_into_another_between_two_sections() {
    let reads = VARIABLES.map(|variable| (AccessClass::Read, variable));
    let writes = VARIABLES.map(|variable| (AccessClass::Write, variable));
    let trace = halves(&[&reads, &writes]);
    let found = of_correlated(&trace, &Options::default(), &[whole_of(&trace)]);
    assert!(!found.is_empty());
    for (number, Prediction { violation, violated, serial, .. }) in &found {
        assert_eq!((*number, violation.pattern), (0, Pattern::Correlated));
        let at = |order: &[EventIndex], event| order.iter().position(|one| *one == event);
        let order = &violated[0];
        let theirs: Vec<_> =
            trace.indices().filter(|one| trace.event(*one).thread != trace.event(violation.check).thread).collect();
        // All that the other thread does with the set lies between the two halves.
        for event in theirs.into_iter().filter(|event| trace.access(*event).is_some()) {
            assert!(at(order, violation.check) < at(order, event) && at(order, event) < at(order, violation.act), "{order:?}");
        }
        assert!(!serial.is_empty());
    }
    let both = [&reads[..], &writes[..]].concat();
    let trace = halves(&[&both]);
    assert_eq!(of_correlated(&trace, &Options::default(), &[whole_of(&trace)]), []);
}

/// Two units that only read the one variable and write the other one have a serial order wherever they come.
#[test]
fn what_conflicts_once_is_serialisable() {
    let trace = halves(&[&[(AccessClass::Read, VARIABLES[0])], &[(AccessClass::Write, VARIABLES[1])]]);
    assert_eq!(of_correlated(&trace, &Options::default(), &[whole_of(&trace)]), []);
}
