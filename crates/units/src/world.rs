//! Computational units and correlated sets, and what the algorithm of §3.1 needs to know of memory, locks and time.
//!
//! The world knows nothing of races: it says what changed ([`Change`]), and whoever detects looks at it. So inference and
//! detection are separable (§6).

use crate::accesses::Access;
use crate::event::{Bytes, Line, Lock, Thread};
use crate::forest::{Forest, LocationId, MomentId, SetId, UnitId};
use crate::locks::LockSet;
use crate::memory::{Memory, Piece};
use crate::moments::{Moment, Moments};
use crate::options::Options;
use crate::order::{Clock, Messages};
use crate::ranges::{of_range, uncovered};
use crate::report::{Dependence, Link, Summary};
use crate::threads::{Budget, ThreadState};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub(crate) struct Unit {
    /// Dense number; all operations of a unit are of one thread.
    pub thread: usize,
    /// A closed unit takes no further operation.
    pub closed: bool,
    /// Beginning and end of its shared part, if there is one: l_fst,u and l_lst,u.
    pub shared: Option<(MomentId, MomentId)>,
    /// Positions of the first and the last access to a location that was shared by then.
    pub extent: Option<(u64, u64)>,
    pub lines: SmallVec<[Line; 4]>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Set {
    /// One of its members.
    pub member: Option<LocationId>,
    pub declared: bool,
    /// Most sets have one at most.
    pub links: SmallVec<[Link; 1]>,
}

/// What an event changed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// A unit accessed a shared location, now.
    Accessed {
        location: LocationId,
        access: Access,
        /// The location knows just the same of the unit, of this moment.
        repeats: bool,
    },
    /// A location became shared: what a unit did with it until now counts.
    Exposed {
        location: LocationId,
        access: Access,
    },
    /// L_u became smaller.
    Extended {
        unit: UnitId,
    },
    UnitsMerged {
        from: UnitId,
        into: UnitId,
    },
    SetsMerged {
        from: SetId,
        into: SetId,
    },
    /// A shared location belongs to another set. What units did with one that is not shared is in no history of a set.
    Moved {
        location: LocationId,
        from: SetId,
    },
    /// A shared location of the set was forgotten.
    Left {
        set: SetId,
    },
}

pub(crate) struct World {
    pub options: Options,
    /// Where the feeder stands.
    pub position: u64,
    numbers: FxHashMap<Thread, usize>,
    /// The thread that was asked for last, and its number.
    last: Option<(Thread, usize)>,
    pub names: Vec<Thread>,
    pub threads: Vec<ThreadState>,
    pub budget: Budget,
    pub messages: Messages,
    serials: u64,
    pub moments: Moments,
    pub units: Forest<UnitId, Unit>,
    pub sets: Forest<SetId, Set>,
    pub memory: Memory,
    /// Beginning of declared ranges: end and set.
    pub declared: BTreeMap<u64, (u64, Option<SetId>)>,
    /// Beginning of ranges known to be shared: end.
    shared: BTreeMap<u64, u64>,
    pub changes: Vec<Change>,
    pub summary: Summary,
    /// Kept for their capacity.
    pieces: Vec<Piece>,
    touched: Vec<LocationId>,
}

impl World {
    pub fn new(options: Options) -> World {
        World {
            position: 0,
            numbers: FxHashMap::default(),
            last: None,
            names: Vec::new(),
            threads: Vec::new(),
            budget: Budget { used: 0, limit: options.limits.registers },
            messages: Messages::default(),
            serials: 0,
            moments: Moments::default(),
            units: Forest::new(),
            sets: Forest::new(),
            memory: Memory::default(),
            declared: BTreeMap::new(),
            shared: BTreeMap::new(),
            changes: Vec::new(),
            summary: Summary::default(),
            pieces: Vec::new(),
            touched: Vec::new(),
            options,
        }
    }

    /// The thread's dense number.
    #[inline]
    pub fn thread(&mut self, thread: Thread) -> Option<usize> {
        if let Some((last, number)) = self.last
            && last == thread
        {
            return Some(number);
        }
        let number = self.numbers.get(&thread).copied().or_else(|| self.new_thread(thread))?;
        self.last = Some((thread, number));
        Some(number)
    }

    fn new_thread(&mut self, thread: Thread) -> Option<usize> {
        let number = self.threads.len();
        if number >= self.options.limits.threads {
            return None;
        }
        let mut clock = Clock::default();
        clock.advance(number);
        let serial = self.next_serial();
        self.threads.push(ThreadState::new(clock, serial));
        self.names.push(thread);
        self.numbers.insert(thread, number);
        Some(number)
    }

    pub fn known_thread(&self, thread: Thread) -> Option<usize> {
        self.numbers.get(&thread).copied()
    }

    pub fn next_serial(&mut self) -> u64 {
        self.serials += 1;
        self.serials
    }

    /// The moment in which the thread is.
    pub fn now(&mut self, thread: usize) -> MomentId {
        let state = &mut self.threads[thread];
        if let Some(moment) = state.moment {
            return moment;
        }
        state.time += 1;
        let held: Arc<[_]> = state.locks.held().collect();
        let moment = self.moments.add(Moment { thread, time: state.time, clock: state.clock(), held });
        state.moment = Some(moment);
        moment
    }

    // Units.

    pub fn new_unit(&mut self, thread: usize) -> UnitId {
        self.units.add(Unit { thread, ..Unit::default() })
    }

    /// The unit's root, if it goes on.
    #[inline]
    pub fn open(&mut self, unit: Option<UnitId>) -> Option<UnitId> {
        let unit = self.units.find(unit?);
        (!self.units.get(unit).closed).then_some(unit)
    }

    /// Merges two units that one operation depends on. One that is closed is no part of what comes.
    pub fn merge_units(&mut self, one: Option<UnitId>, other: Option<UnitId>) -> Option<UnitId> {
        let one = self.open(one);
        if one.is_some() && one == other {
            return one;
        }
        let other = self.open(other);
        let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
        let Some((into, from, data)) = self.units.merge(one, other) else { return Some(one) };
        let unit = self.units.get_mut(into);
        debug_assert_eq!(unit.thread, data.thread, "no dependence joins units of two threads");
        for line in data.lines {
            if unit.lines.len() < self.options.limits.lines_of_unit && !unit.lines.contains(&line) {
                unit.lines.push(line);
            }
        }
        self.changes.push(Change::UnitsMerged { from, into });
        // Reason 2 of §3.3.
        let both = self.units.get(into).extent.into_iter().chain(data.extent);
        self.units.get_mut(into).extent = both.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        if let Some((first, last)) = data.shared {
            self.extend(into, first, last);
        }
        Some(into)
    }

    #[inline]
    pub fn close(&mut self, unit: UnitId) {
        self.units.get_mut(unit).closed = true;
    }

    pub fn note_line(&mut self, unit: UnitId, line: Line) {
        let most = self.options.limits.lines_of_unit;
        let unit = self.units.get_mut(unit);
        if unit.lines.len() < most && !unit.lines.contains(&line) {
            unit.lines.push(line);
        }
    }

    /// Makes shared(u) reach from `first` to `last` at least.
    fn extend(&mut self, unit: UnitId, first: MomentId, last: MomentId) {
        let shared = self.units.get(unit).shared;
        if shared.is_some_and(|(begin, end)| (begin == first || first == last) && end == last) {
            return;
        }
        let Some((begin, end)) = shared else {
            self.units.get_mut(unit).shared = Some((first, last));
            self.changes.push(Change::Extended { unit });
            return;
        };
        let new = (self.moments.earlier(begin, first), self.moments.later(end, last));
        if new != (begin, end) {
            let same = self.moments.same_locks(begin, new.0) && self.moments.same_locks(end, new.1);
            let shrinks = |moments: &Moments| moments.span((begin, end)).locks() != moments.span(new).locks();
            self.units.get_mut(unit).shared = Some(new);
            if !same && shrinks(&self.moments) {
                self.changes.push(Change::Extended { unit });
            }
        }
    }

    /// L_u (§3.2).
    pub fn locks_of(&self, unit: UnitId) -> LockSet {
        self.units.get(unit).shared.map_or(LockSet::All, |shared| self.moments.span(shared).locks())
    }

    // Correlated sets.

    /// Merges two sets that one operation depends on. Declared ones stay what they are.
    pub fn merge_sets(&mut self, one: Option<SetId>, other: Option<SetId>, link: Link) -> Option<SetId> {
        let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
        if one == other {
            return Some(one);
        }
        match (self.sets.get(one).declared, self.sets.get(other).declared) {
            (false, false) if self.options.infer_sets => {}
            // A value that belongs to a declared set and to another one carries the latter.
            (true, false) => return Some(other),
            _ => return Some(one),
        }
        let Some((into, from, data)) = self.sets.merge(one, other) else { return Some(one) };
        let most = self.options.limits.links_of_set;
        let set = self.sets.get_mut(into);
        let mine = set.member;
        let room = most.saturating_sub(set.links.len());
        set.links.extend(data.links.into_iter().chain([link]).take(room));
        match (mine, data.member) {
            (Some(one), Some(other)) => self.memory.join_circles(one, other),
            (None, Some(other)) => self.sets.get_mut(into).member = Some(other),
            _ => {}
        }
        self.changes.push(Change::SetsMerged { from, into });
        Some(into)
    }

    /// Whether a value of the set gives its set to what it is stored to.
    fn gives(&self, set: SetId) -> bool {
        self.options.infer_sets && !self.sets.get(set).declared
    }

    /// The set that a store with operands of set `set` gives to what it writes.
    pub fn set_for_store(&mut self, set: Option<SetId>) -> SetId {
        set.filter(|set| self.gives(*set)).unwrap_or_else(|| self.sets.add(Set::default()))
    }

    pub fn move_to(&mut self, location: LocationId, set: SetId, link: Link) {
        let from = self.sets.find(self.memory.get(location).set);
        let set = self.sets.find(set);
        if from == set {
            return;
        }
        self.detach(location);
        self.attach(location, set);
        let most = self.options.limits.links_of_set;
        let links = &mut self.sets.get_mut(set).links;
        if link.from.is_some() && links.len() < most {
            links.push(link);
        }
        if self.memory.get(location).shared {
            self.changes.push(Change::Moved { location, from });
        }
    }

    /// Takes a location out of its set.
    fn detach(&mut self, location: LocationId) {
        let set = self.memory.get(location).set;
        let rest = self.memory.leave_circle(location);
        let set = self.sets.get_mut(set);
        if set.member == Some(location) {
            set.member = rest;
        }
        let start = self.memory.get(location).start;
        set.links.retain(|link| link.to != Some(start) || link.dependence != Dependence::Assignment);
    }

    fn attach(&mut self, location: LocationId, set: SetId) {
        self.memory.get_mut(location).set = set;
        match self.sets.get(set).member {
            Some(member) => self.memory.join_circles(member, location),
            None => self.sets.get_mut(set).member = Some(location),
        }
    }

    // Locations.

    /// Has `act` use the locations of an access, made where there are none.
    #[inline]
    pub fn with_locations<T>(&mut self, thread: usize, bytes: Bytes, act: impl FnOnce(&mut World, &[LocationId]) -> T) -> T {
        let mut touched = std::mem::take(&mut self.touched);
        touched.clear();
        self.locations(thread, bytes, &mut touched);
        let result = act(self, &touched);
        self.touched = touched;
        result
    }

    /// The locations of an access, made where there are none.
    pub fn locations(&mut self, thread: usize, bytes: Bytes, found: &mut Vec<LocationId>) {
        let limit = self.options.limits.range;
        self.summary.accesses_left_out += u64::from(bytes.len > limit);
        let bytes = Bytes::new(bytes.start, bytes.len.min(limit));
        if let Some(location) = self.memory.recent(bytes) {
            found.push(location);
            return;
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        self.memory.cover(bytes, &mut pieces);
        for piece in &pieces {
            match *piece {
                Piece::Known(location) => found.push(location),
                Piece::Gap(gap) => self.create(thread, gap, found),
            }
        }
        self.pieces = pieces;
    }

    fn create(&mut self, thread: usize, gap: Bytes, found: &mut Vec<LocationId>) {
        let mut at = gap.start;
        while at < gap.end() {
            if self.memory.in_use() >= self.options.limits.locations {
                self.summary.accesses_left_out += 1;
                return;
            }
            let (declared, stop) = of_range(&self.declared, at, |(end, set)| (*end, *set));
            let (shared, other_stop) = of_range(&self.shared, at, |end| (*end, Some(())));
            let stop = gap.end().min(stop).min(other_stop);
            let set = match declared.flatten() {
                Some(set) => set,
                None => self.sets.add(Set::default()),
            };
            let bytes = Bytes::new(at, (stop - at) as u32);
            let location = self.memory.add(bytes, thread, set, declared.is_some());
            self.memory.get_mut(location).shared = shared.is_some();
            self.attach(location, set);
            found.push(location);
            at = stop;
        }
    }

    /// Notes that a thread accesses a location.
    pub fn access(&mut self, thread: usize, location: LocationId, unit: UnitId, wrote: bool, line: Line) {
        let now = self.now(thread);
        let activation = if wrote { self.threads[thread].serial() } else { 0 };
        let this = Access { unit, first: now, last: now, wrote, activation, line };
        self.expose(thread, location);
        let unit = self.units.find(unit);
        let units = &self.units;
        let memory = self.memory.get_mut(location);
        let shared = memory.shared;
        let known = memory.accesses.iter_mut().rev().find(|access| access.unit == unit || units.root(access.unit) == unit);
        let repeats = match known {
            Some(access) if access.has(&this) => true,
            Some(access) => {
                access.include(&self.moments, this);
                false
            }
            None => {
                self.make_room(location);
                self.memory.get_mut(location).accesses.push(Access { unit, ..this });
                false
            }
        };
        if shared {
            // Reason 1 of §3.3.
            self.extend(unit, now, now);
            let here = self.position;
            let extent = &mut self.units.get_mut(unit).extent;
            *extent = Some(extent.map_or((here, here), |(first, _)| (first, here)));
            self.changes.push(Change::Accessed { location, access: Access { unit, ..this }, repeats });
        }
    }

    /// Reason 3 of §3.3: an exclusive location turns out to be shared.
    fn expose(&mut self, thread: usize, location: LocationId) {
        let memory = self.memory.get_mut(location);
        if memory.shared || memory.owner == thread {
            return;
        }
        memory.shared = true;
        for access in memory.accesses.clone() {
            self.extend(access.unit, access.first, access.last);
            self.changes.push(Change::Exposed { location, access });
        }
    }

    /// Forgets units of a location, if there are twice as many as are to be kept: those that another of their thread stands for,
    /// and then the oldest. What they cost to find is spread over as many accesses.
    fn make_room(&mut self, location: LocationId) {
        let kept = self.options.limits.units_of_location;
        if self.memory.get(location).accesses.len() < 2 * kept {
            return;
        }
        let mut accesses = std::mem::take(&mut self.memory.get_mut(location).accesses);
        self.unify(&mut accesses);
        if self.memory.get(location).shared {
            self.leave_out_covered(&mut accesses);
        }
        let surplus = accesses.len().saturating_sub(kept);
        accesses.drain(..surplus);
        self.summary.units_forgotten += surplus as u64;
        self.memory.get_mut(location).accesses = accesses;
    }

    /// Forgets a range of memory.
    pub fn renew(&mut self, start: u64, len: u64) {
        for location in self.memory.within(start, len) {
            let (set, shared) = (self.memory.get(location).set, self.memory.get(location).shared);
            self.detach(location);
            if shared {
                self.changes.push(Change::Left { set });
            }
            self.memory.remove(location);
        }
    }

    // What is known beforehand.

    /// Declares a correlated set. Ranges of earlier ones stay with those.
    pub fn declare(&mut self, ranges: &[Bytes]) {
        let set = self.sets.add(Set { declared: true, ..Set::default() });
        for range in ranges {
            for (start, end) in uncovered(&self.declared, *range, |(end, _)| *end) {
                self.declared.insert(start, (end, Some(set)));
            }
        }
    }

    /// Says that more than one thread will access these bytes.
    pub fn share(&mut self, range: Bytes) {
        for (start, end) in uncovered(&self.shared, range, |end| *end) {
            self.shared.insert(start, end);
        }
    }

    /// L_t(m) (§3.3).
    pub fn lock_vector(&self, thread: Thread, lock: Lock) -> crate::locks::Counts {
        self.known_thread(thread).map(|number| self.threads[number].locks.counts(lock)).unwrap_or_default()
    }
}
