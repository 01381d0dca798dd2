//! Violations of the atomicity of one variable against their definition, and the orders that are to show them.

use rashomon_event::{Address, AtomicOp, Deadline, EventIndex, EventKind, Events, LockMode, Trace};
use rashomon_predict::Options;
use rashomon_predict::atomicity::{Ended, Pattern, Prediction, Violation, observed, predict};
use rashomon_testkit::{Features, Shape, describe, random};
use std::collections::{BTreeMap, BTreeSet};

/// The guards of an access, each with where its unit begins: locks, or `None` for an atomic access.
fn guards(trace: &Trace, at: EventIndex) -> Vec<(Option<Address>, EventIndex)> {
    let thread = trace.event(at).thread;
    let mut held: Vec<(Option<Address>, EventIndex)> = Vec::new();
    for index in trace.indices().take(at.index()).filter(|index| trace.event(*index).thread == thread) {
        match trace.kind(index) {
            EventKind::Acquire { lock, .. } | EventKind::WaitEnd { mutex: lock, .. } => held.push((Some(lock), index)),
            EventKind::Release { lock, .. } | EventKind::WaitBegin { mutex: lock, .. } => {
                if let Some(last) = held.iter().rposition(|(other, _)| *other == Some(lock)) {
                    held.remove(last);
                }
            }
            _ => {}
        }
    }
    let atomic = trace.access(at).is_some_and(|access| access.atomic);
    held.extend(atomic.then_some((None, at)));
    held
}

fn reads(trace: &Trace, at: EventIndex) -> bool {
    match trace.kind(at) {
        EventKind::Access(access) => access.class.reads(),
        EventKind::Atomic { op, .. } => op != AtomicOp::Store,
        _ => false,
    }
}

fn writes(trace: &Trace, at: EventIndex) -> bool {
    match trace.kind(at) {
        EventKind::Access(access) => access.class.writes(),
        EventKind::Atomic { op, .. } => matches!(op, AtomicOp::Store | AtomicOp::Rmw),
        _ => false,
    }
}

/// All events of a thread's unit that touch the variable.
type Unit = (EventIndex, Vec<EventIndex>);

/// By definition: three events in their order, each the first of its kind in its unit, and no unit of the thread between.
fn by_definition(trace: &Trace) -> BTreeSet<Violation> {
    let mut units: BTreeMap<(Address, Option<Address>, u32), Vec<Unit>> = BTreeMap::new();
    for at in trace.indices() {
        let Some(access) = trace.access(at) else { continue };
        for (guard, begin) in guards(trace, at) {
            let all = units.entry((access.address, guard, trace.event(at).thread.0)).or_default();
            match all.last_mut().filter(|(other, _)| *other == begin) {
                Some((_, events)) => events.push(at),
                None => all.push((begin, vec![at])),
            }
        }
    }
    let first = |(_, events): &Unit, is: &dyn Fn(&Trace, EventIndex) -> bool| events.iter().copied().find(|at| is(trace, *at));
    let modifies = |(_, events): &Unit| {
        events.iter().any(|at| matches!(trace.kind(*at), EventKind::Atomic { op: AtomicOp::Rmw | AtomicOp::CasFailed, .. }))
    };
    let mut found = BTreeSet::new();
    for ((address, guard, thread), own) in &units {
        for pair in own.windows(2) {
            if matches!(trace.kind(pair[1].0), EventKind::WaitEnd { .. }) {
                continue;
            }
            let (read, wrote) = (first(&pair[0], &reads), first(&pair[0], &writes));
            let (reads_then, writes_then) = (first(&pair[1], &reads), first(&pair[1], &writes));
            let looks = reads_then.filter(|read| writes_then.is_none_or(|write| *read <= write));
            // Of the cases of the table the first that holds.
            let case = if wrote.is_none() && writes_then.is_some() && !modifies(&pair[1]) {
                let pattern = if looks.is_some() { Pattern::LooksAgain } else { Pattern::Stale };
                (read, writes_then, true, pattern)
            } else if wrote.is_none() || looks.is_some() {
                (wrote.or(read), looks, true, Pattern::Interposed)
            } else {
                (wrote, writes_then, false, Pattern::Interposed)
            };
            let (Some(check), Some(act), remote_writes, pattern) = case else { continue };
            for ((other_address, other_guard, other), others) in &units {
                if (other_address, other_guard) != (address, guard) || other == thread {
                    continue;
                }
                let kind: &dyn Fn(&Trace, EventIndex) -> bool = if remote_writes { &writes } else { &reads };
                for between in others.iter().filter_map(|unit| first(unit, kind)) {
                    if check < between && between < act {
                        found.insert(Violation { check, between: [between; 2], act, pattern });
                    }
                }
            }
        }
    }
    found.extend(views_by_definition(trace, &units));
    found
}

/// A critical section: its lock, thread and acquisition, and the events of each variable.
type Section = (u32, EventIndex, BTreeMap<Address, Vec<EventIndex>>);

/// By definition: a section between two others of another thread that touch different parts of what it touches, and conflicts
/// with the first on the first variable that it can, and with the second likewise.
fn views_by_definition(trace: &Trace, units: &BTreeMap<(Address, Option<Address>, u32), Vec<Unit>>) -> BTreeSet<Violation> {
    let threads_of = |address: Address, guard: Option<Address>| {
        units.keys().filter(|(other, by, _)| (*other, *by) == (address, guard)).count()
    };
    let mut by_lock: BTreeMap<Address, BTreeMap<EventIndex, Section>> = BTreeMap::new();
    for ((address, guard, thread), all) in units {
        let Some(lock) = guard.filter(|_| threads_of(*address, *guard) > 1) else { continue };
        for (begin, events) in all {
            let section = by_lock.entry(lock).or_default().entry(*begin).or_insert((*thread, *begin, BTreeMap::new()));
            section.2.insert(*address, events.clone());
        }
    }
    let mut found = BTreeSet::new();
    let first = |events: &[EventIndex], is: &dyn Fn(&Trace, EventIndex) -> bool| events.iter().copied().find(|at| is(trace, *at));
    for sections in by_lock.into_values().map(|sections| sections.into_values().collect::<Vec<Section>>()) {
        for (thread, _, view) in sections.iter().filter(|section| section.2.len() > 1) {
            for other in sections.iter().map(|section| section.0).filter(|other| other != thread).collect::<BTreeSet<u32>>() {
                let own =
                    sections.iter().filter(|section| section.0 == other && section.2.keys().any(|key| view.contains_key(key)));
                for pair in own.collect::<Vec<&Section>>().windows(2) {
                    if matches!(trace.kind(pair[1].1), EventKind::WaitEnd { .. }) {
                        continue;
                    }
                    let conflict = |mine: &Section, not: &Section| {
                        view.iter().filter(|(address, _)| !not.2.contains_key(*address)).find_map(|(address, theirs)| {
                            let mine = mine.2.get(address)?;
                            match (first(mine, &writes), first(theirs, &writes)) {
                                (Some(write), _) => first(theirs, &reads).or(first(theirs, &writes)).map(|it| (write, it)),
                                (None, Some(remote)) => first(mine, &reads).map(|read| (read, remote)),
                                (None, None) => None,
                            }
                        })
                    };
                    let (Some((check, one)), Some((act, two))) = (conflict(pair[0], pair[1]), conflict(pair[1], pair[0])) else {
                        continue;
                    };
                    if check < one && two < act {
                        found.insert(Violation { check, between: [one, two], act, pattern: Pattern::Views });
                    }
                }
            }
        }
        found.extend(apart_by_definition(trace, &sections));
    }
    found
}

/// By definition: two sections of one thread between two of another one, and in both threads each of two variables is touched by
/// one of the sections only.
fn apart_by_definition(trace: &Trace, sections: &[Section]) -> BTreeSet<Violation> {
    let threads: BTreeSet<u32> = sections.iter().map(|section| section.0).collect();
    let pairs = |thread: u32| {
        let own: Vec<&Section> = sections.iter().filter(|section| section.0 == thread).collect();
        let pairs: Vec<[&Section; 2]> = own.windows(2).map(|pair| [pair[0], pair[1]]).collect();
        pairs.into_iter().filter(|pair| !matches!(trace.kind(pair[1].1), EventKind::WaitEnd { .. }))
    };
    let is_apart = |pair: &[&Section; 2], one: &Address, other: &Address| {
        let touches = |section: &Section| [section.2.contains_key(one), section.2.contains_key(other)];
        [touches(pair[0]), touches(pair[1])]
    };
    let conflict = |mine: &[EventIndex], theirs: &[EventIndex]| {
        let first =
            |events: &[EventIndex], is: &dyn Fn(&Trace, EventIndex) -> bool| events.iter().copied().find(|at| is(trace, *at));
        match (first(mine, &writes), first(theirs, &writes)) {
            (Some(write), _) => first(theirs, &reads).or(first(theirs, &writes)).map(|it| (write, it)),
            (None, Some(remote)) => first(mine, &reads).map(|read| (read, remote)),
            (None, None) => None,
        }
    };
    let mut found = BTreeSet::new();
    for (thread, other) in threads.iter().flat_map(|one| threads.iter().map(move |other| (*one, *other))) {
        if thread == other {
            continue;
        }
        for mine in pairs(thread) {
            for theirs in pairs(other) {
                for (one, two) in mine[0].2.keys().flat_map(|one| mine[1].2.keys().map(move |two| (one, two))) {
                    if is_apart(&mine, one, two) != [[true, false], [false, true]] {
                        continue;
                    }
                    let (of_one, of_two) = match is_apart(&theirs, one, two) {
                        [[true, false], [false, true]] => (theirs[0], theirs[1]),
                        [[false, true], [true, false]] => (theirs[1], theirs[0]),
                        _ => continue,
                    };
                    let (Some((check, first)), Some((act, second))) =
                        (conflict(&mine[0].2[one], &of_one.2[one]), conflict(&mine[1].2[two], &of_two.2[two]))
                    else {
                        continue;
                    };
                    if check < first && second < act {
                        found.insert(Violation { check, between: [first, second], act, pattern: Pattern::Apart });
                    }
                }
            }
        }
    }
    found
}

/// The trace in another order, as far as it goes; `None`: a lock excludes it.
fn reordered(trace: &Trace, order: &[EventIndex]) -> Option<(Trace, BTreeMap<EventIndex, EventIndex>)> {
    let mut holders: BTreeMap<Address, Vec<(u32, LockMode)>> = BTreeMap::new();
    let mut places = vec![0; trace.threads.len()];
    let mut map = BTreeMap::new();
    let mut events = Events::new();
    for &index in order {
        let event = trace.event(index);
        let thread = event.thread.0;
        // Program order, without gaps.
        let own: Vec<EventIndex> = trace.indices().filter(|other| trace.event(*other).thread == event.thread).collect();
        assert_eq!(own[places[thread as usize]], index, "program order");
        places[thread as usize] += 1;
        let mut take = |lock: Address, mode: LockMode| {
            let all = holders.entry(lock).or_default();
            let excluded =
                all.iter().any(|(other, held)| *other != thread && (*held == LockMode::Exclusive || mode == LockMode::Exclusive));
            all.push((thread, mode));
            !excluded
        };
        let free = match event.kind {
            EventKind::Acquire { lock, mode, .. } => take(lock, mode),
            EventKind::WaitEnd { mutex, .. } => take(mutex, LockMode::Exclusive),
            _ => true,
        };
        if !free {
            return None;
        }
        if let EventKind::Release { lock, .. } | EventKind::WaitBegin { mutex: lock, .. } = event.kind {
            let all = holders.entry(lock).or_default();
            if let Some(at) = all.iter().rposition(|(other, _)| *other == thread) {
                all.remove(at);
            }
        }
        map.insert(EventIndex(events.len() as u32), index);
        events.push(event);
    }
    Some((Trace { events, ..trace.clone() }, map))
}

fn original(map: &BTreeMap<EventIndex, EventIndex>, violation: &Violation) -> Violation {
    let of = |index: EventIndex| map[&index];
    Violation { check: of(violation.check), between: violation.between.map(of), act: of(violation.act), ..*violation }
}

#[test]
fn what_is_observed_is_what_the_definition_says() {
    let mut counts = BTreeMap::<Pattern, usize>::new();
    for seed in 0..60_000 {
        let features =
            [Features::default(), Features { shared_locks: true, atomics: true, ..Features::default() }, Features::ALL];
        let features = features[seed as usize % 3];
        let shape = Shape { threads: 2 + (seed % 2) as u32, events: 44, variables: 1 + seed % 3, locks: 1 + seed % 2, features };
        let trace = random(seed, shape);
        let expected = by_definition(&trace);
        let found: BTreeSet<Violation> = observed(&trace, Deadline::NEVER).into_iter().collect();
        assert_eq!(found, expected, "seed {seed}\n{}", describe(&trace));
        for violation in found {
            *counts.entry(violation.pattern).or_default() += 1;
        }
    }
    assert!(counts.len() == 5 && counts.values().all(|count| *count > 10), "{counts:?}: too few");
}

#[test]
fn predicted_orders_show_the_violation_and_serial_ones_do_not() {
    let (mut shown, mut serial_orders, mut excluded) = (0, 0, 0);
    for seed in 0..20_000 {
        let features = Features { fork_join: seed % 2 == 0, atomics: seed % 3 == 0, ..Features::default() };
        let trace = random(seed, Shape { threads: 2, events: 36, variables: 1 + seed % 2, locks: 1 + seed % 3 / 2, features });
        for Prediction { violation, violated, serial, .. } in predict(&trace, &Options::default(), Ended::Well) {
            if let Some(order) = violated.first() {
                match reordered(&trace, order) {
                    Some((other, map)) => {
                        let found = observed(&other, Deadline::NEVER);
                        // What follows in the units may be cut off, and with it what the pattern is called by.
                        let shows = found.iter().any(|one| original(&map, one).accesses() == violation.accesses());
                        assert!(shows, "seed {seed}: {violation:?}\n{}", describe(&trace));
                        shown += 1;
                    }
                    // A unit that runs undivided may want a lock that is held.
                    None => excluded += 1,
                }
            }
            for (other, map) in serial.iter().filter_map(|order| reordered(&trace, order)) {
                let found = observed(&other, Deadline::NEVER);
                assert!(found.iter().all(|one| original(&map, one) != violation), "seed {seed}: {violation:?}");
                serial_orders += 1;
            }
        }
    }
    assert!(shown > 300 && serial_orders > shown && excluded * 4 < shown, "{shown} shown, {serial_orders}, {excluded}");
}
