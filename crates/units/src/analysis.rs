//! The analysis: events in, extended data races out.

use crate::accesses::Access;
use crate::detect::{Detector, Found, Pairs, States};
use crate::event::{Bytes, Event, Line, Lock, Step, Thread};
use crate::forest::{Id, LocationId, SetId, UnitId};
use crate::locks::{Counts, LockSet};
use crate::options::{Detection, Options};
use crate::report::{ExtendedRace, Link, Reason, Side, Summary};
use crate::sweep::AllMarks;
use crate::world::{Change, World};
use rustc_hash::FxHashSet;

/// Looks at the events of one execution, in their order, and finds extended data races in it.
///
/// The order must be one that the execution had, as far as synchronisation and accesses to the same memory go. Nothing is
/// assumed of events that do not fit each other; they are counted ([`Summary::steps_out_of_place`]) and left out.
pub struct Analysis {
    world: World,
    detector: Box<dyn Detector + Send>,
    changes: Vec<Change>,
    found: Vec<Found>,
    races: Vec<Told>,
    /// Places of the races that were told.
    told: FxHashSet<(Line, Line)>,
}

/// A race, and the members of its set when it was found.
struct Told {
    found: Found,
    members: Vec<Bytes>,
}

/// A computational unit, as far as it is known now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitView {
    /// Tells units of one moment apart. Other events may change it.
    pub number: usize,
    pub thread: Thread,
    pub closed: bool,
    pub lines: Vec<Line>,
    /// L_u.
    pub locks: LockSet,
    /// l_fst,u and l_lst,u, of the locks that were held then; none if it has no shared part.
    pub first: Option<Vec<(Lock, Counts)>>,
    pub last: Option<Vec<(Lock, Counts)>>,
}

impl Analysis {
    pub fn new(options: Options) -> Analysis {
        let detector: Box<dyn Detector + Send> = match options.detection {
            Detection::Pairs => Box::new(Pairs::new()),
            Detection::States => Box::new(States::new()),
        };
        let told = FxHashSet::default();
        Analysis { world: World::new(options), detector, changes: Vec::new(), found: Vec::new(), races: Vec::new(), told }
    }

    /// Declares that these locations are one correlated set. Before the first event. A location that two declarations name
    /// belongs to the first of them.
    pub fn declare(&mut self, ranges: &[Bytes]) {
        self.world.declare(ranges);
    }

    /// Says that more than one thread will access these bytes ([`crate::Sharing`] finds them). Before the first event.
    pub fn share(&mut self, range: Bytes) {
        self.world.share(range);
    }

    /// Says where the feeder stands: the next events happen there. Positions do not descend; reports give them back.
    pub fn stand_at(&mut self, position: u64) {
        self.world.position = position;
    }

    pub fn event(&mut self, event: &Event<'_>) {
        self.world.summary.events += 1;
        let Some(thread) = self.world.thread(event.thread) else {
            self.world.summary.events_of_further_threads += 1;
            return;
        };
        self.step(thread, event.line, event.step);
        if !self.world.changes.is_empty() {
            self.detect();
        }
        if self.world.wants_sweep() {
            self.sweep();
        }
    }

    fn step(&mut self, thread: usize, line: Line, step: Step<'_>) {
        let world = &mut self.world;
        match step {
            Step::Enter { arguments } => world.enter(thread, line, arguments),
            Step::Exit { result, into } => world.exit(thread, line, result, into),
            Step::Load { bytes, address, into } => world.load(thread, line, bytes, address, into),
            Step::Store { bytes, address, from } => world.store(thread, line, bytes, address, from),
            Step::Fill { bytes, from } => world.fill(thread, line, bytes, from),
            Step::Copy { from, to, len } => world.copy(thread, line, from, to, len),
            Step::Compute { into, from } => world.compute(thread, line, into, from),
            Step::Branch { on, meeting } => world.branch(thread, line, on, meeting),
            Step::Reach { meeting } => world.threads[thread].reach(meeting, &mut world.budget),
            Step::Renew { start, len } => world.renew(start, len),
            Step::Outside { .. } | Step::Lost => {}
            _ => world.synchronise(thread, step),
        }
    }

    fn detect(&mut self) {
        std::mem::swap(&mut self.changes, &mut self.world.changes);
        self.detector.apply(&mut self.world, &self.changes, &mut self.found);
        self.changes.clear();
        for found in std::mem::take(&mut self.found) {
            self.tell(found);
        }
    }

    fn tell(&mut self, found: Found) {
        let places = (found.before.line.min(found.now.line), found.before.line.max(found.now.line));
        if self.told.contains(&places) || self.races.len() >= self.world.options.limits.races {
            self.world.summary.races_not_told += 1;
            return;
        }
        self.told.insert(places);
        let members = self.shared_members(found.set);
        self.races.push(Told { found, members });
    }

    fn shared_members(&self, set: SetId) -> Vec<Bytes> {
        self.members_of(set, |world, location| world.memory.get(location).shared)
    }

    fn race(&self, told: &Told) -> ExtendedRace {
        let found = &told.found;
        // The set may have grown since, or its members may have gone other ways.
        let mut members = self.shared_members(found.set);
        let size = |members: &[Bytes]| members.iter().map(|range| u64::from(range.len)).sum::<u64>();
        if size(&members) < size(&told.members) {
            members.clone_from(&told.members);
        }
        ExtendedRace {
            members,
            links: self.world.sets.get(found.set).links.to_vec(),
            sides: [self.side(&found.before), self.side(&found.now)],
            reason: self.reason(found),
        }
    }

    fn side(&self, access: &Access) -> Side {
        let unit = self.world.units.get(access.unit);
        let held = |moment| self.world.moments.get(moment).held.iter().map(|held| held.lock).collect();
        let (first, last) = unit.shared.map(|(first, last)| (held(first), held(last))).unwrap_or_default();
        Side {
            thread: self.world.names[unit.thread],
            lines: unit.lines.to_vec(),
            line: access.line,
            wrote: access.wrote,
            locks: self.world.locks_of(access.unit),
            first,
            last,
            extent: unit.extent,
        }
    }

    fn reason(&self, found: &Found) -> Reason {
        let sides = [&found.before, &found.now];
        let empty = sides.map(|side| self.world.locks_of(side.unit).is_empty());
        let interrupted = sides.iter().zip(empty).filter(|(_, empty)| *empty).find_map(|(side, _)| {
            let (first, last) = self.world.units.get(side.unit).shared?;
            self.world.moments.interrupted(first, last)
        });
        match interrupted {
            Some(lock) => Reason::Interrupted(lock),
            None if empty.contains(&true) => Reason::Unprotected,
            None => Reason::DifferentLocks,
        }
    }

    /// Members of a set for which `counts`, ascending, neighbours joined.
    fn members_of(&self, set: SetId, counts: impl Fn(&World, LocationId) -> bool) -> Vec<Bytes> {
        let world = &self.world;
        let Some(member) = world.sets.get(set).member else { return Vec::new() };
        let members = world.memory.circle(member).filter(|location| counts(world, *location));
        let mut ranges: Vec<Bytes> =
            members.take(world.options.limits.members).map(|location| world.memory.get(location).bytes()).collect();
        ranges.sort_unstable();
        let mut joined: Vec<Bytes> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if last.end() == range.start => last.len += range.len,
                _ => joined.push(range),
            }
        }
        joined
    }

    fn sweep(&mut self) {
        let mut marks = AllMarks::new(&self.world);
        self.world.mark(&mut marks);
        for told in &mut self.races {
            let found = &mut told.found;
            found.set = self.world.sets.find(found.set);
            marks.sets.mark(found.set);
            for access in [&mut found.before, &mut found.now] {
                access.unit = self.world.units.find(access.unit);
                marks.access(access);
            }
        }
        self.detector.mark(&mut self.world, &mut marks);
        self.world.sweep(&mut marks);
    }

    /// The races so far, in the order in which they were found. Units and sets are told as they are now: a race may be found
    /// while its units go on.
    pub fn races(&self) -> Vec<ExtendedRace> {
        self.races.iter().map(|told| self.race(told)).collect()
    }

    pub fn summary(&self) -> Summary {
        self.world.summary
    }

    /// How many units, sets and moments are kept.
    pub fn kept(&self) -> usize {
        self.world.units.in_use() + self.world.sets.in_use() + self.world.moments.in_use()
    }

    /// The correlated set of a byte: all its members, ascending, neighbours joined. None if the byte was not accessed.
    pub fn correlated_set(&self, address: u64) -> Option<Vec<Bytes>> {
        let location = self.world.memory.at(address)?;
        Some(self.members_of(self.world.memory.get(location).set, |_, _| true))
    }

    /// The dependences by which the members of a byte's set came to be correlated: the first ones.
    pub fn links(&self, address: u64) -> Vec<Link> {
        let location = self.world.memory.at(address).map(|location| self.world.memory.get(location));
        location.map(|location| self.world.sets.get(location.set).links.to_vec()).unwrap_or_default()
    }

    /// Every correlated set with at least two members that more than one thread accessed: what was inferred, to be declared
    /// to another analysis.
    pub fn correlated_sets(&self) -> Vec<Vec<Bytes>> {
        let roots: FxHashSet<SetId> = self.world.memory.all().map(|location| self.world.sets.root(location.set)).collect();
        // Counted before neighbours are joined.
        let several = |set: &&SetId| {
            let member = self.world.sets.get(**set).member;
            let all = member.into_iter().flat_map(|member| self.world.memory.circle(member));
            all.filter(|location| self.world.memory.get(*location).shared).nth(1).is_some()
        };
        let mut sets: Vec<_> = roots.iter().filter(several).map(|set| self.shared_members(*set)).collect();
        sets.sort_unstable();
        sets
    }

    /// Whether a race was found on the set of a byte.
    pub fn has_race(&self, address: u64) -> bool {
        self.world
            .memory
            .at(address)
            .is_some_and(|location| self.detector.is_racy(self.world.sets.root(self.world.memory.get(location).set)))
    }

    /// C_s of the set of a byte.
    pub fn candidates(&self, address: u64) -> LockSet {
        let Some(location) = self.world.memory.at(address) else { return LockSet::All };
        let set = self.world.sets.root(self.world.memory.get(location).set);
        self.detector.candidates(&self.world, set)
    }

    /// l_t(m): the lock vector of a thread.
    pub fn lock_vector(&self, thread: Thread, lock: Lock) -> Counts {
        self.world.lock_vector(thread, lock)
    }

    /// The unit that wrote a byte last.
    pub fn writer(&self, address: u64) -> Option<UnitView> {
        let location = self.world.memory.at(address)?;
        self.world.memory.get(location).writer.map(|unit| self.view(unit))
    }

    /// The units that accessed a byte, as far as its location remembers them.
    pub fn units(&self, address: u64) -> Vec<UnitView> {
        let Some(location) = self.world.memory.at(address) else { return Vec::new() };
        let accesses = self.world.memory.get(location).accesses.iter();
        let mut units: Vec<UnitView> = accesses.map(|access| self.view(access.unit)).collect();
        // Units may have merged since.
        let mut seen = FxHashSet::default();
        units.retain(|unit| seen.insert(unit.number));
        units
    }

    fn view(&self, id: UnitId) -> UnitView {
        let unit = self.world.units.get(id);
        let vector = |moment| {
            let held = self.world.moments.get(moment).held.iter();
            held.map(|held| (held.lock, Counts { acquired: held.acquisition, released: held.acquisition - 1 })).collect()
        };
        UnitView {
            number: self.world.units.root(id).index(),
            thread: self.world.names[unit.thread],
            closed: unit.closed,
            lines: unit.lines.to_vec(),
            locks: self.world.locks_of(id),
            first: unit.shared.map(|(first, _)| vector(first)),
            last: unit.shared.map(|(_, last)| vector(last)),
        }
    }
}
