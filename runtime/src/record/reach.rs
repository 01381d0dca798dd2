//! What code that is not seen can reach: from the registers that arguments come in, and from static data of the library that is
//! called and of those that it needs. Found are [`places`](crate::record::places): blocks of the heap, windows of static data
//! and of stacks, and threads by their handles; and so on from each aligned word that is the address of another one.
//!
//! Conservative: every register counts, whether the function takes that argument or not. Limits: arguments on the stack are not
//! looked at; static data and stacks are looked at from the pointer on; mappings are told and not looked into, and so is static
//! data of a library beyond `places::MOST_STATIC`; beyond [`MOST`] places, or [`MOST_BYTES`] looked at, everything counts as
//! reached.
//!
//! A place is told *once*, with the places that its words lead to, and again when these have changed, whoever wrote them: each
//! search looks at all words, but for those that the loader has made read-only. A call names the places that it begins from;
//! what they lead to follows from what was told until then (Rajagopalan, thesis, 2016, §4.4.3, which tells an object's tree
//! once; there, writes that nobody sees are ignored).
//!
//! *Naive*, each search tells all that it found, as a set with a number, and the same set is told once.
//!
//! No more than [`MOST_TOLD`] words are told altogether: later calls that reach something new reach everything.
//!
//! Where a call of a function reached too much, the next ones are taken to reach everything without a look: one after
//! the first such call, then three, and so on up to [`MOST_UNLOOKED`], until one that is looked at reaches less.

use crate::record::places::{Place, PlaceId, Places};
use crate::record::words::{ROOM, Rest, prefetch};
use crate::system::lock::BriefLock;
use crate::system::memory::{List, Map};
use core::sync::atomic::{AtomicBool, Ordering::*};
use rashomon_abi::record::{MAX_ARGUMENTS, reach};
use rashomon_logic::extent::Extent;

const MOST: usize = 1024;
const MOST_BYTES: u64 = 1 << 20;
const MOST_TOLD: usize = 8 << 20;
const MOST_UNLOOKED: u64 = 63;
/// Second halves of keys by function.
const LEFT: u64 = 1;
const LAST: u64 = 2;
/// In place of the number of targets.
const UNTOLD: u32 = u32::MAX;

static ON: AtomicBool = AtomicBool::new(false);
static LOCK: BriefLock = BriefLock::new();
static mut STATE: State = State::new();

struct State {
    places: Places,
    searches: u64,
    /// Of the present search: what was found, in the order in which it is looked at.
    found: List<PlaceId>,
    /// How many of these may be looked into.
    readable: usize,
    /// Words of the present place that may be addresses.
    words: [u64; ROOM],
    /// Numbers of what the present place leads to, and a copy to sort.
    targets: List<u32>,
    sorted: List<u32>,
    /// What was told of all places, which know their part.
    told_targets: List<u32>,
    /// Places by their numbers, less one.
    numbered: List<PlaceId>,
    /// Numbers of sets by two hashes.
    sets: Map,
    told: usize,
    /// Which places were found together, by two hashes.
    together: Map,
    /// The last search found places that no search had found together before.
    has_news: bool,
    /// By function, how many calls of it are not looked at any more, and how many were not after one that reached too much.
    unlooked: Map,
}

/// More would be told than may be.
struct NoRoom;

/// Takes a number, what is told of it ([`reach`]), and up to [`MAX_ARGUMENTS`] words.
pub trait Tell: FnMut(u64, u16, &[u64]) {}
impl<T: FnMut(u64, u16, &[u64])> Tell for T {}

impl State {
    const fn new() -> Self {
        Self {
            places: Places::new(),
            searches: 0,
            found: List::new(),
            readable: 0,
            words: [0; ROOM],
            targets: List::new(),
            sorted: List::new(),
            told_targets: List::new(),
            numbered: List::new(),
            sets: Map::new(),
            told: 0,
            together: Map::new(),
            has_news: false,
            unlooked: Map::new(),
        }
    }

    /// A place is reached. Its number.
    #[inline]
    fn reaches(&mut self, id: PlaceId) -> u32 {
        let (searches, place) = (self.searches, self.places.of(id));
        if place.number == 0 {
            self.numbered.push(id);
            place.number = self.numbered.len() as u32;
            place.targets[1] = UNTOLD;
            place.settled = 0;
        }
        let Place { number, is_readable, start, bytes, .. } = *place;
        if core::mem::replace(&mut place.visited, searches) != searches {
            self.readable += usize::from(is_readable);
            self.found.push(id);
            if is_readable {
                // Most are small, and are looked at in a moment.
                prefetch(start);
                prefetch(start + 64.min(bytes - 1));
            }
        }
        number
    }

    /// Looks into all that is reached, and hands each place with what its words lead to on. False: there was too much.
    fn follow(&mut self, mut each: impl FnMut(&mut Self, PlaceId) -> Result<(), NoRoom>) -> bool {
        let (mut next, mut bytes) = (0, 0);
        let extent = self.places.extent();
        while let Some(&id) = self.found.as_slice().get(next) {
            next += 1;
            self.targets.truncate(0);
            let place = *self.places.of(id);
            if place.is_readable {
                bytes += place.bytes;
                if self.readable > MOST || bytes > MOST_BYTES {
                    return false;
                }
                if place.settled == self.places.state() {
                    self.reaches_again(&place);
                    continue;
                }
                // SAFETY: live and readable memory of the program's: what may not be looked into is left out.
                self.look_into(&place, extent, unsafe { Rest::of(place.start, place.bytes) });
            }
            if each(self, id).is_err() {
                return false;
            }
        }
        let Self { found, places, together, .. } = self;
        let numbers = found.as_slice().iter().map(|&id| u64::from(places.of(id).number));
        self.has_news = core::mem::replace(together.entry(hashes(numbers)), 1) == 0;
        true
    }

    /// Reaches what the words of a place lead to, and notes it as the targets.
    fn look_into(&mut self, place: &Place, extent: Extent, mut rest: Rest) {
        let mut last = place.number;
        let own = if place.is_whole { place.bytes } else { 0 };
        while let Some(count) = rest.next(extent, &mut self.words) {
            let count = self.places.sift(&mut self.words[..count], place.start, own);
            self.words[..count].iter().for_each(|&word| self.places.fetch(word));
            for at in 0..count {
                if let Some(found) = self.places.find_within(self.words[at]) {
                    let number = self.reaches(found);
                    if core::mem::replace(&mut last, number) != number {
                        self.targets.push(number);
                    }
                }
            }
        }
    }

    /// Reaches what a constant was found to lead to.
    fn reaches_again(&mut self, constant: &Place) {
        let [at, count, _] = constant.targets;
        for at in at..at + count {
            let number = self.told_targets.as_slice()[at as usize];
            self.reaches(self.numbered.as_slice()[number as usize - 1]);
        }
    }

    /// What a constant leads to, and was told, is known for good, unless there are blocks among it.
    fn settle(&mut self, id: PlaceId) {
        let Self { places, targets, numbered, .. } = self;
        if places.of(id).is_constant
            && targets.as_slice().iter().all(|&number| places.stays(numbered.as_slice()[number as usize - 1]))
        {
            places.of(id).settled = places.state();
        }
    }

    fn makes_room(&mut self, words: usize) -> Result<(), NoRoom> {
        if self.told + words > MOST_TOLD {
            return Err(NoRoom);
        }
        self.told += words;
        Ok(())
    }

    /// Tells what a place leads to, if that is not what was told.
    fn tell_place(&mut self, id: PlaceId, tell: &mut impl Tell) -> Result<(), NoRoom> {
        let place = *self.places.of(id);
        let [at, count, room] = place.targets;
        let is_new = count == UNTOLD;
        let before = if is_new { 0..0 } else { at as usize..(at + count) as usize };
        if !is_new && self.told_targets.as_slice()[before.clone()].iter().eq(self.targets.as_slice()) {
            self.settle(id);
            return Ok(());
        }
        self.makes_room(self.targets.len() / 2 + 3)?;
        let Self { targets, sorted, told_targets, .. } = self;
        let (now, told) = (targets.as_slice(), &told_targets.as_slice()[before]);
        let number = u64::from(place.number);
        let is_more = !is_new && {
            let now = sort(now, sorted);
            told.iter().all(|number| now.binary_search(number).is_ok())
        };
        if is_more {
            let told = sort(told, sorted);
            let news = now.iter().copied().filter(|number| told.binary_search(number).is_err());
            tell_numbers(number, reach::FURTHER, &[], news, tell);
        } else {
            tell_numbers(number, reach::PLACE, &[place.start, place.bytes], now.iter().copied(), tell);
        }
        self.keep_targets(id, [at, self.targets.len() as u32, room]);
        self.settle(id);
        Ok(())
    }

    /// What was told is remembered: where it was before, if it fits.
    fn keep_targets(&mut self, id: PlaceId, [mut at, count, mut room]: [u32; 3]) {
        if count > room {
            (at, room) = (self.told_targets.len() as u32, count.next_power_of_two());
            (0..room).for_each(|_| self.told_targets.push(0));
        }
        let kept = &mut self.told_targets.as_mut_slice()[at as usize..][..count as usize];
        kept.copy_from_slice(self.targets.as_slice());
        self.places.of(id).targets = [at, count, room];
    }

    /// The number of a set, and whether it is new.
    fn set(&mut self, words: impl Iterator<Item = u64>) -> (u64, bool) {
        let next = self.sets.len() as u64 + 1;
        let known = self.sets.entry(hashes(words));
        let is_new = *known == 0;
        if is_new {
            *known = next;
        }
        (*known, is_new)
    }

    /// Reaches what a call begins from, each place once.
    fn begin_from(&mut self, registers: &[u64; 6], data: &[[u64; 2]]) {
        self.searches += 1;
        self.found.truncate(0);
        self.readable = 0;
        self.places.look_at_threads();
        for &word in registers {
            if let Some(id) = self.places.find(word) {
                self.reaches(id);
            }
        }
        for &[start, bytes] in data {
            let id = self.places.data(start, bytes);
            self.reaches(id);
        }
    }

    /// Whether a call of a function is not looked at, as earlier ones reached too much.
    fn is_unlooked(&mut self, function: u64) -> bool {
        let left = self.unlooked.entry((function, LEFT));
        core::mem::replace(left, left.saturating_sub(1)) > 0
    }

    fn looked(&mut self, function: u64, is_too_much: bool) {
        let last = self.unlooked.entry((function, LAST));
        *last = if is_too_much { (2 * *last + 1).min(MOST_UNLOOKED) } else { 0 };
        let left = *last;
        *self.unlooked.entry((function, LEFT)) = left;
    }

    fn search(&mut self, mut tell: impl Tell) -> u64 {
        let roots = self.found.len();
        if !self.follow(|state, id| state.tell_place(id, &mut tell)) {
            return reach::EVERYTHING;
        }
        self.targets.truncate(0);
        for at in 0..roots {
            let id = self.found.as_slice()[at];
            let number = self.places.of(id).number;
            self.targets.push(number);
        }
        let roots = core::mem::replace(&mut self.targets, List::new());
        let (number, is_new) = self.set(roots.as_slice().iter().map(|&number| u64::from(number)));
        if is_new {
            tell_numbers(number, reach::PLACES, &[], roots.as_slice().iter().copied(), &mut tell);
        }
        let room = self.makes_room(if is_new { roots.len() } else { 0 });
        self.targets = roots;
        if room.is_ok() { number } else { reach::EVERYTHING }
    }

    fn search_naively(&mut self, mut tell: impl Tell) -> u64 {
        if !self.follow(|_, _| Ok(())) {
            return reach::EVERYTHING;
        }
        let found = core::mem::replace(&mut self.found, List::new());
        let mut pairs: List<[u64; 2]> = List::with_room_for(found.len().max(1));
        for &id in found.as_slice() {
            let place = self.places.of(id);
            pairs.push([place.start, place.bytes]);
        }
        self.found = found;
        let (mut number, is_new) = self.set(pairs.as_slice().iter().flatten().copied());
        if is_new && self.makes_room(2 * pairs.len()).is_err() {
            number = reach::EVERYTHING;
        } else if is_new {
            // A set of nothing is told, too.
            let (first, others) = pairs.as_slice().split_at(pairs.len().min(MAX_ARGUMENTS / 2));
            for some in core::iter::once(first).chain(others.chunks(MAX_ARGUMENTS / 2)) {
                tell(number, reach::RANGES, some.as_flattened());
            }
        }
        pairs.clear_and_free();
        number
    }
}

fn hashes(words: impl Iterator<Item = u64>) -> (u64, u64) {
    words.fold((0xcbf2_9ce4_8422_2325, 0x9e37_79b9_7f4a_7c15), |(first, second), word| {
        let first = (first ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
        (first, (second.rotate_left(31) ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd))
    })
}

/// The same numbers in their order.
fn sort<'a>(numbers: &[u32], into: &'a mut List<u32>) -> &'a [u32] {
    into.truncate(0);
    numbers.iter().for_each(|&number| into.push(number));
    into.as_mut_slice().sort_unstable();
    into.as_slice()
}

/// Tells numbers, two in a word, the first ones behind words of another kind; once where there are none.
fn tell_numbers(of: u64, what: u16, before: &[u64], mut numbers: impl Iterator<Item = u32>, tell: &mut impl Tell) {
    let (mut words, mut count, mut what) = ([0; MAX_ARGUMENTS], before.len(), what);
    words[..count].copy_from_slice(before);
    loop {
        let low = numbers.next();
        if let Some(low) = low {
            words[count] = u64::from(low) | u64::from(numbers.next().unwrap_or(0)) << 32;
            count += 1;
        }
        if count == MAX_ARGUMENTS || low.is_none() && count > 0 {
            tell(of, what, &words[..count]);
            (count, what) = (0, if what == reach::PLACE { reach::FURTHER } else { what });
        } else if low.is_none() && what == reach::PLACES {
            tell(of, what, &[]);
        }
        if low.is_none() {
            return;
        }
    }
}

/// Live blocks are remembered from here on: there are calls that need them.
pub fn begin() {
    ON.store(true, Release);
}

pub fn is_on() -> bool {
    ON.load(Acquire)
}

/// Static data of all modules, and what of it is read-only.
pub fn set_segments(segments: &[[u64; 2]], constants: &[[u64; 2]]) {
    let state = &raw mut STATE;
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe { (*state).places.set_segments(segments, constants) });
}

/// A forked child's only thread goes on with what was known; what it tells is its own.
pub fn forked() {
    LOCK.reset();
    let state = &raw mut STATE;
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe {
        (*state).sets.clear_and_free();
        (*state).told = 0;
        (*state).numbered.truncate(0);
        (*state).places.all().iter_mut().for_each(|place| place.number = 0);
    });
}

/// A block begins to live. `is_mapping`: not all of it need be readable.
pub fn begins(address: u64, bytes: u64, is_mapping: bool) {
    if !ON.load(Relaxed) || bytes == 0 {
        return;
    }
    let state = &raw mut STATE;
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe { (*state).places.begins(address, bytes, is_mapping) });
}

/// The block at an address ends.
pub fn ends(address: u64) {
    if !ON.load(Relaxed) {
        return;
    }
    let state = &raw mut STATE;
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe { (*state).places.ends(address) });
}

/// The last search reached what one before it had reached, or too much to tell.
pub fn is_still() -> bool {
    let state = &raw const STATE;
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe { !(*state).has_news })
}

/// The number of what a call of a function reaches from registers and from the static data of libraries (start, bytes). What is
/// not told yet is handed to `tell`. `naive`: all of it, if it is not just what was told of an earlier call.
pub fn search(function: u64, registers: &[u64; 6], data: &[[u64; 2]], naive: bool, tell: impl Tell) -> u64 {
    let state = &raw mut STATE;
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe {
        let state = &mut *state;
        state.has_news = false;
        if state.is_unlooked(function) {
            return reach::EVERYTHING;
        }
        state.begin_from(registers, data);
        let set = if naive { state.search_naively(tell) } else { state.search(tell) };
        state.looked(function, set == reach::EVERYTHING);
        set
    })
}
