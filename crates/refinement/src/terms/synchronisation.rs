//! Processes of synchronisation objects. Each refuses what its object forbids, and allows `done` at any time.

use super::{Alphabet, Builder, numbered};
use crate::facts::{Barrier, Wait};
use rashomon_csp::term::{Event, Events, Term, TermId};
use rashomon_event::{Address, EventIndex, EventKind, LockMode};
use std::collections::{BTreeMap, BTreeSet};

/// What one thread does with a lock: events that take it, events that give it back.
#[derive(Default)]
struct Uses {
    takes: BTreeSet<Event>,
    gives: BTreeSet<Event>,
}

#[derive(Default)]
struct Lock {
    exclusive: BTreeMap<usize, Uses>,
    shared: Uses,
    /// Sections of readers, at most all at once.
    readers: usize,
}

impl Builder<'_> {
    /// All objects together, and the events in which they take part.
    pub(super) fn synchronisation(&mut self, alphabet: &Alphabet, done: Event, suffix: &str) -> Option<(TermId, Alphabet)> {
        let mut all: Vec<(TermId, Alphabet)> = Vec::new();
        self.creation(&mut all, done, suffix);
        for (name, lock) in self.locks() {
            all.push(self.lock(&format!("{name}{suffix}"), &lock, done));
        }
        for (name, (events, initial, posts)) in self.semaphores() {
            all.push(self.semaphore(&format!("{name}{suffix}"), &events, (initial, posts), done));
        }
        for wait in self.facts.waits.clone() {
            if matches!(self.trace.kind(wait.signal), EventKind::Signal { .. }) {
                all.extend(self.signal(wait, done));
            }
        }
        for barrier in self.facts.barriers.values().cloned().collect::<Vec<_>>() {
            all.extend(self.barrier(&barrier, done));
        }
        let mut edges: BTreeMap<EventIndex, BTreeSet<EventIndex>> = BTreeMap::new();
        for &(before, after) in &self.facts.edges {
            edges.entry(before).or_default().insert(after);
        }
        for (before, after) in edges {
            let first = self.known(before)?;
            let later = after.into_iter().filter_map(|after| self.known(after)).collect();
            all.push(self.after(&format!("EDGE_{}{suffix}", numbered(before)), &[first], later, done));
        }
        debug_assert!(all.iter().all(|(_, events)| events.is_subset(alphabet)));
        self.composed(all)
    }

    /// In a balanced tree. Two sides share the events that both know.
    fn composed(&mut self, mut all: Vec<(TermId, Alphabet)>) -> Option<(TermId, Alphabet)> {
        while all.len() > 1 {
            let mut next = Vec::new();
            let mut rest = all.into_iter();
            while let Some((one, mut events)) = rest.next() {
                let Some((other, others)) = rest.next() else {
                    next.push((one, events));
                    break;
                };
                let common = events.intersection(&others).copied().collect::<Events>();
                events.extend(others);
                next.push((self.processes.make(Term::Parallel(one, common, other)), events));
            }
            all = next;
        }
        all.pop()
    }

    fn known(&mut self, index: EventIndex) -> Option<Event> {
        let name = self.names.of(self.trace, &self.facts, index)?;
        Some(self.event(name))
    }

    /// The choice among these, and to be done.
    fn or_done(&mut self, mut all: Vec<TermId>, done: Event) -> TermId {
        let skip = self.skip();
        all.push(self.prefix(done, skip));
        self.choice(all)
    }

    /// The first events in their order, then the others as often as they come.
    fn after(&mut self, name: &str, first: &[Event], others: BTreeSet<Event>, done: Event) -> (TermId, Alphabet) {
        let open = self.declare(format!("{name}_OPEN"));
        let again = self.call(open);
        let steps = others.iter().map(|&event| self.processes.make(Term::Prefix(event, again))).collect();
        let body = self.or_done(steps, done);
        self.define(open, body);
        let mut process = again;
        for &event in first.iter().rev() {
            let step = self.prefix(event, process);
            process = self.or_done(vec![step], done);
        }
        let name = self.declare(name.to_owned());
        self.define(name, process);
        (self.call(name), others.into_iter().chain(first.iter().copied()).chain([done]).collect())
    }

    fn creation(&mut self, all: &mut Vec<(TermId, Alphabet)>, done: Event, suffix: &str) {
        let mut joins: BTreeMap<usize, BTreeSet<Event>> = BTreeMap::new();
        for index in self.trace.indices() {
            if let EventKind::Join { child, .. } = self.trace.kind(index)
                && self.names.is_joined(child.index())
            {
                let event = self.known(index);
                joins.entry(child.index()).or_default().extend(event);
            }
        }
        for thread in 0..self.facts.threads.len() {
            if let Some(fork) = self.facts.fork[thread]
                && let Some(fork) = self.known(fork)
            {
                let start = self.names.start(thread);
                let start = self.event(start);
                all.push(self.after(&format!("FORK_{}{suffix}", thread + 1), &[fork, start], BTreeSet::new(), done));
            }
            if let Some(joins) = joins.remove(&thread) {
                let end = self.names.end(thread);
                let end = self.event(end);
                all.push(self.after(&format!("JOIN_{}{suffix}", thread + 1), &[end], joins, done));
            }
        }
    }

    fn locks(&mut self) -> BTreeMap<String, Lock> {
        let mut locks: BTreeMap<String, Lock> = BTreeMap::new();
        for index in self.trace.indices() {
            let event = self.trace.event(index);
            let (address, mode, takes) = match event.kind {
                EventKind::Acquire { lock, mode, .. } => (lock, mode, true),
                EventKind::Release { lock, mode } => (lock, mode, false),
                EventKind::WaitBegin { mutex, .. } => (mutex, LockMode::Exclusive, false),
                EventKind::WaitEnd { mutex, .. } => (mutex, LockMode::Exclusive, true),
                _ => continue,
            };
            if self.facts.idle.contains(&index) {
                continue;
            }
            let Some(known) = self.known(index) else { continue };
            let lock = locks.entry(format!("MUTEX_{}", self.names.object('m', address))).or_default();
            let uses = match mode {
                LockMode::Exclusive => lock.exclusive.entry(event.thread.index()).or_default(),
                LockMode::Shared => {
                    lock.readers += usize::from(takes);
                    &mut lock.shared
                }
            };
            if takes {
                uses.takes.insert(known)
            } else {
                uses.gives.insert(known)
            };
        }
        locks
    }

    fn lock(&mut self, name: &str, lock: &Lock, done: Event) -> (TermId, Alphabet) {
        let events = lock.exclusive.values().chain([&lock.shared]).flat_map(|uses| uses.takes.iter().chain(&uses.gives));
        let alphabet = events.copied().chain([done]).collect();
        // By how many readers hold it.
        let free: Vec<_> = (0..=lock.readers)
            .map(|readers| self.declare(if readers == 0 { name.to_owned() } else { format!("{name}_READ_{readers}") }))
            .collect();
        let mut owned = Vec::new();
        for (thread, uses) in &lock.exclusive {
            let held = self.declare(format!("{name}_HELD_{}", thread + 1));
            let unlocked = self.call(free[0]);
            let gives = uses.gives.iter().map(|&event| self.processes.make(Term::Prefix(event, unlocked))).collect();
            let body = self.or_done(gives, done);
            self.define(held, body);
            let held = self.call(held);
            owned.extend(uses.takes.iter().map(|&event| (event, held)));
        }
        for readers in 0..=lock.readers {
            let mut steps = Vec::new();
            if readers == 0 {
                steps.extend(owned.iter().map(|&(event, held)| self.processes.make(Term::Prefix(event, held))));
            } else {
                let fewer = self.call(free[readers - 1]);
                steps.extend(lock.shared.gives.iter().map(|&event| self.processes.make(Term::Prefix(event, fewer))));
            }
            if readers < lock.readers {
                let more = self.call(free[readers + 1]);
                steps.extend(lock.shared.takes.iter().map(|&event| self.processes.make(Term::Prefix(event, more))));
            }
            let body = self.or_done(steps, done);
            self.define(free[readers], body);
        }
        (self.call(free[0]), alphabet)
    }

    /// By name: events that post and take, the initial count, how many posts there are.
    fn semaphores(&mut self) -> BTreeMap<String, (Uses, u32, u32)> {
        let mut semaphores: BTreeMap<Address, (Uses, u32, u32)> = BTreeMap::new();
        for index in self.trace.indices() {
            let (semaphore, takes) = match self.trace.kind(index) {
                EventKind::Post { semaphore } => (semaphore, false),
                EventKind::Take { semaphore } => (semaphore, true),
                _ => continue,
            };
            let Some(known) = self.known(index) else { continue };
            let (uses, initial, posts) = semaphores.entry(semaphore).or_default();
            *initial = self.facts.counts.get(&semaphore).copied().unwrap_or(0);
            *posts += u32::from(!takes);
            if takes {
                uses.takes.insert(known)
            } else {
                uses.gives.insert(known)
            };
        }
        semaphores.into_iter().map(|(address, known)| (format!("SEMAPHORE_{}", self.names.object('s', address)), known)).collect()
    }

    fn semaphore(&mut self, name: &str, uses: &Uses, (initial, posts): (u32, u32), done: Event) -> (TermId, Alphabet) {
        let most = (initial + posts) as usize;
        let counts: Vec<_> = (0..=most).map(|count| self.declare(format!("{name}_{count}"))).collect();
        for count in 0..=most {
            let mut steps = Vec::new();
            if count < most {
                let more = self.call(counts[count + 1]);
                steps.extend(uses.gives.iter().map(|&event| self.processes.make(Term::Prefix(event, more))));
            }
            if count > 0 {
                let fewer = self.call(counts[count - 1]);
                steps.extend(uses.takes.iter().map(|&event| self.processes.make(Term::Prefix(event, fewer))));
            }
            let body = self.or_done(steps, done);
            self.define(counts[count], body);
        }
        let alphabet = uses.takes.iter().chain(&uses.gives).copied().chain([done]).collect();
        (self.call(counts[initial as usize]), alphabet)
    }

    /// A signal wakes its waiter only if that waits already.
    fn signal(&mut self, wait: Wait, done: Event) -> Option<(TermId, Alphabet)> {
        let (signal, woken) = (self.known(wait.signal)?, self.known(wait.end)?);
        let over = self.or_done(Vec::new(), done);
        let wakes = self.prefix(woken, over);
        let wakes = self.or_done(vec![wakes], done);
        let signalled = self.prefix(signal, wakes);
        let Some(begin) = wait.begin else {
            return Some((self.or_done(vec![signalled], done), [signal, woken, done].into()));
        };
        let begin = self.known(begin)?;
        let waits = self.or_done(vec![signalled], done);
        let waits = self.prefix(begin, waits);
        let too_late = self.prefix(begin, over);
        let too_late = self.or_done(vec![too_late], done);
        let lost = self.prefix(signal, too_late);
        Some((self.or_done(vec![waits, lost], done), [begin, signal, woken, done].into()))
    }

    /// All enter, in any order, before any leaves.
    fn barrier(&mut self, barrier: &Barrier, done: Event) -> Option<(TermId, Alphabet)> {
        let exits: BTreeSet<Event> = barrier.exits.iter().filter_map(|&exit| self.known(exit)).collect();
        let enters: Vec<Event> = barrier.enters.iter().filter_map(|&enter| self.known(enter)).collect();
        let first = *barrier.exits.first()?;
        let alphabet = exits.iter().chain(&enters).copied().chain([done]).collect();
        let name = format!("BARRIER_{}", numbered(first));
        let known = self.processes.definitions.iter().position(|(other, _)| *other == format!("{name}_OPEN"));
        let open = match known {
            Some(known) => {
                let known = rashomon_csp::term::Name(known as u32);
                self.call(known)
            }
            None => self.after(&name, &[], exits, done).0,
        };
        let skip = self.skip();
        let each = enters.iter().map(|&enter| self.processes.make(Term::Prefix(enter, skip))).collect();
        let nothing = Events::default();
        let Some(all) = self.combine(each, |one, other| Term::Parallel(one, nothing.clone(), other)) else {
            return Some((open, alphabet));
        };
        Some((self.processes.make(Term::Sequence(all, open)), alphabet))
    }
}
