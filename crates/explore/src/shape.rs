//! What threads did to the objects that they meet at rarely, and what of it has to come in the order that it had.
//!
//! Objects that a few steps touch are where an order can be chosen as a whole; locks that all steps of a program take, and
//! counters that all of them change, are left alone. Of two steps in critical sections of one lock it is the sections that are
//! ordered, the outermost common one: that one of them waits inside would keep the other from ever coming there.

use crate::log::{Log, Step};
use crate::order_table::{Order, StepId};
use rashomon_abi::exploration::NO_WAIT;
use rashomon_abi::record::Op;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// Steps of an object that counts as rarely touched.
pub const MOST_EVENTS: usize = 64;
/// Steps of an object that a crowd comes to, and of each thread in the mean.
const MOST_OF_CROWD: usize = 1 << 10;
const MOST_OF_EACH: usize = 8;
/// Steps of executions in which crowds are looked for.
const MOST_WITH_CROWDS: usize = 1 << 14;
/// Rounds of barriers whose order is known; what threads do in different rounds of further ones is tried in vain.
const MOST_ROUNDS: usize = 1 << 10;

/// A step with its place in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    pub id: StepId,
    pub index: usize,
}

/// A critical section in which something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Section {
    lock: u64,
    begin: At,
    /// `None`: the execution ended before.
    end: Option<At>,
}

/// A step that touches an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub at: At,
    pub site: u64,
    pub gives: bool,
    /// Indices of critical sections around it, the outermost first.
    sections: Vec<usize>,
    /// The thread's first step elsewhere behind it, if that cannot wait for others.
    next: Option<At>,
    /// It comes right behind another step of its thread at this object.
    joins: bool,
}

/// A step in a log, with its thread.
pub type Place = (u32, usize);
/// An order of steps, by their places.
pub type Edge = [Place; 2];

#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// By object, in their order.
    pub objects: BTreeMap<u64, Vec<Event>>,
    /// Objects with more steps than those, by so many threads that each makes few of them.
    pub crowds: BTreeMap<u64, Vec<Event>>,
    /// Threads meet at other objects, too, which have still more steps.
    pub is_busy: bool,
    sections: Vec<Section>,
    /// Threads are created before they run, joined after, and leave barriers when all have come.
    pub fixed: Vec<Edge>,
    /// Where the steps came that were asked about.
    pub positions: FxHashMap<StepId, usize>,
    /// What the thread of the last step touched last.
    pub last: Option<u64>,
}

/// A lock that a thread has.
struct Held {
    lock: u64,
    begin: At,
    section: Option<usize>,
}

#[derive(Default)]
struct Builder {
    shape: Shape,
    counts: FxHashMap<(u32, u64), u64>,
    /// Objects with too many steps: one of the threads that come there, and whether any step changes the object.
    frequent: FxHashMap<u64, (u32, bool)>,
    held: FxHashMap<u32, Vec<Held>>,
    /// By thread: the object that its last step was at, and its first event there since it came.
    stays: FxHashMap<u32, (u64, usize)>,
    barriers: FxHashMap<u64, Barrier>,
    rounds: u32,
    /// Steps of an object that are kept.
    most: usize,
}

/// Who has come, and what each thread's next exit belongs to.
#[derive(Default)]
struct Barrier {
    came: Vec<(u32, usize)>,
    /// Of threads that have come and not gone, the round.
    round: FxHashMap<u32, Option<u32>>,
}

impl Shape {
    /// `asked`: steps whose places in the log are of interest.
    pub fn of(log: &Log, asked: &FxHashSet<StepId>) -> Self {
        let places: FxHashSet<(u32, u64)> = asked.iter().map(|step| (step.thread, step.place)).collect();
        let most = if log.steps.len() <= MOST_WITH_CROWDS { MOST_OF_CROWD } else { MOST_EVENTS };
        let mut builder = Builder { most, ..Builder::default() };
        for (index, step) in log.steps.iter().enumerate() {
            let place = step.does.operation.counted_at();
            builder.thread_edges(log, index, step);
            if place == 0 {
                continue;
            }
            let count = builder.counts.entry((step.thread, place)).or_default();
            let at = At { id: StepId { thread: step.thread, place, number: *count }, index };
            *count += 1;
            if places.contains(&(step.thread, place)) && asked.contains(&at.id) {
                builder.shape.positions.insert(at.id, index);
            }
            let joins = builder.moves(step, at);
            builder.step(step, at, joins);
        }
        for (number, birth) in (0_u32..).zip(&log.threads) {
            if let Some(birth) = birth
                && let Some(parent) = birth.parent
                && let Some(created) = birth.steps.checked_sub(1)
            {
                builder.shape.fixed.push([(parent, created), (number, created + 1)]);
            }
        }
        let mut shape = builder.shape;
        for (object, events) in std::mem::take(&mut shape.objects) {
            let threads: BTreeSet<u32> = events.iter().map(|event| event.at.id.thread).collect();
            if threads.len() < 2 || !events.iter().any(|event| event.gives) {
                continue;
            }
            if events.len() <= MOST_EVENTS {
                shape.objects.insert(object, events);
            } else if events.len() <= threads.len() * MOST_OF_EACH {
                shape.crowds.insert(object, events);
            } else {
                shape.is_busy = true;
            }
        }
        shape.last = log.steps.last().and_then(|last| {
            let of_it = |event: &&Event| event.at.id.thread == last.thread;
            let latest =
                shape.objects.iter().filter_map(|(object, events)| Some((events.iter().rfind(of_it)?.at.index, *object)));
            latest.max().map(|(_, object)| object)
        });
        shape
    }

    /// The critical sections around a step, without the one that it begins: who has a lock first need not be the first to leave
    /// it, where threads wait for each other for ever.
    fn around<'s>(&'s self, event: &'s Event) -> impl Iterator<Item = &'s Section> {
        let sections = event.sections.iter().map(|&number| &self.sections[number]);
        sections.filter(|section| section.begin.index != event.at.index)
    }

    /// The events of an object, those of a thread together that no other thread's can come between, as all are in sections of one
    /// lock. `whole`: those that follow each other without any other step of the thread stay together, too.
    pub fn units<'e>(&self, events: &'e [Event], whole: bool) -> Vec<Vec<&'e Event>> {
        let section = |event: &Event, lock: u64| {
            event
                .sections
                .iter()
                .copied()
                .find(|&nth| self.sections[nth].lock == lock && self.sections[nth].begin.index != event.at.index)
        };
        let mut locks = events.first().into_iter().flat_map(|event| self.around(event)).map(|section| section.lock);
        let common = locks.find(|&lock| events.iter().all(|event| section(event, lock).is_some()));
        let mut units: Vec<Vec<&Event>> = Vec::new();
        // Of each thread, its last unit.
        let mut last: FxHashMap<u32, usize> = FxHashMap::default();
        for event in events {
            let thread = event.at.id.thread;
            let before = last.get(&thread).copied().filter(|&nth| {
                let together = |lock| units[nth].last().is_some_and(|before| section(before, lock) == section(event, lock));
                common.is_some_and(together) || whole && event.joins
            });
            match before {
                Some(nth) => units[nth].push(event),
                None => {
                    last.insert(thread, units.len());
                    units.push(vec![event]);
                }
            }
        }
        units
    }

    /// Whether there is an object whose steps could come in another order.
    pub fn has_choices(&self) -> bool {
        !self.objects.is_empty() || !self.crowds.is_empty()
    }

    /// How many there are.
    pub fn events(&self) -> usize {
        self.objects.values().map(Vec::len).sum()
    }

    /// That one event comes before the other, as an order of steps and with their indices. `None`: it cannot be kept. `whole`:
    /// with all that the thread does there before it goes on elsewhere.
    pub fn order(&self, one: &Event, other: &Event, whole: bool) -> Option<(Order, Edge)> {
        let of = |event: &Event, lock: u64| self.around(event).find(|section| section.lock == lock).copied();
        let common = self.around(other).find(|section| of(one, section.lock).is_some());
        let (first, then) = match common {
            Some(section) => (of(one, section.lock)?.end?, section.begin),
            None => (one.next.filter(|_| whole).unwrap_or(one.at), other.at),
        };
        let edge = [(first.id.thread, first.index), (then.id.thread, then.index)];
        Some((Order { first: first.id, then: then.id }, edge))
    }
}

impl Builder {
    /// The thread goes on from where it was, or makes another step there: then it says so.
    fn moves(&mut self, step: &Step, at: At) -> bool {
        let Some(&(place, first)) = self.stays.get(&at.id.thread) else { return false };
        if place == at.id.place {
            return true;
        }
        self.stays.remove(&at.id.thread);
        let operation = &step.does.operation;
        let never_waits = operation.class != 0 || matches!(Op::from_code(operation.op), Some(Op::Unlock | Op::BarrierEnter));
        if let Some(events) = self.shape.objects.get_mut(&place).filter(|_| never_waits) {
            let of_thread = events.iter_mut().skip(first).filter(|event| event.at.id.thread == at.id.thread);
            of_thread.for_each(|event| event.next = Some(at));
        }
        false
    }

    fn step(&mut self, step: &Step, at: At, joins: bool) {
        let operation = &step.does.operation;
        match Op::from_code(operation.op) {
            Some(Op::Unlock | Op::UnlockShared) => return self.leave(operation.object, at),
            Some(Op::BarrierEnter | Op::BarrierExit) => return self.barrier(operation, at),
            _ => {}
        }
        let acquires = matches!(Op::from_code(operation.op), Some(Op::Lock | Op::LockShared)) && operation.second != NO_WAIT;
        if acquires {
            self.held.entry(at.id.thread).or_default().push(Held { lock: operation.object, begin: at, section: None });
        }
        if let Some((thread, gives)) = self.frequent.get_mut(&at.id.place) {
            *gives |= operation.gives();
            self.shape.is_busy |= *gives && *thread != at.id.thread;
            return;
        }
        let mut sections = Vec::new();
        for held in self.held.get_mut(&at.id.thread).into_iter().flatten() {
            let known = &mut self.shape.sections;
            sections.push(*held.section.get_or_insert_with(|| {
                known.push(Section { lock: held.lock, begin: held.begin, end: None });
                known.len() - 1
            }));
        }
        let events = self.shape.objects.entry(at.id.place).or_default();
        self.stays.entry(at.id.thread).or_insert((at.id.place, events.len()));
        events.push(Event { at, site: step.does.site, gives: operation.gives(), sections, next: None, joins });
        if events.len() > self.most {
            let events = self.shape.objects.remove(&at.id.place).unwrap_or_default();
            let gives = events.iter().any(|event| event.gives);
            self.shape.is_busy |= gives && events.iter().any(|event| event.at.id.thread != at.id.thread);
            self.frequent.insert(at.id.place, (at.id.thread, gives));
        }
    }

    fn leave(&mut self, lock: u64, at: At) {
        let Some(held) = self.held.get_mut(&at.id.thread) else { return };
        let Some(nth) = held.iter().rposition(|held| held.lock == lock) else { return };
        if let Some(section) = held.remove(nth).section {
            self.shape.sections[section].end = Some(At { id: StepId { place: at.id.place, ..at.id }, ..at });
        }
    }

    /// A round is a thread of its own: all come before it, and go behind it.
    fn barrier(&mut self, operation: &rashomon_abi::exploration::Operation, at: At) {
        const ROUNDS: u32 = 1 << 20;
        let barrier = self.barriers.entry(operation.object).or_default();
        let thread = at.id.thread;
        if operation.op == Op::BarrierEnter as u64 {
            barrier.came.push((thread, at.index));
            barrier.round.insert(thread, None);
            return;
        }
        // Whoever leaves first leaves behind all that have come since the last round.
        if !matches!(barrier.round.get(&thread), Some(Some(_))) {
            self.rounds += 1;
            let round = ROUNDS + self.rounds;
            for (came, index) in std::mem::take(&mut barrier.came) {
                barrier.round.insert(came, Some(round));
                if self.rounds as usize <= MOST_ROUNDS {
                    self.shape.fixed.push([(came, index), (round, 0)]);
                }
            }
        }
        if let Some(Some(round)) = barrier.round.remove(&thread)
            && self.rounds as usize <= MOST_ROUNDS
        {
            self.shape.fixed.push([(round, 0), (thread, at.index)]);
        }
    }

    /// Who joins a thread comes behind its end.
    fn thread_edges(&mut self, log: &Log, index: usize, step: &Step) {
        if step.does.operation.op != Op::ThreadJoin as u64 {
            return;
        }
        let Some(joined) = step.does.operation.object.checked_sub(1).map(|number| number as u32) else { return };
        let ended = log.steps[..index].iter().rposition(|earlier| earlier.thread == joined);
        self.shape.fixed.extend(ended.map(|ended| [(joined, ended), (step.thread, index)]));
    }
}

/// Which orders follow from those that are decided.
#[derive(Clone, Debug, Default)]
pub struct Decided {
    /// By thread: from which step an edge leads where.
    edges: FxHashMap<u32, BTreeSet<(usize, Place)>>,
    /// Steps that were looked at to answer so far.
    looked_at: Cell<u64>,
}

/// What comes behind a step in any case: of each thread the earliest step.
#[derive(Clone, Debug, Default)]
pub struct Behind(FxHashMap<u32, usize>);

impl Behind {
    pub fn includes(&self, step: Place) -> bool {
        self.0.get(&step.0).is_some_and(|&earliest| earliest <= step.1)
    }
}

impl Decided {
    pub fn add(&mut self, [from, to]: Edge) {
        self.edges.entry(from.0).or_default().insert((from.1, to));
    }

    /// Steps that were looked at to answer so far: what the answers cost.
    pub fn looked_at(&self) -> u64 {
        self.looked_at.get()
    }

    /// Each step counts as behind itself.
    pub fn behind(&self, from: Place) -> Behind {
        self.reach(from, None)
    }

    /// Whether the one step comes before the other in any case.
    pub fn follows(&self, from: Place, to: Place) -> bool {
        self.reach(from, Some(to)).includes(to)
    }

    /// What comes behind a step, all of it or until this one is known to.
    fn reach(&self, from: Place, until: Option<Place>) -> Behind {
        let mut reached = Behind::default();
        let mut open = vec![from];
        while let Some(place) = open.pop() {
            self.looked_at.set(self.looked_at.get() + 1);
            let (thread, index) = place;
            let before = reached.0.get(&thread).copied().unwrap_or(usize::MAX);
            if index >= before {
                continue;
            }
            reached.0.insert(thread, index);
            if until.is_some_and(|until| thread == until.0 && index <= until.1) {
                break;
            }
            if let Some(edges) = self.edges.get(&thread) {
                open.extend(edges.range((index, (0, 0))..(before, (0, 0))).map(|(_, to)| to));
            }
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Pending;
    use rashomon_abi::exploration::Operation;
    use rashomon_abi::record::AccessClass;

    const LOCK: u64 = 0x2000;
    const DATA: u64 = 0x3000;

    fn log(steps: &[(u32, Operation)]) -> Log {
        let step = |&(thread, operation): &(u32, Operation)| {
            let does = Pending { operation, site: 1, ..Pending::default() };
            Step { thread, enabled: 3, asleep: 0, waiting: 0, does, after: None }
        };
        Log { steps: steps.iter().map(step).collect(), ..Log::default() }
    }

    fn on(op: Op, object: u64) -> Operation {
        Operation { op: op as u64, object, ..Operation::default() }
    }

    fn write(object: u64) -> Operation {
        Operation { object, bytes: 4, class: AccessClass::Write as u64, ..Operation::default() }
    }

    fn section(thread: u32) -> [(u32, Operation); 3] {
        [(thread, on(Op::Lock, LOCK)), (thread, write(DATA)), (thread, on(Op::Unlock, LOCK))]
    }

    #[test]
    fn what_is_under_one_lock_is_ordered_by_its_sections() {
        let log = log(&[section(0), section(1)].concat());
        let shape = Shape::of(&log, &FxHashSet::default());
        let [one, other] = &shape.objects[&DATA][..] else { panic!("{shape:?}") };
        let (order, edge) = shape.order(other, one, false).expect("both sections end");
        assert_eq!((order.first.thread, order.then.thread, order.then.place), (1, 0, LOCK));
        assert_eq!(order.first.place, on(Op::Unlock, LOCK).counted_at());
        assert_eq!(edge, [(1, 5), (0, 0)]);
    }

    #[test]
    fn of_a_lock_it_is_the_acquisitions_that_are_ordered() {
        let shape = Shape::of(&log(&[section(0), section(1)].concat()), &FxHashSet::default());
        let events = &shape.objects[&LOCK];
        let (order, edge) = shape.order(&events[1], &events[0], false).expect("nothing is in their way");
        assert_eq!((order.first.place, edge), (LOCK, [(1, 3), (0, 0)]));
    }

    #[test]
    fn steps_without_a_common_lock_are_ordered_themselves() {
        let log = log(&[(0, write(DATA)), (1, write(DATA)), (0, write(DATA))]);
        let shape = Shape::of(&log, &FxHashSet::default());
        let events = &shape.objects[&DATA];
        let (order, _) = shape.order(&events[2], &events[1], false).expect("nothing is in their way");
        assert_eq!(order.first, StepId { thread: 0, place: DATA, number: 1 });
        assert_eq!(order.then, StepId { thread: 1, place: DATA, number: 0 });
    }

    #[test]
    fn what_is_touched_often_or_by_one_thread_has_no_order() {
        let often: Vec<(u32, Operation)> = (0..=MOST_EVENTS as u32).map(|nth| (nth % 2, write(DATA))).collect();
        assert!(Shape::of(&log(&often), &FxHashSet::default()).objects.is_empty());
        assert!(Shape::of(&log(&[(0, write(DATA)), (0, write(DATA))]), &FxHashSet::default()).objects.is_empty());
    }

    #[test]
    fn what_many_threads_touch_rarely_is_a_crowd() {
        let crowd: Vec<(u32, Operation)> = (0..=MOST_EVENTS as u32).map(|nth| (nth, write(DATA))).collect();
        let shape = Shape::of(&log(&crowd), &FxHashSet::default());
        assert_eq!((shape.objects.len(), shape.crowds[&DATA].len()), (0, MOST_EVENTS + 1));
    }

    #[test]
    fn nobody_leaves_a_barrier_before_all_have_come() {
        let steps = [
            (0, write(DATA)),
            (0, on(Op::BarrierEnter, LOCK)),
            (1, on(Op::BarrierEnter, LOCK)),
            (1, on(Op::BarrierExit, LOCK)),
            (1, write(DATA)),
            (0, on(Op::BarrierExit, LOCK)),
        ];
        let shape = Shape::of(&log(&steps), &FxHashSet::default());
        let mut decided = Decided::default();
        shape.fixed.iter().for_each(|&edge| decided.add(edge));
        assert!(decided.follows((0, 0), (1, 4)) && !decided.follows((1, 4), (0, 0)));
        assert!(decided.follows((1, 2), (0, 5)) && !decided.follows((1, 3), (0, 5)));
    }
}
