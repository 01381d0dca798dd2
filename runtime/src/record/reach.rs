//! What code that is not seen can reach: from the registers that arguments come in, and from static data of the library that is
//! called and of those that it needs. Found are blocks of the heap, windows of static data and of stacks, and threads by their
//! handles; and so on from each aligned word that is the address of another one.
//!
//! Conservative: every register counts, whether the function takes that argument or not. Limits: arguments on the stack are not
//! looked at; static data and stacks are looked at from the pointer on, for [`WINDOW`] bytes; mappings are told and not looked
//! into, and so is static data of a library beyond [`MOST_STATIC`]; beyond [`MOST`] places, or [`MOST_BYTES`] looked at,
//! everything counts as reached.
//!
//! What is reached is a *set* with a number. The same set is told once, and no more than [`MOST_TOLD`] pairs altogether: later
//! calls that reach something new reach everything.

use crate::system::lock::RawLock;
use crate::system::memory::{List, Map};
use crate::system::thread::all;
use core::sync::atomic::{AtomicBool, Ordering::*};
use rashomon_abi::record::reach;

const WINDOW: u64 = 512;
const MOST: usize = 1024;
const MOST_BYTES: u64 = 1 << 20;
const MOST_STATIC: u64 = 16 << 10;
const MOST_TOLD: usize = 4 << 20;
/// Blocks up to so many bytes are found by bits, larger ones in a list.
const SMALL: u64 = 64 << 10;
/// Below the lowest address of a stack may be pages that nobody may touch.
const NEAR_GUARD: u64 = 64 << 10;
/// Beginnings of small blocks in so many bytes share a word, a bit for each 16 bytes.
const PER_WORD: u64 = 1024;

static ON: AtomicBool = AtomicBool::new(false);
static LOCK: RawLock = RawLock::new();
static mut STATE: State = State::new();

/// Second halves of keys.
const BEGINS: u64 = 1;
const SIZE: u64 = 2;
const VISITED: u64 = 3;

struct State {
    /// Small blocks. Key: address / [`PER_WORD`], [`BEGINS`]; and address, [`SIZE`].
    blocks: Map,
    /// The first address of any small block, the first one behind all of them, and the size of the largest.
    lowest: u64,
    highest: u64,
    largest: u64,
    /// First address, bytes, 1 if it may be looked into.
    large: List<[u64; 3]>,
    /// Writable segments: start, end.
    segments: List<[u64; 2]>,
    /// Key: address, [`VISITED`]; the number of the search that came there last.
    visited: Map,
    searches: u64,
    work: List<[u64; 2]>,
    /// Of the present search.
    found: List<[u64; 2]>,
    /// Numbers of sets by two hashes.
    sets: Map,
    told: usize,
}

impl State {
    const fn new() -> Self {
        Self {
            blocks: Map::new(),
            lowest: u64::MAX,
            highest: 0,
            largest: 0,
            large: List::new(),
            segments: List::new(),
            visited: Map::new(),
            searches: 0,
            work: List::new(),
            found: List::new(),
            sets: Map::new(),
            told: 0,
        }
    }

    /// The small block around an address: its beginning, its size.
    fn block_at(&self, address: u64) -> Option<(u64, u64, bool)> {
        if !(self.lowest..self.highest).contains(&address) {
            return None;
        }
        for back in 0..=self.largest.div_ceil(PER_WORD) {
            let word = (address / PER_WORD).checked_sub(back)?;
            let Some(bits) = self.blocks.get((word, BEGINS)) else { continue };
            let upto = if back == 0 { u64::MAX >> (63 - address / 16 % 64) } else { u64::MAX };
            if bits & upto != 0 {
                let base = word * PER_WORD + 16 * u64::from(63 - (bits & upto).leading_zeros());
                let bytes = self.blocks.get((base, SIZE)).unwrap_or(0);
                return (address - base < bytes).then_some((base, bytes, true));
            }
        }
        None
    }

    fn large_at(&self, address: u64) -> Option<(u64, u64, bool)> {
        let found = self.large.as_slice().iter().find(|block| address.wrapping_sub(block[0]) < block[1])?;
        Some((found[0], found[1], found[2] == 1))
    }

    fn static_at(&self, address: u64) -> Option<(u64, u64, bool)> {
        let segment = self.segments.as_slice().iter().find(|[start, end]| (*start..*end).contains(&address))?;
        Some(window(address, segment[1]))
    }

    /// A place is reached: start, bytes, whether it may be looked into.
    fn reaches(&mut self, (start, bytes, readable): (u64, u64, bool)) {
        let visited = self.visited.entry((start, VISITED));
        if core::mem::replace(visited, self.searches) != self.searches {
            self.found.push([start, bytes]);
            if readable {
                self.work.push([start, bytes]);
            }
        }
    }

    /// A word that may be an address.
    fn consider(&mut self, word: u64) {
        if !(4096..1 << 47).contains(&word) {
            return;
        }
        if let Some(found) = self.block_at(word).or_else(|| self.large_at(word)).or_else(|| self.static_at(word)) {
            return self.reaches(found);
        }
        if let Some(thread) = all().find(|thread| thread.handle.load(Acquire) == word && !thread.joined.get()) {
            let visited = self.visited.entry((word, VISITED));
            if core::mem::replace(visited, self.searches) != self.searches {
                self.found.push([u64::from(thread.number.get()), reach::THREAD]);
            }
            return;
        }
        if let Some(found) = stack_at(word) {
            self.reaches(found);
        }
    }

    /// Follows all that is reached. False: there was too much.
    fn follow(&mut self) -> bool {
        let (mut next, mut looked_at) = (0, 0);
        while let Some(&[start, bytes]) = self.work.as_slice().get(next) {
            next += 1;
            looked_at += bytes;
            if next > MOST || looked_at > MOST_BYTES {
                return false;
            }
            for place in (start.next_multiple_of(8)..(start + bytes).saturating_sub(7)).step_by(8) {
                // SAFETY: live and readable memory of the program's: what may not be looked into is no work.
                self.consider(unsafe { (place as *const u64).read_volatile() });
            }
        }
        true
    }

    /// The number of what was found, and whether it is new.
    fn number(&mut self) -> (u64, bool) {
        let mut hashes = (0xcbf2_9ce4_8422_2325_u64, 0x9e37_79b9_7f4a_7c15_u64);
        for word in self.found.as_slice().iter().flatten() {
            hashes.0 = (hashes.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
            hashes.1 = (hashes.1.rotate_left(31) ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
        }
        let next = self.sets.len() as u64 + 1;
        let room = self.told + self.found.len() <= MOST_TOLD;
        match self.sets.get(hashes) {
            Some(number) => (number, false),
            None if !room => (reach::EVERYTHING, false),
            None => {
                *self.sets.entry(hashes) = next;
                self.told += self.found.len();
                (next, true)
            }
        }
    }
}

/// From an address on, where nobody knows what begins there.
fn window(address: u64, end: u64) -> (u64, u64, bool) {
    (address, WINDOW.min(end - address), true)
}

fn stack_at(address: u64) -> Option<(u64, u64, bool)> {
    for thread in all().filter(|thread| thread.has_block()) {
        let ((low, high), (tls_low, tls_high)) = (thread.stack.get(), thread.tls.get());
        if low + NEAR_GUARD <= address && address < high {
            return Some(window(address, high));
        }
        if tls_low <= address && address < tls_high {
            return Some(window(address, tls_high));
        }
    }
    None
}

/// Live blocks are remembered from here on: there are calls that need them.
pub fn begin() {
    ON.store(true, Release);
}

/// Static data of all modules.
pub fn set_segments(segments: &[[u64; 2]]) {
    let state = &raw mut STATE;
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe {
        (*state).segments.truncate(0);
        segments.iter().for_each(|&segment| (*state).segments.push(segment));
    });
}

/// A forked child's only thread goes on with what was known; its sets are its own.
pub fn forked() {
    LOCK.reset();
    let state = &raw mut STATE;
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe {
        (*state).sets.clear_and_free();
        (*state).told = 0;
    });
}

/// A block begins to live. `mapping`: not all of it need be readable.
pub fn begins(address: u64, bytes: u64, mapping: bool) {
    if !ON.load(Relaxed) || bytes == 0 {
        return;
    }
    let state = &raw mut STATE;
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe {
        let state = &mut *state;
        if mapping || bytes > SMALL || !address.is_multiple_of(16) {
            state.large.push([address, bytes, u64::from(!mapping)]);
        } else {
            *state.blocks.entry((address / PER_WORD, BEGINS)) |= 1 << (address / 16 % 64);
            *state.blocks.entry((address, SIZE)) = bytes;
            state.lowest = state.lowest.min(address);
            state.highest = state.highest.max(address + bytes);
            state.largest = state.largest.max(bytes);
        }
    });
}

/// The block at an address ends.
pub fn ends(address: u64) {
    if !ON.load(Relaxed) {
        return;
    }
    let state = &raw mut STATE;
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe {
        let state = &mut *state;
        if let Some(place) = state.large.as_slice().iter().position(|block| block[0] == address) {
            state.large.remove(place);
        } else if state.blocks.get((address / PER_WORD, BEGINS)).is_some() {
            *state.blocks.entry((address / PER_WORD, BEGINS)) &= !(1 << (address / 16 % 64));
        }
    });
}

/// The set of what is reached from registers and from the static data of libraries (start, bytes). A new one is handed to `tell`:
/// pairs as `CallReaches` has them.
pub fn search(registers: &[u64; 6], data: &[[u64; 2]], tell: impl FnOnce(u64, &[[u64; 2]])) -> u64 {
    let state = &raw mut STATE;
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe {
        let state = &mut *state;
        state.searches += 1;
        state.work.truncate(0);
        state.found.truncate(0);
        registers.iter().for_each(|&word| state.consider(word));
        data.iter().for_each(|&[start, bytes]| state.reaches((start, bytes, bytes <= MOST_STATIC)));
        if !state.follow() {
            return reach::EVERYTHING;
        }
        let (number, is_new) = state.number();
        if is_new {
            tell(number, state.found.as_slice());
        }
        number
    })
}
