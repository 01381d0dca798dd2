//! Executions in which the steps of every object that is rarely touched come in an order that was drawn for it.
//!
//! H. Zhao, D. Wolff, U. Mathur, A. Roychoudhury, "Selectively Uniform Concurrency Testing", ASPLOS 2025: of few steps that
//! matter, such as those of one object, every order is as likely as any other, which is far from so if threads are drawn step by
//! step. Here an order is drawn for all such objects of an execution at once, one object after the other, as far as it does not
//! contradict what is drawn already, and the order of each thread, of creation, joins, barriers and critical sections. The
//! execution enforces them (`rashomon_logic::orders`) and decides as POS does where they say nothing; in long executions by
//! priorities of threads, since each change of the running thread takes time.
//!
//! An order of an object that was seen is not drawn again until many draws find no other; in short executions nor are orders of
//! all objects that came together, and half of the plans draw any order of an object that has few. Half of the orders are drawn
//! anew; the others go on from one that showed something new, up to a point, and are drawn from there: an error that needs a
//! long order is found part by part, where the program shows the parts. In short executions, of four orders that were not seen
//! that one is taken in which most steps come right behind one that they never came behind. A recording that failed is tried
//! first, in the orders that its objects had. What an execution failed behind is avoided from then on, as it would keep all
//! that comes later from being tried: two steps of it are turned round.
//!
//! In long executions objects that can have few orders come first, and those all of whose orders were tried come last: an
//! object's order is drawn among those that leave what is decided as it is, and what is decided first has most to choose from.
//! So that every object has that choice at times, half of the plans begin with any that has orders left.
//! There what a thread does at an object before it goes on elsewhere mostly stays together, and an order that was asked for twice
//! and did not come counts as seen.
//!
//! Guarantee: as for any sample, none. Limits: an object is its address, a step is told by how many its thread made there
//! before. Objects with more than [`MOST_EVENTS`](crate::shape::MOST_EVENTS) steps have no order, but for [crowds](crate::crowd).

use crate::crowd;
use crate::extension::{Sequence, Units, changes, fitted, hash, hash_of_all, logarithm, sequence, shuffle};
use crate::file::{End, Sampling};
use crate::log::Log;
use crate::order_table::{Order, StepId};
use crate::search::{Plan, Search};
use crate::shape::{Decided, Event, Shape};
use rashomon_abi::numbers::SplitMix;
use rashomon_event::counted;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

/// Of so many plans one orders nothing.
const UNORDERED: u64 = 16;
/// Executions without any order, where no object has steps whose order could be another one.
const UNORDERED_AT_MOST: u64 = 64;
/// Steps up to which priorities are drawn anew for each.
const MOST_OF_POS: usize = 2_000;
/// Orders of one execution.
const MOST_ORDERS: usize = 1 << 11;
/// Steps that are looked at for a plan: so many for each of the execution, in all from ten milliseconds' worth to a second's, so
/// that planning takes hardly longer than executing. What they do not suffice for comes as it may.
const LOOKED_AT_EACH: u64 = 1 << 6;
const LOOKED_AT: [u64; 2] = [1 << 17, 1 << 23];
/// Executions that plans are made from, and orders of an object that are gone on from.
const MOST_KEPT: usize = 1 << 6;
const MOST_ELITE: usize = 1 << 4;
/// Draws for an order that was not seen.
const DRAWS: u32 = 64;
/// Of so many of them in short executions the one is taken that brings together most that was not.
const CHOICE: usize = 4;
/// An order of two steps that was asked for so often and never came is not asked for any more.
const OFTEN: u32 = 3;
/// An order of an object that was asked for so often and did not come counts as seen.
const TRIES: u32 = 2;
/// Of an object that so many plans found no new order for though they began with it, one after the other, all count as tried.
const DRY: u32 = 3;
/// Of so many plans of long executions one begins with any object that has orders left.
const ANY_FIRST: usize = 2;
/// Of so many plans of long executions one takes apart what a thread does at an object at once.
const APART: u64 = 4;
/// Draws for orders of all objects that did not come together; half as many each time that none is found, and twice as many when
/// one is.
const DRAWS_OF_ALL: u32 = 16;
/// The logarithm of a number of orders of an object that counts as few: six.
const FEW_ORDERS: f64 = 1.8;
/// Orders of an object that are avoided, the latest.
const MOST_AVOIDED: usize = 8;

/// What is known of an object.
#[derive(Clone, Debug, Default)]
struct Object {
    seen: FxHashSet<u64>,
    /// How often an order was asked for and did not come.
    tried: FxHashMap<u64, u32>,
    /// Plans in a row that began with it and found no new order.
    dry: u32,
    /// Behind which executions ended while threads had something to do: as after a failure.
    ended: VecDeque<Sequence>,
    /// What its threads did there.
    shapes: FxHashSet<u64>,
    /// Which step found which one before it.
    inputs: FxHashSet<(u64, u64)>,
    /// Those that showed a new input; in long executions, those that made a thread do something else there, too.
    elite: VecDeque<Sequence>,
}

impl Object {
    /// Steps that would find one before them which they have not found there.
    fn new_inputs(&self, units: &Units<'_>, order: &[usize]) -> usize {
        let pairs = order.windows(2).filter_map(|two| units.between(two[0], two[1]));
        pairs.filter(|(one, other)| !self.inputs.contains(&(one.site, other.site))).count()
    }
}

#[derive(Clone, Debug)]
pub struct Orders {
    random: SplitMix,
    given: u64,
    /// Plans that are not learned yet, oldest first: what was drawn for which object.
    open: VecDeque<Vec<(u64, Sequence)>>,
    objects: FxHashMap<u64, Object>,
    kept: VecDeque<Shape>,
    shapes: FxHashSet<u64>,
    /// In short executions: orders of all objects together that came, or were asked for.
    together: FxHashSet<u64>,
    draws_of_all: u32,
    /// How often an order was asked for and did not come; never again after it came once.
    vain: FxHashMap<Order, u32>,
    met: FxHashSet<Order>,
    /// Different orders of objects that were seen.
    seen: u64,
    /// Of the longest execution.
    steps: usize,
    /// Threads meet at objects with too many steps to be ordered.
    is_busy: bool,
    /// Orders of the first plan: those of a recording that failed. As they are known they would not be drawn.
    first: Option<Vec<Order>>,
}

/// What a plan orders so far.
#[derive(Default)]
struct Planned {
    decided: Decided,
    orders: Vec<Order>,
    /// Steps of `decided` that may be looked at.
    most: u64,
}

impl Planned {
    fn is_full(&self) -> bool {
        self.orders.len() >= MOST_ORDERS || self.decided.looked_at() >= self.most
    }
}

impl Orders {
    pub fn new(seed: u64) -> Self {
        Self {
            random: SplitMix(SplitMix::mixed(seed)),
            given: 0,
            open: VecDeque::new(),
            objects: FxHashMap::default(),
            kept: VecDeque::new(),
            shapes: FxHashSet::default(),
            together: FxHashSet::default(),
            draws_of_all: DRAWS_OF_ALL,
            vain: FxHashMap::default(),
            met: FxHashSet::default(),
            seen: 0,
            steps: 0,
            is_busy: false,
            first: None,
        }
    }

    /// Of executions that are known to be long, where others search, too: it ends where no object can be ordered.
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

    fn is_long(&self) -> bool {
        self.steps > MOST_OF_POS
    }

    /// What tells an order of an object. In long executions a thread may do more there at once, or less.
    fn signature(&self, sequence: &[u32]) -> u64 {
        if self.is_long() { hash(&changes(sequence)) } else { hash(&sequence) }
    }

    /// An order for the object among those that it may have. `fresh`: one that was not seen, if that is found soon; otherwise any
    /// but those that ended an execution. `free`: no other object's order was drawn before it.
    fn draw(&mut self, object: u64, units: &Units<'_>, fresh: bool, free: bool) -> Vec<usize> {
        let base = units.threads();
        let choices = if fresh && !self.is_long() { CHOICE } else { 1 };
        let (mut found, mut second) = (Vec::new(), None);
        for _ in 0..DRAWS {
            let nearest = units.nearest(&self.shuffled(object, &base));
            let sequence = units.sequence(&nearest);
            let signature = self.signature(&sequence);
            let Some(known) = self.objects.get(&object) else { return nearest };
            let is_new = !known.seen.contains(&signature) || !fresh && !known.ended.contains(&sequence);
            if is_new && known.tried.get(&signature).is_none_or(|times| *times < TRIES) {
                found.push(nearest);
            } else if !known.ended.contains(&sequence) {
                second = Some(nearest);
            }
            if found.len() == choices {
                break;
            }
        }
        let Some(known) = self.objects.get_mut(&object) else { return units.nearest(&base) };
        // Behind others an object may have no new order though there are some.
        known.dry = if found.is_empty() { known.dry.saturating_add(u32::from(free)) } else { 0 };
        let best = found.into_iter().min_by_key(|order| Reverse(known.new_inputs(units, order)));
        best.or(second).unwrap_or_else(|| units.nearest(&base))
    }

    /// Drawn anew, or gone on from one that showed something new.
    fn shuffled(&mut self, object: u64, base: &[u32]) -> Sequence {
        let elite = self.objects.get(&object).map_or(0, |known| known.elite.len());
        if elite == 0 || self.below(2) != 0 {
            let mut drawn = base.to_vec();
            shuffle(&mut self.random, &mut drawn);
            return drawn;
        }
        let nth = self.below(elite);
        let known = self.objects.get(&object).and_then(|known| known.elite.get(nth)).cloned().unwrap_or_default();
        let mut drawn = fitted(&known, base);
        let from = self.below(drawn.len());
        shuffle(&mut self.random, &mut drawn[from..]);
        drawn
    }

    /// The execution that the next plan is made from: the one that did most, the latest, or any, as what fails is cut short.
    fn choose(&mut self) -> usize {
        let most = (0..self.kept.len()).max_by_key(|&nth| self.kept[nth].events()).unwrap_or(0);
        match self.random.below(4) {
            0 | 1 => most,
            2 | 3 if self.is_long() && self.random.below(2) == 0 => most,
            2 => self.kept.len() - 1,
            _ => self.below(self.kept.len()),
        }
    }

    /// Orders for the objects of an execution, and what was drawn.
    fn plan(&mut self, shape: &Shape) -> (Vec<Order>, Vec<(u64, Sequence)>) {
        let most = (self.steps as u64).saturating_mul(LOOKED_AT_EACH).clamp(LOOKED_AT[0], LOOKED_AT[1]);
        let mut planned = Planned { most, ..Planned::default() };
        shape.fixed.iter().for_each(|&edge| planned.decided.add(edge));
        for crowd in shape.crowds.values() {
            for two in crowd::pairs(crowd, &mut self.random) {
                if !planned.is_full() {
                    self.put(shape, Some(two), false, &mut planned);
                }
            }
        }
        let whole = self.is_long() && self.random.below(APART) != 0;
        let objects = self.in_turn(shape, whole);
        for &object in &objects {
            if planned.is_full() {
                break;
            }
            self.avoid(shape, object, whole, &mut planned);
        }
        // Of an object that has few orders, all are soon seen: which of them come together matters then.
        let every_new = self.is_long() || self.random.below(2) == 0;
        let mut drawn = Vec::new();
        for object in objects {
            let units = Units::of(shape, &shape.objects[&object], whole, &planned.decided);
            let fresh = every_new || logarithm(units.threads().into_iter()) > FEW_ORDERS;
            let wanted = self.draw(object, &units, fresh, drawn.is_empty());
            for two in wanted.windows(2) {
                self.put(shape, units.between(two[0], two[1]), whole, &mut planned);
            }
            drawn.push((object, units.sequence(&wanted)));
            if planned.is_full() {
                break;
            }
        }
        planned.orders.truncate(MOST_ORDERS);
        (planned.orders, drawn)
    }

    /// The objects of an execution, those first that have most to choose from.
    fn in_turn(&mut self, shape: &Shape, whole: bool) -> Vec<u64> {
        let mut objects: Vec<u64> = shape.objects.keys().copied().collect();
        shuffle(&mut self.random, &mut objects);
        if !self.is_long() {
            return objects;
        }
        let mut ranked = Vec::new();
        for object in objects {
            let dry = self.objects.get(&object).is_some_and(|known| known.dry >= DRY);
            let orders = logarithm(shape.units(&shape.objects[&object], whole).iter().map(|unit| unit[0].at.id.thread));
            let stretched = orders * (1.0 + self.below(1 << 10) as f64 / f64::from(1 << 10));
            ranked.push((dry, stretched, object));
        }
        ranked.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        // An object with many orders would always come behind the others, which leave it few.
        let open = ranked.iter().filter(|(dry, ..)| !dry).count();
        if open > 0 && self.below(ANY_FIRST) == 0 {
            let nth = self.below(open);
            ranked[..=nth].rotate_right(1);
        }
        ranked.into_iter().map(|(_, _, object)| object).collect()
    }

    /// Turns round two steps of each order behind which an execution ended.
    fn avoid(&mut self, shape: &Shape, object: u64, whole: bool, planned: &mut Planned) {
        let ended = self.objects.get(&object).map(|known| known.ended.clone()).unwrap_or_default();
        for sequence in ended {
            let units = Units::of(shape, &shape.objects[&object], whole, &planned.decided);
            let order = units.nearest(&fitted(&sequence, &units.threads()));
            let can_turn = |two: &&[usize]| units.are_apart(two[0], two[1]) && units.may_come(two[1], two[0]);
            let turns: Vec<&[usize]> = order.windows(2).filter(can_turn).collect();
            if turns.is_empty() {
                continue;
            }
            let turn = turns[self.below(turns.len())];
            self.put(shape, units.between(turn[1], turn[0]), whole, planned);
        }
    }

    /// One event comes before the other, unless that is decided already.
    fn put(&self, shape: &Shape, two: Option<(&Event, &Event)>, whole: bool, planned: &mut Planned) {
        let Some((order, [from, to])) = two.and_then(|(one, other)| shape.order(one, other, whole)) else { return };
        let decided = &planned.decided;
        if from.0 == to.0 || self.is_vain(&order) || decided.follows(from, to) || decided.follows(to, from) {
            return;
        }
        planned.decided.add([from, to]);
        planned.orders.push(order);
    }

    fn is_vain(&self, order: &Order) -> bool {
        self.vain.get(order).is_some_and(|times| *times >= OFTEN)
    }

    /// Which orders came, and which did not.
    fn judge(&mut self, orders: &[Order], positions: &FxHashMap<StepId, usize>) {
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
        let asked: FxHashSet<StepId> = orders.iter().flat_map(|order| [order.first, order.then]).collect();
        let shape = Shape::of(log, &asked);
        self.judge(orders, &shape.positions);
        self.is_busy |= shape.is_busy;
        let is_long = self.is_long();
        if !is_long {
            let came: Vec<(u64, Sequence)> = shape.objects.iter().map(|(object, events)| (*object, sequence(events))).collect();
            self.together.insert(hash_of_all(came.iter().map(|(object, order)| (*object, order.as_slice()))));
        }
        let mut threads: BTreeMap<u64, BTreeMap<u32, Vec<u64>>> = BTreeMap::new();
        for (object, events) in &shape.objects {
            let of = threads.entry(*object).or_default();
            events.iter().for_each(|event| of.entry(event.at.id.thread).or_default().push(event.site));
            let came = sequence(events);
            let signature = self.signature(&came);
            let known = self.objects.entry(*object).or_default();
            self.seen += u64::from(known.seen.insert(signature));
            let mut new = is_long && known.shapes.insert(hash(&*of)) && known.shapes.len() > 1;
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
        // Of long executions those are kept that came furthest.
        let events = shape.events();
        let is_short = self.is_long() && log.is_cut && self.kept.iter().any(|kept| kept.events() >= events);
        if shape.has_choices() && !is_short && self.shapes.insert(hash(&threads)) {
            self.kept.push_back(shape.clone());
            if self.kept.len() > MOST_KEPT {
                let smallest = (0..self.kept.len()).min_by_key(|&nth| self.kept[nth].events());
                smallest.map(|nth| self.kept.remove(nth));
            }
        }
        shape
    }

    /// Every object's order, as it came.
    fn again(&self, shape: &Shape) -> Vec<Order> {
        let mut planned = Planned::default();
        shape.fixed.iter().for_each(|&edge| planned.decided.add(edge));
        for two in shape.objects.values().flat_map(|events| events.windows(2)) {
            self.put(shape, Some((&two[0], &two[1])), false, &mut planned);
        }
        planned.orders.truncate(MOST_ORDERS);
        planned.orders
    }

    /// An execution that somebody else planned.
    pub fn watch(&mut self, log: &Log) {
        self.take_in(log, &[]);
    }
}

impl Search for Orders {
    fn next(&mut self) -> Option<Plan> {
        let goes_on = self.has_choices() || self.is_busy && self.steps < usize::MAX;
        if self.given >= UNORDERED_AT_MOST && !goes_on {
            return None;
        }
        self.given += 1;
        let (mut orders, mut drawn) = (Vec::new(), Vec::new());
        if let Some(again) = self.first.take() {
            orders = again;
        } else if !self.kept.is_empty() && self.random.below(UNORDERED) != 0 {
            let mut is_new = false;
            for _ in 0..self.draws_of_all {
                let nth = self.choose();
                let shape = std::mem::take(&mut self.kept[nth]);
                (orders, drawn) = self.plan(&shape);
                self.kept[nth] = shape;
                let all = hash_of_all(drawn.iter().map(|(object, order)| (*object, order.as_slice())));
                is_new = self.is_long() || self.together.insert(all);
                if is_new {
                    break;
                }
            }
            self.draws_of_all = if is_new { (self.draws_of_all * 2).min(DRAWS_OF_ALL) } else { (self.draws_of_all / 2).max(1) };
        }
        self.open.push_back(drawn);
        let sampling = Sampling::Ordered { pos: self.steps <= MOST_OF_POS };
        Some(Plan { sampling, seed: self.random.draw(), orders, ..Plan::of(Vec::new()) })
    }

    fn learn(&mut self, plan: &Plan, log: &Log, _end: End) {
        let drawn = self.open.pop_front().unwrap_or_default();
        let shape = self.take_in(log, &plan.orders);
        if !log.is_cut {
            // In short ones what else is drawn may make it come another time.
            for (object, wanted) in drawn.iter().filter(|_| self.steps > MOST_OF_POS) {
                let signature = self.signature(wanted);
                if let Some(known) = self.objects.get_mut(object).filter(|known| !known.seen.contains(&signature)) {
                    *known.tried.entry(signature).or_default() += 1;
                }
            }
        } else if let Some(object) = shape.last {
            // If it failed, it did so there: the same is not wanted again.
            let wanted = drawn.into_iter().find(|(drawn, _)| *drawn == object).map(|(_, wanted)| wanted);
            let came = sequence(&shape.objects[&object]);
            let signatures: Vec<u64> = wanted.iter().chain([&came]).map(|sequence| self.signature(sequence)).collect();
            let known = self.objects.entry(object).or_default();
            known.seen.extend(signatures);
            known.ended.push_back(wanted.unwrap_or(came));
            if known.ended.len() > MOST_AVOIDED {
                known.ended.pop_front();
            }
        }
    }

    fn is_exhaustive(&self) -> bool {
        false
    }

    fn recorded(&mut self, log: &Log, failed: bool) {
        let shape = self.take_in(log, &[]);
        self.first = failed.then(|| self.again(&shape));
    }

    /// The first execution is what all orders are drawn from: until it is known, another one would be drawn blindly.
    fn parallel(&self) -> bool {
        self.steps > 0
    }

    fn describe(&self) -> String {
        let orders = counted(self.seen, "order");
        format!(
            "{} in which objects are touched in orders that they have not had ({orders} seen)",
            counted(self.given - self.open.len() as u64, "schedule")
        )
    }
}

#[cfg(test)]
mod tests;
