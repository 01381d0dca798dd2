//! Executions in which the steps of every object that is rarely touched come in an order that was drawn for it.
//!
//! H. Zhao, D. Wolff, U. Mathur, A. Roychoudhury, "Selectively Uniform Concurrency Testing", ASPLOS 2025: of few steps that
//! matter, such as those of one object, every order is as likely as any other, which is far from so if threads are drawn step by
//! step. Here an order is drawn for all such objects of an execution at once, one object after the other, as far as it does not
//! contradict what is drawn already, and the order of each thread, of creation, joins, barriers and critical sections. The
//! execution enforces them (`rashomon_logic::orders`) and decides as POS does where they say nothing; in long executions by
//! priorities of threads, since each change of the running thread takes time.
//!
//! An order of an object that was seen is not drawn again until many draws find no other. Half of the orders are drawn anew; the
//! others go on from one that showed something new, up to a point, and are drawn from there: an error that needs a long order is
//! found part by part, where the program shows the parts.
//!
//! Guarantee: as for any sample, none. Limits: an object is its address, a step is told by how many its thread made there
//! before. Objects with more than [`MOST_EVENTS`](crate::shape::MOST_EVENTS) steps have no order.

use crate::file::{End, Sampling};
use crate::log::Log;
use crate::order_table::{Order, StepId};
use crate::search::{Plan, Search};
use crate::shape::{Decided, Event, Shape};
use rashomon_abi::numbers::SplitMix;
use rashomon_event::counted;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hasher as _};

/// Of so many plans one orders nothing.
const UNORDERED: u64 = 16;
/// Executions without any order, where there is no object to be ordered.
const UNORDERED_AT_MOST: u64 = 64;
/// Steps up to which priorities are drawn anew for each.
const MOST_OF_POS: usize = 2_000;
/// Orders of one execution.
const MOST_ORDERS: usize = 1 << 11;
/// Executions that plans are made from, and orders of an object that are gone on from.
const MOST_KEPT: usize = 1 << 6;
const MOST_ELITE: usize = 1 << 4;
/// Draws for an order that was not seen.
const DRAWS: u32 = 64;
/// An order of two steps that was asked for so often and never came is not asked for any more.
const OFTEN: u32 = 3;

/// Threads, in the order of their steps at an object.
type Sequence = Vec<u32>;

/// What is known of an object.
#[derive(Clone, Debug, Default)]
struct Object {
    seen: HashSet<u64>,
    /// Behind which executions ended while threads had something to do: as after a failure.
    ended: HashSet<u64>,
    /// Which step found which one before it.
    inputs: HashSet<(u64, u64)>,
    /// Those that showed a new input.
    elite: VecDeque<Sequence>,
}

#[derive(Clone, Debug)]
pub struct Orders {
    random: SplitMix,
    given: u64,
    /// Plans that are not learned yet, oldest first: what was drawn for which object.
    open: VecDeque<Vec<(u64, Sequence)>>,
    objects: HashMap<u64, Object>,
    kept: VecDeque<Shape>,
    shapes: HashSet<u64>,
    /// How often an order was asked for and did not come; never again after it came once.
    vain: HashMap<Order, u32>,
    met: HashSet<Order>,
    /// Different orders of objects that were seen.
    seen: u64,
    /// Of the longest execution.
    steps: usize,
}

fn hash(of: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

fn sequence(events: &[Event]) -> Sequence {
    events.iter().map(|event| event.at.id.thread).collect()
}

impl Orders {
    pub fn new(seed: u64) -> Self {
        Self {
            random: SplitMix(SplitMix::mixed(seed)),
            given: 0,
            open: VecDeque::new(),
            objects: HashMap::new(),
            kept: VecDeque::new(),
            shapes: HashSet::new(),
            vain: HashMap::new(),
            met: HashSet::new(),
            seen: 0,
            steps: 0,
        }
    }

    /// Of executions that are known to be long.
    pub fn of_long(seed: u64) -> Self {
        Self { steps: usize::MAX, ..Self::new(seed) }
    }

    /// Whether there is an object whose steps could come in another order.
    pub fn has_choices(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Different orders of objects so far.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    fn shuffle<T>(&mut self, of: &mut [T]) {
        for at in (1..of.len()).rev() {
            let other = self.below(at + 1);
            of.swap(at, other);
        }
    }

    /// An order for the object that was not seen, if that is found soon.
    fn draw(&mut self, object: u64, events: &[Event]) -> Sequence {
        let base = sequence(events);
        let mut second = base.clone();
        for _ in 0..DRAWS {
            let mut drawn = base.clone();
            let mut from = 0;
            let elite = self.objects.get(&object).map_or(0, |known| known.elite.len());
            if elite > 0 && self.random.below(2) == 0 {
                let nth = self.below(elite);
                let known = self.objects.get(&object).and_then(|known| known.elite.get(nth)).cloned().unwrap_or_default();
                drawn = fitted(&known, &base);
                from = self.below(drawn.len());
            }
            self.shuffle(&mut drawn[from..]);
            let Some(known) = self.objects.get(&object) else { return drawn };
            let signature = hash(&drawn);
            if !known.seen.contains(&signature) {
                return drawn;
            }
            if !known.ended.contains(&signature) {
                second = drawn;
            }
        }
        second
    }

    /// Orders for the objects of an execution, and what was drawn.
    fn plan(&mut self, shape: &Shape) -> (Vec<Order>, Vec<(u64, Sequence)>) {
        let mut decided = Decided::default();
        shape.fixed.iter().for_each(|&edge| decided.add(edge));
        let mut objects: Vec<u64> = shape.objects.keys().copied().collect();
        self.shuffle(&mut objects);
        let (mut orders, mut drawn) = (Vec::new(), Vec::new());
        for object in objects {
            let events = &shape.objects[&object];
            let wanted = self.draw(object, events);
            for (one, other) in in_sequence(events, &wanted) {
                let Some((order, [from, to])) = shape.order(one, other) else { continue };
                if from.0 == to.0 || self.is_vain(&order) || decided.follows(from, to) || decided.follows(to, from) {
                    continue;
                }
                decided.add([from, to]);
                orders.push(order);
            }
            drawn.push((object, wanted));
            if orders.len() >= MOST_ORDERS {
                break;
            }
        }
        orders.truncate(MOST_ORDERS);
        (orders, drawn)
    }

    fn is_vain(&self, order: &Order) -> bool {
        self.vain.get(order).is_some_and(|times| *times >= OFTEN)
    }

    /// Which orders came, and which did not.
    fn judge(&mut self, orders: &[Order], positions: &HashMap<StepId, usize>) {
        for order in orders {
            match (positions.get(&order.first), positions.get(&order.then)) {
                (Some(first), Some(then)) if first < then => {
                    self.vain.remove(order);
                    self.met.insert(*order);
                }
                (_, Some(_)) if !self.met.contains(order) => *self.vain.entry(*order).or_default() += 1,
                _ => {}
            }
        }
    }

    /// What an execution showed.
    fn take_in(&mut self, log: &Log, orders: &[Order]) -> Shape {
        self.steps = self.steps.max(log.steps.len());
        let asked: HashSet<StepId> = orders.iter().flat_map(|order| [order.first, order.then]).collect();
        let shape = Shape::of(log, &asked);
        self.judge(orders, &shape.positions);
        for (object, events) in &shape.objects {
            let known = self.objects.entry(*object).or_default();
            let came = sequence(events);
            self.seen += u64::from(known.seen.insert(hash(&came)));
            let mut new = false;
            for two in events.windows(2) {
                new |= known.inputs.insert((two[0].site, two[1].site));
            }
            if new {
                known.elite.push_back(came);
                if known.elite.len() > MOST_ELITE {
                    known.elite.pop_front();
                }
            }
        }
        let threads: BTreeMap<u64, BTreeMap<u32, Vec<u64>>> = shape
            .objects
            .iter()
            .map(|(object, events)| {
                let mut threads: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
                events.iter().for_each(|event| threads.entry(event.at.id.thread).or_default().push(event.site));
                (*object, threads)
            })
            .collect();
        if !shape.objects.is_empty() && self.shapes.insert(hash(&threads)) {
            self.kept.push_back(shape.clone());
            if self.kept.len() > MOST_KEPT {
                let smallest = (0..self.kept.len()).min_by_key(|&nth| self.kept[nth].events());
                smallest.map(|nth| self.kept.remove(nth));
            }
        }
        shape
    }

    /// An execution that somebody else planned.
    pub fn watch(&mut self, log: &Log) {
        self.take_in(log, &[]);
    }
}

/// The one sequence with as many steps of each thread as the other.
fn fitted(known: &[u32], like: &[u32]) -> Sequence {
    let mut left: BTreeMap<u32, usize> = BTreeMap::new();
    like.iter().for_each(|thread| *left.entry(*thread).or_default() += 1);
    let mut take = |thread: &u32| {
        let left = left.get_mut(thread).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    };
    let mut fitted: Sequence = known.iter().copied().filter(&mut take).collect();
    fitted.extend(like.iter().copied().filter(&mut take));
    fitted
}

/// Each two events that follow each other, in the order of the sequence.
fn in_sequence<'e>(events: &'e [Event], sequence: &[u32]) -> Vec<(&'e Event, &'e Event)> {
    let mut of: HashMap<u32, VecDeque<&Event>> = HashMap::new();
    events.iter().for_each(|event| of.entry(event.at.id.thread).or_default().push_back(event));
    let sorted: Vec<&Event> = sequence.iter().filter_map(|thread| of.get_mut(thread)?.pop_front()).collect();
    sorted.windows(2).map(|two| (two[0], two[1])).collect()
}

impl Search for Orders {
    fn next(&mut self) -> Option<Plan> {
        if self.given >= UNORDERED_AT_MOST && !self.has_choices() {
            return None;
        }
        self.given += 1;
        let (mut orders, mut drawn) = (Vec::new(), Vec::new());
        if !self.kept.is_empty() && self.random.below(UNORDERED) != 0 {
            // The one that did most, the latest, or any: what fails is cut short.
            let most = (0..self.kept.len()).max_by_key(|&nth| self.kept[nth].events()).unwrap_or(0);
            let nth = match self.random.below(4) {
                0 | 1 => most,
                2 => self.kept.len() - 1,
                _ => self.below(self.kept.len()),
            };
            let shape = std::mem::take(&mut self.kept[nth]);
            (orders, drawn) = self.plan(&shape);
            self.kept[nth] = shape;
        }
        self.open.push_back(drawn);
        let sampling = Sampling::Ordered { pos: self.steps <= MOST_OF_POS };
        Some(Plan { sampling, seed: self.random.draw(), orders, ..Plan::of(Vec::new()) })
    }

    fn learn(&mut self, plan: &Plan, log: &Log, _end: End) {
        let drawn = self.open.pop_front().unwrap_or_default();
        let shape = self.take_in(log, &plan.orders);
        // If it failed, it did so there: the same is not wanted again.
        if let Some(object) = shape.last.filter(|_| !log.left.is_empty())
            && let Some((_, wanted)) = drawn.iter().find(|(drawn, _)| *drawn == object)
        {
            let known = self.objects.entry(object).or_default();
            known.seen.insert(hash(wanted));
            known.ended.insert(hash(wanted));
        }
    }

    fn is_exhaustive(&self) -> bool {
        false
    }

    fn parallel(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        let orders = counted(self.seen, "order");
        format!(
            "{} in which objects are touched in orders that they have not had ({orders} seen)",
            counted(self.given, "schedule")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Pending, Step};
    use rashomon_abi::exploration::Operation;
    use rashomon_abi::record::AccessClass;

    const DATA: u64 = 0x3000;
    const OTHER: u64 = 0x4000;

    /// Each thread writes both, in the order of these threads.
    fn log(order: &[u32]) -> Log {
        let step = |thread: u32, object: u64| {
            let operation = Operation { object, bytes: 4, class: AccessClass::Write as u64, ..Operation::default() };
            let does = Pending { operation, site: u64::from(thread) + 1, ..Pending::default() };
            Step { thread, enabled: u64::MAX, asleep: 0, waiting: 0, does, after: None }
        };
        let steps = order.iter().flat_map(|&thread| [step(thread, DATA), step(thread, OTHER)]).collect();
        Log { steps, ..Log::default() }
    }

    /// The steps of a log as a plan orders them, the first that may be next.
    fn obeyed(log: &Log, plan: &Plan) -> Log {
        let id = |nth: usize| {
            let (step, of) = (&log.steps[nth], |step: &Step| (step.thread, step.does.operation.object));
            let number = log.steps[..nth].iter().filter(|earlier| of(earlier) == of(step)).count() as u64;
            StepId { thread: step.thread, place: step.does.operation.object, number }
        };
        let mut open: Vec<usize> = (0..log.steps.len()).collect();
        let mut made: Vec<usize> = Vec::new();
        while !open.is_empty() {
            let may = |&nth: &usize| {
                let first_of_thread = open.iter().all(|&other| other >= nth || log.steps[other].thread != log.steps[nth].thread);
                let done = |step: &StepId| made.iter().any(|&done| id(done) == *step);
                first_of_thread && plan.orders.iter().all(|order| order.then != id(nth) || done(&order.first))
            };
            let next = *open.iter().find(|nth| may(nth)).expect("the orders of a plan contradict nothing");
            made.push(next);
            open.retain(|&other| other != next);
        }
        Log { steps: made.into_iter().map(|nth| log.steps[nth].clone()).collect(), ..Log::default() }
    }

    #[test]
    fn the_first_execution_orders_nothing() {
        let mut search = Orders::new(0);
        assert!(search.next().is_some_and(|plan| plan.orders.is_empty() && plan.sampling == Sampling::Ordered { pos: true }));
    }

    #[test]
    fn all_orders_of_an_object_come_and_none_contradicts_another() {
        let mut search = Orders::new(0);
        let first = log(&[0, 1, 2, 3]);
        let plan = search.next().expect("it has no end");
        search.learn(&plan, &first, End::None);
        for _ in 0..60 {
            let plan = search.next().expect("it has no end");
            search.learn(&plan, &obeyed(&first, &plan), End::None);
        }
        assert_eq!(search.objects[&DATA].seen.len(), 24, "all orders of four threads");
        assert_eq!(search.objects[&OTHER].seen.len(), 24);
        assert!(search.vain.is_empty());
    }

    #[test]
    fn what_never_comes_is_not_asked_for_again() {
        let mut search = Orders::new(0);
        let always = log(&[0, 1]);
        for _ in 0..100 {
            let plan = search.next().expect("it has no end");
            search.learn(&plan, &always, End::None);
        }
        let late: Vec<Plan> = (0..20).filter_map(|_| search.next()).collect();
        assert!(late.iter().flat_map(|plan| &plan.orders).all(|order| order.first.thread == 0), "{late:?}");
    }

    #[test]
    fn where_nothing_is_shared_it_ends() {
        let mut search = Orders::new(0);
        let mut given = 0;
        while let Some(plan) = search.next() {
            search.learn(&plan, &log(&[0]), End::None);
            given += 1;
            assert!(given < 1_000);
        }
        assert_eq!(given, UNORDERED_AT_MOST);
    }

    #[test]
    fn a_known_sequence_fits_other_counts() {
        assert_eq!(fitted(&[2, 1, 2], &[1, 1, 2]), [2, 1, 1]);
        assert_eq!(fitted(&[], &[0, 1]), [0, 1]);
    }
}
