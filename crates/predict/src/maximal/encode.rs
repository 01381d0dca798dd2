//! The slice as a problem: which events run, and in which order.
//!
//! A thread's events are a chain of nodes, the goal's last; what neither synchronises nor touches shared memory has none. A
//! literal per node says that it runs: if a node does, the one before it does. Clauses say what an event needs if it runs. Events
//! that do not run come last, in the order of the trace: an edge that the trace respects binds nothing that it should not, and
//! may always hold. Edges against the trace depend on literals that need not hold unless both events run.
//!
//! Where a part of the trace is ordered anew that does not begin with it, what comes before has run: it has no nodes, the writes
//! that it leaves are the first ones that reads may see, and its open sections end in the part, or not at all.
//!
//! What is said at once is linear in the slice, semaphores apart: their takes are matched with posts. That sections of one lock
//! exclude each other and that no write interferes with a read is said where a model disregards it ([`super::refine`]).

use super::facts::{Bytes, Facts};
use super::{Part, Target, needed_by};
use crate::index::{Effect, NEVER};
use rashomon_event::{EventIndex, Stand};
use rashomon_sat::{Literal, Node, Problem, Solver};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// A node by its number, which is its place among the nodes in the order of the trace.
pub type Number = usize;

/// Something that may be read: the write of a node, or what was there before all nodes (`None`).
#[derive(Clone, Debug)]
pub struct Choice {
    /// Holds if it is what the read is to see.
    pub literal: Literal,
    pub writer: Option<Number>,
    /// That reads keep what they saw from which the writer's value is computed.
    pub needs: Vec<Literal>,
}

/// A read of a cell, if its node runs.
#[derive(Clone, Debug)]
pub struct Obligation {
    pub cell: usize,
    /// The read is to see what it saw: it runs, and something depends on it. At least one literal holds then.
    pub kept: Literal,
    pub choices: Vec<Choice>,
}

/// What a node does.
#[derive(Clone, Debug)]
pub struct Step {
    pub event: EventIndex,
    pub runs: Literal,
    pub effect: Effect,
    pub reads: Vec<Obligation>,
    /// Cells.
    pub writes: Vec<usize>,
}

/// The bytes that one of these wrote.
fn bytes_of(writers: &[Option<EventIndex>; 8], writer: EventIndex) -> Bytes {
    (0..8).filter(|&byte| writers[byte] == Some(writer)).fold(0, |mask, byte| mask | 1 << byte)
}

/// The slice has too many nodes, matches of takes and posts, or choices.
pub struct TooLarge;

/// Most matches of the takes and posts of one semaphore, and most choices of all reads beyond one each.
const MATCHES: usize = 200_000;

pub struct Encoding<'f, 'a, 't> {
    pub facts: &'f Facts<'a, 't>,
    pub solver: Solver,
    pub part: Part,
    /// Per thread, the position of its goal.
    goals: Vec<Option<u32>>,
    pub steps: Vec<Step>,
    /// Per thread, its nodes: position and number.
    threads: Vec<Vec<(u32, Number)>>,
    pub cells: usize,
    /// Total literals: whether one node comes before another.
    before: FxHashMap<(Number, Number), Literal>,
    /// Per node that reads what need not matter: whether it is to see what it saw.
    kept: FxHashMap<Number, Literal>,
    /// Per write, the reads from which its value is computed, where these need not matter when it runs.
    computed: FxHashMap<Number, Vec<Literal>>,
    /// Pairs of sections that are known to exclude each other.
    pub excluded: FxHashSet<(u32, u32)>,
}

impl<'f, 'a, 't> Encoding<'f, 'a, 't> {
    /// At most so many nodes.
    pub fn new(facts: &'f Facts<'a, 't>, target: Target<'_>, part: Part, most: usize) -> Result<Self, TooLarge> {
        let threads = part.cut.len();
        let mut encoding = Self {
            facts,
            solver: Solver::new(Problem::new()),
            part,
            goals: vec![None; threads],
            steps: Vec::new(),
            threads: vec![Vec::new(); threads],
            cells: 0,
            before: FxHashMap::default(),
            kept: FxHashMap::default(),
            computed: FxHashMap::default(),
            excluded: FxHashSet::default(),
        };
        for &goal in target.goals {
            let (thread, at) = facts.index.place(goal);
            // Of two goals of one thread none but the first can be next.
            if encoding.goals[thread as usize].replace(at).is_some_and(|other| other != at) {
                encoding.problem().clause(&[]);
            }
        }
        encoding.nodes(target, most)?;
        encoding.structure();
        encoding.goals(target.goals);
        encoding.stands(target.stands);
        encoding.orders(target.orders);
        encoding.waits();
        encoding.uses(target.stands);
        encoding.memory()?;
        encoding.semaphores()?;
        Ok(encoding)
    }

    pub const fn problem(&mut self) -> &mut Problem {
        self.solver.problem_mut()
    }

    pub const fn node(number: Number) -> Node {
        Node(number as u32)
    }

    /// The node of an event of the slice that has one.
    pub fn number(&self, thread: u32, at: u32) -> Option<Number> {
        let nodes = &self.threads[thread as usize];
        nodes.binary_search_by_key(&at, |&(at, _)| at).ok().map(|place| nodes[place].1)
    }

    fn nodes(&mut self, target: Target<'_>, most: usize) -> Result<(), TooLarge> {
        let index = self.facts.index;
        let mut all: Vec<(EventIndex, u32, u32, Effect)> = Vec::new();
        let mut needed: Vec<FxHashSet<u32>> = vec![FxHashSet::default(); self.part.cut.len()];
        for (thread, at) in target.orders.iter().flat_map(|&(one, other)| [index.place(one), index.place(other)]) {
            needed[thread as usize].insert(at);
        }
        for (thread, at) in target.stands.iter().flat_map(|stand| needed_by(index, stand)) {
            needed[thread as usize].insert(at);
        }
        for thread in 0..self.part.cut.len() {
            for need in index.structure.of(thread).iter().take_while(|need| need.at < self.part.cut[thread]) {
                needed[thread].insert(need.at);
                needed[need.thread as usize].insert(need.count - 1);
            }
            if let Some((parent, fork)) = index.fork[thread] {
                needed[parent as usize].insert(fork);
            }
            if let Some(at) = self.goals[thread] {
                for (on, position) in index.kept_at(index.threads.at(thread, at)) {
                    needed[on as usize].insert(position);
                }
            }
        }
        for (thread, (&begin, &end)) in self.part.prefix.iter().zip(&self.part.cut).enumerate() {
            let mut steps = index.steps[thread].iter().skip_while(|step| step.at < begin).peekable();
            for at in begin..end {
                let event = index.threads.at(thread, at);
                let step = steps.next_if(|step| step.at == at);
                if step.is_some() || self.facts.is_shared(event) || needed[thread].contains(&at) || at + 1 == end {
                    all.push((event, thread as u32, at, step.map_or(Effect::None, |step| step.effect)));
                }
                if all.len() > most {
                    return Err(TooLarge);
                }
            }
        }
        all.sort_unstable_by_key(|&(event, ..)| event);
        let chains: Vec<_> = (0..self.part.cut.len()).map(|_| self.problem().chain()).collect();
        for (number, (event, thread, at, effect)) in all.into_iter().enumerate() {
            let runs = self.problem().variable().positive();
            self.problem().node(chains[thread as usize]);
            self.solver.prefer(!runs);
            if let Some(&(_, before)) = self.threads[thread as usize].last() {
                let before = self.steps[before].runs;
                self.problem().clause(&[!runs, before]);
            }
            self.threads[thread as usize].push((at, number));
            self.steps.push(Step { event, runs, effect, reads: Vec::new(), writes: Vec::new() });
        }
        Ok(())
    }

    /// If the literals hold, an event runs. The event's node, if it may run at all and has not run before.
    fn require(&mut self, unless: &[Literal], (thread, at): (u32, u32)) -> Option<Number> {
        if at < self.part.prefix[thread as usize] {
            return None;
        }
        let number = self.number(thread, at);
        let mut clause = unless.to_vec();
        clause.extend(number.map(|number| self.steps[number].runs));
        self.problem().clause(&clause);
        number
    }

    fn structure(&mut self) {
        let index = self.facts.index;
        for thread in 0..self.part.cut.len() {
            let end = self.part.cut[thread];
            for need in index.structure.of(thread).iter().take_while(|need| need.at < end) {
                let Some(number) = self.number(thread as u32, need.at) else { continue };
                let runs = self.steps[number].runs;
                if let Some(needed) = self.require(&[!runs], (need.thread, need.count - 1)) {
                    self.problem().edge(Self::node(needed), Self::node(number));
                }
            }
        }
    }

    fn goals(&mut self, goals: &[EventIndex]) {
        let index = self.facts.index;
        for &goal in goals {
            let (thread, at) = index.place(goal);
            if let Some(fork) = index.fork[thread as usize] {
                self.require(&[], fork);
            }
            if let Some(last) = at.checked_sub(1) {
                self.require(&[], (thread, last));
            }
            for needed in index.needed_at(goal) {
                self.require(&[], needed);
            }
        }
    }

    fn stands(&mut self, stands: &[Stand]) {
        for needed in stands.iter().flat_map(|stand| needed_by(self.facts.index, stand)) {
            self.require(&[], needed);
        }
    }

    fn orders(&mut self, orders: &[(EventIndex, EventIndex)]) {
        for &(one, other) in orders {
            let numbers = [one, other].map(|event| self.require(&[], self.facts.index.place(event)));
            if let [Some(one), Some(other)] = numbers {
                self.problem().edge(Self::node(one), Self::node(other));
            }
        }
    }

    /// A wait that a signal ends begins before the signal.
    fn waits(&mut self) {
        let index = self.facts.index;
        for signal in 0..self.steps.len() {
            for wait in index.woken_by.get(&self.steps[signal].event).into_iter().flatten() {
                let Some(begin) = self.number(wait.thread, wait.begin) else { continue };
                let (begin, signal) = (Self::node(begin), Self::node(signal));
                if self.goals[wait.thread as usize] == Some(wait.end) {
                    self.problem().edge(begin, signal);
                } else if let Some(end) = self.number(wait.thread, wait.end) {
                    let runs = self.steps[end].runs;
                    self.problem().edge_if(runs, begin, signal);
                }
            }
        }
    }

    /// A read has to see what it saw once something runs, or is next, that depends on it.
    fn uses(&mut self, stands: &[Stand]) {
        let (trace, index) = (self.facts.index.trace, self.facts.index);
        let keeps = |thread: u32| stands.iter().any(|stand| stand.has_begun() && stand.thread.0 == thread);
        for number in 0..self.steps.len() {
            let event = self.steps[number].event;
            let Some(one) = self.facts.use_of(event) else { continue };
            let (thread, _) = index.place(event);
            if keeps(thread) {
                continue;
            }
            let first = one.first.map(|first| index.place(first).1);
            if first.zip(self.goals[thread as usize]).is_some_and(|(first, goal)| goal >= first) {
                continue;
            }
            let kept = self.problem().variable().positive();
            self.solver.prefer(!kept);
            self.kept.insert(number, kept);
            // The node that runs only if everything up to the first event does.
            let nodes = &self.threads[thread as usize];
            let behind = first.and_then(|first| nodes.get(nodes.partition_point(|&(at, _)| at < first)));
            if let Some(&(_, behind)) = behind {
                let behind = self.steps[behind].runs;
                self.problem().clause(&[!behind, kept]);
            }
            for write in one.written.iter().filter(|write| trace.event(**write).thread.0 == thread) {
                if let Some(write) = self.number(thread, index.place(*write).1) {
                    self.computed.entry(write).or_default().push(kept);
                }
            }
        }
    }

    fn memory(&mut self) -> Result<(), TooLarge> {
        // Per granule, the bytes that accesses of the slice touch.
        let mut touched: BTreeMap<u32, Vec<Bytes>> = BTreeMap::new();
        for step in &self.steps {
            for read in self.facts.reads(step.event) {
                touched.entry(read.granule).or_default().push(read.bytes);
            }
            for (granule, bytes) in self.facts.writes(step.event) {
                touched.entry(granule).or_default().push(bytes);
            }
        }
        let before: FxHashMap<u32, [Option<EventIndex>; 8]> =
            touched.keys().map(|&granule| (granule, self.facts.writers_before(granule, self.part.from))).collect();
        for (granule, masks) in &mut touched {
            let writers = &before[granule];
            masks.extend(writers.iter().flatten().map(|&writer| bytes_of(writers, writer)));
        }
        // Cells: pieces of granules that none of them tells apart.
        let mut cells: FxHashMap<u32, Vec<(usize, Bytes)>> = FxHashMap::default();
        for (granule, masks) in touched {
            let mut pieces: Vec<Bytes> = vec![0xff];
            for mask in masks {
                pieces = pieces.iter().flat_map(|&piece| [piece & mask, piece & !mask]).filter(|&piece| piece != 0).collect();
            }
            cells.insert(granule, pieces.into_iter().enumerate().map(|(place, piece)| (self.cells + place, piece)).collect());
            self.cells += cells[&granule].len();
        }
        let mut writers: Vec<Vec<Number>> = vec![Vec::new(); self.cells];
        for number in 0..self.steps.len() {
            for (granule, bytes) in self.facts.writes(self.steps[number].event) {
                for &(cell, _) in cells[&granule].iter().filter(|(_, piece)| piece & bytes != 0) {
                    writers[cell].push(number);
                    self.steps[number].writes.push(cell);
                }
            }
        }
        let mut choices = 0;
        for number in 0..self.steps.len() {
            for read in self.facts.reads(self.steps[number].event) {
                for &(cell, piece) in cells[&read.granule].iter().filter(|(_, piece)| piece & read.bytes != 0) {
                    let first = before[&read.granule][piece.trailing_zeros() as usize];
                    let found = self.choices(number, (&read, piece), (first, &writers[cell]));
                    choices += found.len().saturating_sub(1);
                    if choices > MATCHES {
                        return Err(TooLarge);
                    }
                    let kept = self.kept_of(number);
                    self.steps[number].reads.push(Obligation { cell, kept, choices: found });
                }
            }
        }
        Ok(())
    }

    fn kept_of(&self, reader: Number) -> Literal {
        self.kept.get(&reader).copied().unwrap_or(self.steps[reader].runs)
    }

    /// What a read of a cell may see, with what each choice needs. `first`: who wrote what was there before all nodes.
    fn choices(
        &mut self,
        reader: Number,
        (read, piece): (&super::facts::Read, Bytes),
        (first, writers): (Option<EventIndex>, &[Number]),
    ) -> Vec<Choice> {
        let facts = self.facts;
        let event = self.steps[reader].event;
        let runs = self.kept_of(reader);
        let thread = facts.index.trace.event(event).thread;
        let of_own = |&&writer: &&Number| facts.index.trace.event(self.steps[writer].event).thread == thread;
        let own = writers.iter().filter(of_own).take_while(|&&writer| writer < reader).last().copied();
        let possible = |writer: Option<Number>| {
            // The thread's own writes come in its order.
            let behind = writer.is_some_and(|writer| of_own(&&writer) && writer >= reader);
            let hidden = own.is_some_and(|own| writer.is_none_or(|writer| of_own(&&writer) && writer < own));
            let written_by = writer.map_or(first, |writer| Some(self.steps[writer].event));
            !behind && !hidden && facts.may_see(event, read, written_by, piece)
        };
        let all = std::iter::once(None).chain(writers.iter().copied().map(Some));
        let writers: Vec<Option<Number>> = all.filter(|&writer| possible(writer)).collect();
        let mut choices = Vec::with_capacity(writers.len());
        for &writer in &writers {
            let literal = if writers.len() == 1 { runs } else { self.problem().variable().positive() };
            if writers.len() > 1 {
                let seen = writer.map_or(first, |writer| Some(self.steps[writer].event)) == read.writer;
                self.solver.prefer(if seen { literal } else { !literal });
            }
            let mut needs = Vec::new();
            if let Some(writer) = writer {
                let present = self.steps[writer].runs;
                self.problem().clause(&[!literal, present]);
                self.problem().edge_if(literal, Self::node(writer), Self::node(reader));
                needs = self.computed.get(&writer).cloned().unwrap_or_default();
                for &kept in &needs {
                    self.problem().clause(&[!literal, kept]);
                }
            }
            choices.push(Choice { literal, writer, needs });
        }
        if writers.len() != 1 {
            let mut clause = vec![!runs];
            clause.extend(choices.iter().map(|choice| choice.literal));
            self.problem().clause(&clause);
        }
        choices
    }

    /// Each take that runs has a token of its own: one that was there from the beginning, or a post before it. Such tokens can be
    /// given out iff no take finds the count at zero.
    fn semaphores(&mut self) -> Result<(), TooLarge> {
        let index = self.facts.index;
        for semaphore in self.facts.semaphores.values() {
            let numbers = |events: &[EventIndex]| -> Vec<Number> {
                let places = events.iter().map(|&event| index.place(event));
                places.filter_map(|(thread, at)| self.number(thread, at)).collect()
            };
            let (takes, posts) = (numbers(&semaphore.takes), numbers(&semaphore.posts));
            let before = |events: &[EventIndex]| events.partition_point(|event| *event < self.part.from) as u64;
            let initial = (semaphore.initial + before(&semaphore.posts)).saturating_sub(before(&semaphore.takes));
            if initial >= takes.len() as u64 {
                continue;
            }
            if (initial as usize).saturating_add(posts.len()).saturating_mul(takes.len()) > MATCHES {
                return Err(TooLarge);
            }
            let tokens: Vec<Option<Number>> = (0..initial).map(|_| None).chain(posts.into_iter().map(Some)).collect();
            let mut used: Vec<Vec<Literal>> = vec![Vec::new(); tokens.len()];
            for take in takes {
                let mut clause = vec![!self.steps[take].runs];
                for (token, used) in tokens.iter().zip(&mut used) {
                    let literal = self.problem().variable().positive();
                    self.solver.prefer(!literal);
                    for other in std::mem::take(used) {
                        self.problem().clause(&[!literal, !other]);
                        used.push(other);
                    }
                    used.push(literal);
                    if let &Some(post) = token {
                        let runs = self.steps[post].runs;
                        self.problem().clause(&[!literal, runs]);
                        self.problem().edge_if(literal, Self::node(post), Self::node(take));
                    }
                    clause.push(literal);
                }
                self.problem().clause(&clause);
            }
        }
        Ok(())
    }

    /// Whether one node comes before another one: a literal that is the same each time.
    pub fn before(&mut self, one: Number, other: Number) -> Literal {
        if one > other {
            return !self.before(other, one);
        }
        if let Some(&known) = self.before.get(&(one, other)) {
            return known;
        }
        let literal = self.problem().before(Self::node(one), Self::node(other));
        self.solver.prefer(literal);
        self.before.insert((one, other), literal);
        literal
    }

    /// Two sections, the earlier one of the trace first: if both begin, one ends before the other begins.
    pub fn exclude(&mut self, one: u32, other: u32) {
        if !self.excluded.insert((one, other)) {
            return;
        }
        let sections = [one, other].map(|number| self.facts.index.sections[number as usize]);
        let begins = sections.map(|section| self.number(section.thread, section.acquire));
        let ends = sections.map(|section| match section.release {
            NEVER => None,
            release => self.number(section.thread, release),
        });
        let mut clause: Vec<Literal> = begins.iter().flatten().map(|&begin| !self.steps[begin].runs).collect();
        for (end, next, observed) in [(ends[0], begins[1], true), (ends[1], begins[0], false)] {
            // A section that had begun before all nodes comes first.
            let (Some(end), Some(next)) = (end, next) else { continue };
            let literal = self.problem().variable().positive();
            self.solver.prefer(if observed { literal } else { !literal });
            let runs = self.steps[end].runs;
            self.problem().clause(&[!literal, runs]);
            self.problem().edge_if(literal, Self::node(end), Self::node(next));
            clause.push(literal);
        }
        self.problem().clause(&clause);
    }
}
