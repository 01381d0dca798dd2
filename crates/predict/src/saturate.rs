//! What must come before what, if a set of events is to run whole and every read is to see its writer.
//!
//! Computed: the least order over the *steps* of a set (synchronisation and shared accesses; the rest has no say) that contains
//! program order and needs and is closed under the rules below, as one vector of counts per step. Pavlogiannis, "Fast, Sound and
//! Effectively Complete Dynamic Race Prediction", POPL 2020, §4 (closed partial orders).
//!
//! 1. Of two sections of one lock that end: if the one begins before the other ends, it ends before the other begins.
//! 2. A section that stays open begins after all that it excludes have ended.
//! 3. A write of what a read sees from elsewhere: if it comes before the read, it comes before the read's writer; if it comes
//!    after that writer, it comes after the read. What a read sees from before the trace, no write precedes.
//!
//! 4. A wait that a signal ends begins before the signal.
//!
//! Guarantee: every order that runs the whole set, excludes and lets reads see their writers extends this one; a cycle refutes
//! the set. Cost: a round is linear in steps times threads; rounds are few in practice.

use crate::closure::Cut;
use crate::index::{Effect, Index, NEVER};
use rashomon_event::{EventIndex, LockMode};
use rashomon_order::SharedMemory;
use rustc_hash::FxHashMap;

/// A step is named by its thread and its number within it.
pub type Place = (u32, u32);

/// Bytes of a granule that no access of the set tells apart.
pub type Cell = u32;

#[derive(Clone, Debug)]
pub struct Step {
    pub at: u32,
    pub event: EventIndex,
    pub effect: Effect,
    /// What it sees: the writer's place, or nothing where the value is from before the trace.
    pub reads: Vec<(Cell, Option<Place>)>,
    pub writes: Vec<Cell>,
}

#[derive(Default)]
struct Accesses {
    /// Per thread.
    writes: Vec<(u32, Vec<u32>)>,
    reads: Vec<(Place, Option<Place>)>,
}

impl Accesses {
    fn of(&mut self, thread: u32) -> &mut Vec<u32> {
        let place = self.writes.iter().position(|entry| entry.0 == thread).unwrap_or_else(|| {
            self.writes.push((thread, Vec::new()));
            self.writes.len() - 1
        });
        &mut self.writes[place].1
    }
}

pub struct Steps {
    pub threads: Vec<Vec<Step>>,
    pub cells: usize,
    accesses: Vec<Accesses>,
    /// What comes before each step: per thread, how many steps. Its own thread apart.
    pub before: Vec<Vec<Cut>>,
}

/// The set cannot run whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cyclic;

impl Steps {
    /// The steps below the cut, with program order and needs; `None` if there are more than `limit`.
    pub fn new(index: &Index<'_>, memory: &SharedMemory, cut: &Cut, limit: usize) -> Option<Self> {
        let threads = cut.len();
        let mut steps =
            Self { threads: vec![Vec::new(); threads], cells: 0, accesses: Vec::new(), before: vec![Vec::new(); threads] };
        let mut next_step = vec![0usize; threads];
        let mut next_need = vec![0usize; threads];
        let mut memory_of = Memory::new(index, memory, cut);
        // Positions of steps, for needs, which are said in events.
        let mut total = 0;
        for event in merged(index, cut) {
            let (thread, at) = index.place(event);
            let t = thread as usize;
            let mut step = Step { at, event, effect: Effect::None, reads: Vec::new(), writes: Vec::new() };
            let mut counts = at == 0;
            if let Some(known) = index.steps[t].get(next_step[t])
                && known.at == at
            {
                next_step[t] += 1;
                step.effect = known.effect;
                counts = true;
            }
            let mut before = vec![0; threads];
            while let Some(need) = index.causal.of(t).get(next_need[t]).filter(|need| need.at == at) {
                next_need[t] += 1;
                counts = true;
                let on = &steps.threads[need.thread as usize];
                before[need.thread as usize] = on.partition_point(|step| step.at < need.count) as u32;
            }
            if let Some(access) = index.trace.access(event) {
                let place = (thread, steps.threads[t].len() as u32);
                memory_of.access(&access, memory, place, &mut step);
                counts |= !step.reads.is_empty() || !step.writes.is_empty();
            }
            if counts {
                total += 1;
                if total > limit {
                    return None;
                }
                steps.threads[t].push(step);
                steps.before[t].push(before);
            }
        }
        steps.cells = memory_of.cells.len();
        steps.accesses.resize_with(steps.cells, Accesses::default);
        for (thread, list) in steps.threads.iter().enumerate() {
            for (number, step) in list.iter().enumerate() {
                let place = (thread as u32, number as u32);
                for &cell in &step.writes {
                    steps.accesses[cell as usize].of(place.0).push(place.1);
                }
                for &(cell, writer) in &step.reads {
                    steps.accesses[cell as usize].reads.push((place, writer));
                }
            }
        }
        Some(steps)
    }

    /// The step that is the first one at or behind a position of a thread.
    fn at(&self, thread: u32, position: u32) -> u32 {
        self.threads[thread as usize].partition_point(|step| step.at < position) as u32
    }

    /// `one` comes before `other`.
    fn add(&mut self, one: Place, other: Place) -> Result<bool, Cyclic> {
        if one.0 == other.0 {
            return if one.1 < other.1 { Ok(false) } else { Err(Cyclic) };
        }
        let count = &mut self.before[other.0 as usize][other.1 as usize][one.0 as usize];
        let grew = *count <= one.1;
        *count = (*count).max(one.1 + 1);
        Ok(grew)
    }

    fn precedes(&self, one: Place, other: Place) -> bool {
        if one.0 == other.0 { one.1 < other.1 } else { self.before[other.0 as usize][other.1 as usize][one.0 as usize] > one.1 }
    }

    /// Makes `before` transitive.
    fn close(&mut self) -> Result<(), Cyclic> {
        let threads = self.threads.len();
        let mut done = vec![0u32; threads];
        loop {
            let mut moved = false;
            let mut waiting = false;
            for thread in 0..threads {
                while (done[thread] as usize) < self.threads[thread].len() {
                    let number = done[thread] as usize;
                    waiting = true;
                    if !self.before[thread][number].iter().zip(&done).all(|(needed, done)| needed <= done) {
                        break;
                    }
                    let mut row = self.before[thread][number].clone();
                    if number > 0 {
                        join(&mut row, &self.before[thread][number - 1]);
                    }
                    for on in (0..threads).filter(|&on| on != thread) {
                        if let Some(last) = row[on].checked_sub(1) {
                            let beyond = self.before[on][last as usize].clone();
                            join(&mut row, &beyond);
                        }
                    }
                    // Something before it comes after it.
                    if row[thread] as usize > number {
                        return Err(Cyclic);
                    }
                    self.before[thread][number] = row;
                    done[thread] += 1;
                    moved = true;
                }
            }
            if !waiting {
                return Ok(());
            }
            if !moved {
                return Err(Cyclic);
            }
        }
    }

    /// The rules, until nothing is added.
    pub fn saturate(&mut self, index: &Index<'_>, cut: &Cut) -> Result<(), Cyclic> {
        self.waits(index, cut)?;
        self.stay_open(index, cut)?;
        loop {
            self.close()?;
            let sections = self.sections(index, cut)?;
            if !(self.reads()? | sections) {
                return Ok(());
            }
        }
    }

    /// Rule 4.
    fn waits(&mut self, index: &Index<'_>, cut: &Cut) -> Result<(), Cyclic> {
        for (&signal, waits) in &index.woken_by {
            let (thread, at) = index.place(signal);
            if at >= cut[thread as usize] {
                continue;
            }
            let signal = (thread, self.at(thread, at));
            for wait in waits.iter().filter(|wait| wait.end < cut[wait.thread as usize]) {
                self.add((wait.thread, self.at(wait.thread, wait.begin)), signal)?;
            }
        }
        Ok(())
    }

    /// Rule 2.
    fn stay_open(&mut self, index: &Index<'_>, cut: &Cut) -> Result<(), Cyclic> {
        for thread in 0..cut.len() {
            for number in index.open_at(thread, cut[thread]) {
                let section = &index.sections[number as usize];
                let begin = (thread as u32, self.at(section.thread, section.acquire));
                for use_ in index.sections_on[section.lock as usize].iter().filter(|use_| use_.thread != section.thread) {
                    let sections = if section.mode == LockMode::Exclusive { &use_.sections } else { &use_.exclusive };
                    let below = cut[use_.thread as usize];
                    for other in sections.iter().map(|&number| &index.sections[number as usize]) {
                        if other.acquire >= below {
                            break;
                        }
                        if other.release >= below {
                            return Err(Cyclic);
                        }
                        self.add((use_.thread, self.at(use_.thread, other.release)), begin)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Rule 1.
    fn sections(&mut self, index: &Index<'_>, cut: &Cut) -> Result<bool, Cyclic> {
        let mut grew = false;
        for uses in index.sections_on.iter().filter(|uses| uses.len() > 1) {
            for use_ in uses {
                let below = cut[use_.thread as usize];
                let mine = use_.sections.iter().map(|&number| &index.sections[number as usize]);
                for section in mine.take_while(|section| section.acquire < below) {
                    if section.release >= below {
                        continue;
                    }
                    let begin = (use_.thread, self.at(use_.thread, section.acquire));
                    let end = (use_.thread, self.at(use_.thread, section.release));
                    for other in uses.iter().filter(|other| other.thread != use_.thread) {
                        let list = if section.mode == LockMode::Exclusive { &other.sections } else { &other.exclusive };
                        let known = self.before[end.0 as usize][end.1 as usize][other.thread as usize];
                        let begun = list.partition_point(|&number| {
                            let acquire = index.sections[number as usize].acquire;
                            acquire < cut[other.thread as usize] && self.at(other.thread, acquire) < known
                        });
                        // The latest of them; program order does the rest.
                        let Some(latest) = begun.checked_sub(1).map(|place| &index.sections[list[place] as usize]) else {
                            continue;
                        };
                        if latest.release == NEVER || latest.release >= cut[other.thread as usize] {
                            return Err(Cyclic);
                        }
                        grew |= self.add((other.thread, self.at(other.thread, latest.release)), begin)?;
                    }
                }
            }
        }
        Ok(grew)
    }

    /// Rule 3.
    fn reads(&mut self) -> Result<bool, Cyclic> {
        let mut edges = Vec::new();
        for accesses in &self.accesses {
            for &(read, writer) in &accesses.reads {
                for &(thread, ref writes) in &accesses.writes {
                    let known =
                        if thread == read.0 { read.1 } else { self.before[read.0 as usize][read.1 as usize][thread as usize] };
                    let earlier = writes.partition_point(|&write| write < known);
                    let latest = earlier.checked_sub(1).map(|place| (thread, writes[place]));
                    match (latest, writer) {
                        (Some(_), None) => return Err(Cyclic),
                        (Some(latest), Some(writer)) if latest != writer => edges.push((latest, writer)),
                        _ => {}
                    }
                    let later = match writer {
                        None => 0,
                        Some(writer) => {
                            writes.partition_point(|&write| (thread, write) == writer || !self.precedes(writer, (thread, write)))
                        }
                    };
                    // A read-modify-write does not come after itself.
                    let mut behind = writes[later..].iter().filter(|&&write| (thread, write) != read);
                    if let Some(&write) = behind.next() {
                        edges.push((read, (thread, write)));
                    }
                }
            }
        }
        let mut grew = false;
        for (one, other) in edges {
            grew |= self.add(one, other)?;
        }
        Ok(grew)
    }
}

fn join(row: &mut Cut, other: &Cut) {
    for (count, &known) in row.iter_mut().zip(other) {
        *count = (*count).max(known);
    }
}

/// The events below a cut, in the order of the trace.
fn merged(index: &Index<'_>, cut: &Cut) -> Vec<EventIndex> {
    let mut events: Vec<EventIndex> =
        cut.iter().enumerate().flat_map(|(thread, &count)| index.threads.range(thread, 0..count)).collect();
    events.sort_unstable();
    events
}

/// Splits granules into cells and follows who wrote them last in the trace.
struct Memory {
    /// Per granule, sets of bytes that are always accessed together, and the first of their cells' numbers.
    granules: FxHashMap<u32, (Vec<u8>, Cell)>,
    cells: Vec<Option<Place>>,
}

impl Memory {
    fn new(index: &Index<'_>, memory: &SharedMemory, cut: &Cut) -> Self {
        let mut granules: FxHashMap<u32, (Vec<u8>, Cell)> = FxHashMap::default();
        for (thread, &count) in cut.iter().enumerate() {
            let accesses = index.threads.range(thread, 0..count).filter_map(|event| index.trace.access(event));
            for access in accesses {
                for (granule, bytes) in memory.granules(&access) {
                    let (sets, _) = granules.entry(granule as u32).or_default();
                    let rest = sets.iter().fold(bytes, |rest, set| rest & !set);
                    let split = sets.iter().filter(|&&set| set & bytes != 0 && set & !bytes != 0).count();
                    for place in 0..if split > 0 { sets.len() } else { 0 } {
                        let (inside, outside) = (sets[place] & bytes, sets[place] & !bytes);
                        if inside != 0 && outside != 0 {
                            sets[place] = inside;
                            sets.push(outside);
                        }
                    }
                    if rest != 0 {
                        sets.push(rest);
                    }
                }
            }
        }
        let mut numbers: Vec<u32> = granules.keys().copied().collect();
        numbers.sort_unstable();
        let mut next = 0;
        for number in numbers {
            if let Some((sets, first)) = granules.get_mut(&number) {
                *first = next;
                next += sets.len() as u32;
            }
        }
        Self { granules, cells: vec![None; next as usize] }
    }

    fn access(&mut self, access: &rashomon_event::Access, memory: &SharedMemory, place: Place, step: &mut Step) {
        for (granule, bytes) in memory.granules(access) {
            let Some((sets, first)) = self.granules.get(&(granule as u32)) else { continue };
            for cell in sets.iter().enumerate().filter(|(_, set)| *set & bytes != 0).map(|(place, _)| first + place as u32) {
                if access.class.reads() {
                    step.reads.push((cell, self.cells[cell as usize]));
                }
                if access.class.writes() {
                    step.writes.push(cell);
                    self.cells[cell as usize] = Some(place);
                }
            }
        }
    }
}
