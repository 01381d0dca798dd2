//! Where memory lies that code may be given the address of: live blocks of the heap, mappings, windows of static data and of
//! stacks, and threads by their handles. Each is a *place*; places of the heap end with their blocks, others stay known.
//!
//! Blocks up to [`SMALL`] bytes are found by a table of two levels, with one entry for each [`GRANULE`] bytes of memory, so that
//! looking for an address costs two loads. It takes a quarter of the memory that such blocks take. Everything else is in lists,
//! which are looked at only for addresses in pages where something of them has lain.

use crate::record::words::prefetch;
use crate::system::memory::{List, Map};
use crate::system::sys;
use crate::system::thread::all;
use core::sync::atomic::Ordering::*;
use rashomon_abi::record::reach;
use rashomon_logic::extent::Extent;

/// Of static data and stacks so much counts from an address on, where nobody knows what begins there.
const WINDOW: u64 = 512;
/// Blocks up to so many bytes are in the table, larger ones in a list.
const SMALL: u64 = 64 << 10;
/// More static data of a library than this is reached, but not followed.
pub const MOST_STATIC: u64 = 16 << 10;
/// Below the lowest address of a stack may be pages that nobody may touch.
const NEAR_GUARD: u64 = 64 << 10;
/// The allocator's blocks begin at multiples of this.
const GRANULE: u64 = 16;
/// Memory whose granules share a table of the second level.
const REGION: u64 = 64 << 20;
const ADDRESSES: u64 = 1 << 47;
const PAGE: u64 = 4096;
const PAGES: usize = (REGION / PAGE) as usize;

/// Second halves of keys of places that are no blocks.
const IN_MODULE: u64 = 1;
const ON_STACK: u64 = 2;
const OF_LIBRARY: u64 = 3;
const HANDLE: u64 = 4;
/// Of a handle whose page is noted.
const LISTED: u64 = 5;

/// Places of the lists that are remembered by their address.
const RECENT: usize = 256;

/// The number of a place while it is known; 0 is none.
pub type PlaceId = u32;

/// In one line of the cache: looking for them is what they are for.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub struct Place {
    /// First address; of a thread's handle the number of the thread.
    pub start: u64,
    /// Of a thread's handle [`reach::THREAD`].
    pub bytes: u64,
    /// It may be looked into.
    pub is_readable: bool,
    /// Its addresses lead to all of it, wherever in it they point to. Others (windows) begin at the address.
    pub is_whole: bool,
    /// The loader made it read-only: nobody writes it.
    pub is_constant: bool,
    /// The [state](Places::state) of what there is in which the targets of a constant were told.
    pub settled: u32,
    /// The search that came here last.
    pub visited: u64,
    /// Under which number it is told in the recording; 0: it is not yet.
    pub number: u32,
    /// What was told to be reached from here: where in the list of targets, how many, how many fit.
    pub targets: [u32; 3],
}

impl Place {
    const fn new(start: u64, bytes: u64, is_readable: bool) -> Self {
        Self {
            start,
            bytes,
            is_readable,
            is_whole: false,
            is_constant: false,
            settled: 0,
            visited: 0,
            number: 0,
            targets: [0; 3],
        }
    }
}

/// What lies in a region.
#[repr(C)]
struct Table {
    /// By granule, the block in it.
    blocks: [PlaceId; (REGION / GRANULE) as usize],
    /// By page, what has lain there: [`BLOCKS`], [`LISTED_THERE`].
    pages: [u8; PAGES],
}

/// Blocks of the table.
const BLOCKS: u8 = 1;
/// Something of the lists.
const LISTED_THERE: u8 = 2;

pub struct Places {
    places: List<Place>,
    /// Numbers of places that have ended.
    free: List<PlaceId>,
    /// By region.
    tables: *mut *mut Table,
    /// Blocks that are not in the table.
    large: List<PlaceId>,
    /// Something of the lists is not noted by page: they are always looked at.
    has_larger: bool,
    /// Around all places that there ever were.
    extent: Extent,
    /// Writable segments: start, end; and what of them is read-only once it is loaded.
    segments: List<[u64; 2]>,
    constants: List<[u64; 2]>,
    /// Counts changes of segments, and of libraries that are followed as a whole: constants may lead elsewhere.
    state: u32,
    /// Static data of libraries that is followed as a whole.
    libraries: List<PlaceId>,
    /// Places that are no blocks, by address (of a thread's handle 1 + its number) and kind.
    others: Map,
    /// Of the present search: stacks and static data of threads (first address that may be touched, end), and handles (handle,
    /// number).
    stacks: List<[u64; 2]>,
    handles: List<[u64; 2]>,
    /// What was found in the lists lately, by the lowest bits of the address: the address, and its place + 1. Forgotten when the
    /// lists change.
    recent: [(u64, u32); RECENT],
}

impl Places {
    pub const fn new() -> Self {
        Self {
            places: List::new(),
            free: List::new(),
            tables: core::ptr::null_mut(),
            large: List::new(),
            has_larger: false,
            extent: Extent::NOTHING,
            segments: List::new(),
            constants: List::new(),
            state: 1,
            libraries: List::new(),
            others: Map::new(),
            stacks: List::new(),
            handles: List::new(),
            recent: [(0, 0); RECENT],
        }
    }

    pub fn of(&mut self, id: PlaceId) -> &mut Place {
        &mut self.places.as_mut_slice()[id as usize]
    }

    /// Words outside of it are the address of no place.
    pub const fn extent(&self) -> Extent {
        self.extent
    }

    pub fn all(&mut self) -> &mut [Place] {
        self.places.as_mut_slice()
    }

    fn add(&mut self, place: Place) -> PlaceId {
        if self.places.len() == 0 {
            self.places.push(Place::new(0, 0, false));
        }
        if let Some(id) = self.free.pop() {
            let room = self.of(id).targets;
            *self.of(id) = Place { targets: [room[0], 0, room[2]], ..place };
            return id;
        }
        self.places.push(place);
        self.places.len() as PlaceId - 1
    }

    /// The table of the region around an address, made if `make`. Null: there is none.
    fn table(&mut self, address: u64, make: bool) -> *mut Table {
        const REGIONS: usize = (ADDRESSES / REGION) as usize;
        if address >= ADDRESSES || self.tables.is_null() && !make {
            return core::ptr::null_mut();
        }
        if self.tables.is_null() {
            self.tables = mapped(REGIONS * size_of::<*mut Table>()).cast();
        }
        // SAFETY: below the number of regions; entries are null or tables.
        let entry = unsafe { &mut *self.tables.add((address / REGION) as usize) };
        if entry.is_null() && make {
            *entry = mapped(size_of::<Table>()).cast();
        }
        *entry
    }

    /// Notes whose the granules of a block are.
    fn mark(&mut self, start: u64, bytes: u64, id: PlaceId) {
        const GRANULES: u64 = REGION / GRANULE;
        self.extent.grow(start, start + bytes);
        let (mut at, end) = (start, start + bytes);
        while at < end {
            let behind = end.min((at / REGION + 1) * REGION);
            let table = self.table(at, true);
            if !table.is_null() {
                let granules = at / GRANULE % GRANULES..(behind - 1) / GRANULE % GRANULES + 1;
                // SAFETY: a table of ours, borrowed for this block; all-zero bytes are one.
                let (blocks, pages) = unsafe { (&mut (*table).blocks, &mut (*table).pages) };
                blocks[granules.start as usize..granules.end as usize].fill(id);
                (at / PAGE..=(behind - 1) / PAGE).for_each(|page| pages[page as usize % PAGES] |= BLOCKS);
            }
            at = behind;
        }
    }

    /// Notes that something of the lists lies there. What is larger than a region is not noted by page: programs reserve
    /// terabytes.
    fn list(&mut self, start: u64, end: u64) {
        self.extent.grow(start, end);
        if end.saturating_sub(start) > REGION {
            self.has_larger = true;
            self.table(start, true);
            return;
        }
        for page in start / PAGE..end.min(ADDRESSES).div_ceil(PAGE) {
            let table = self.table(page * PAGE, true);
            if !table.is_null() {
                // SAFETY: as above.
                unsafe { (*table).pages[page as usize % PAGES] |= LISTED_THERE };
            }
        }
    }

    /// The block in the table around an address, and whether the lists have to be looked at for it.
    #[inline]
    fn block_at(&mut self, address: u64) -> (Option<PlaceId>, bool) {
        let table = self.table(address, false);
        if table.is_null() {
            return (None, false);
        }
        // SAFETY: a table of ours, borrowed for this statement.
        let there = unsafe { (*table).pages[(address / PAGE) as usize % PAGES] };
        let listed = there & LISTED_THERE != 0;
        if there & BLOCKS == 0 {
            return (None, listed);
        }
        // SAFETY: as above.
        let id = unsafe { (*table).blocks[(address / GRANULE % (REGION / GRANULE)) as usize] };
        // What a granule names may have ended, and be another place by now.
        let place = self.of(id);
        ((address.wrapping_sub(place.start) < place.bytes).then_some(id), listed)
    }

    /// A block begins to live.
    pub fn begins(&mut self, start: u64, bytes: u64, is_mapping: bool) {
        let id = self.add(Place { is_whole: true, ..Place::new(start, bytes, !is_mapping) });
        if is_mapping || bytes > SMALL || !start.is_multiple_of(GRANULE) {
            self.large.push(id);
            self.forget();
            self.list(start, start.saturating_add(bytes));
        } else {
            self.mark(start, bytes, id);
        }
    }

    /// The block at an address ends. What its granules say is left as it is: the place has no bytes any more.
    pub fn ends(&mut self, address: u64) {
        let found = self.block_at(address).0.filter(|&id| self.places.as_slice()[id as usize].start == address);
        let id = found.or_else(|| {
            let at = self.large.as_slice().iter().position(|&id| self.places.as_slice()[id as usize].start == address)?;
            self.forget();
            Some(self.large.remove(at))
        });
        if let Some(id) = id {
            self.of(id).bytes = 0;
            self.free.push(id);
        }
    }

    /// Writable segments of all modules, and constants in them.
    pub fn set_segments(&mut self, segments: &[[u64; 2]], constants: &[[u64; 2]]) {
        self.segments.truncate(0);
        self.constants.truncate(0);
        self.libraries.truncate(0);
        self.forget();
        self.state += 1;
        for &[start, end] in segments {
            self.segments.push([start, end]);
            self.list(start, end);
        }
        constants.iter().for_each(|&range| self.constants.push(range));
    }

    pub const fn state(&self) -> u32 {
        self.state
    }

    /// Whether a place is known for good: it is no block.
    pub fn stays(&mut self, id: PlaceId) -> bool {
        !self.of(id).is_whole || self.libraries.as_slice().contains(&id)
    }

    /// Which threads there are, before a search.
    pub fn look_at_threads(&mut self) {
        let (mut count, mut handles) = (0, 0);
        for thread in all() {
            if thread.has_block() {
                let ((low, high), (tls_low, tls_high)) = (thread.stack.get(), thread.tls.get());
                for range in [[low + NEAR_GUARD, high], [tls_low, tls_high]] {
                    self.set_stack(count, range);
                    count += 1;
                }
            }
            let handle = thread.handle.load(Acquire);
            if !thread.joined.get() && handle != 0 {
                self.set_handle(handles, [handle, u64::from(thread.number.get())]);
                handles += 1;
            }
        }
        if (self.stacks.len(), self.handles.len()) != (count, handles) {
            self.stacks.truncate(count);
            self.handles.truncate(handles);
            self.forget();
        }
    }

    /// Addresses may be found in other lists from now on.
    fn forget(&mut self) {
        self.recent.fill((0, 0));
    }

    /// Most searches find the threads as the one before did.
    fn set_handle(&mut self, at: usize, known: [u64; 2]) {
        if self.handles.as_slice().get(at) == Some(&known) {
            return;
        }
        self.handles.truncate(at);
        self.handles.push(known);
        self.forget();
        let handle = known[0];
        if core::mem::replace(self.others.entry((handle, LISTED)), 1) == 0 {
            self.list(handle, handle.saturating_add(1));
        }
    }

    fn set_stack(&mut self, at: usize, [start, end]: [u64; 2]) {
        if self.stacks.as_slice().get(at) == Some(&[start, end]) {
            return;
        }
        self.stacks.truncate(at);
        self.stacks.push([start, end]);
        self.forget();
        if start < end {
            self.list(start, end);
        }
    }

    /// A place that is no block, by its kind. One that has another size than before is another place.
    fn other(&mut self, kind: u64, key: u64, place: Place) -> PlaceId {
        let known = *self.others.entry((key, kind)) as PlaceId;
        if known == 0 {
            let id = self.add(place);
            *self.others.entry((key, kind)) = u64::from(id);
            return id;
        }
        let found = self.of(known);
        if found.bytes != place.bytes {
            *found = Place { targets: [found.targets[0], 0, found.targets[2]], ..place };
        }
        known
    }

    /// Memory that a library has without being given it. Static data, unless there is much of it, is looked into, and addresses
    /// in it lead to all of it from now on: there may be hundreds (tables whose entries point to each other), and a window from
    /// each would be looked at again and again. Elsewhere the block around the address is meant, or memory that nothing is known
    /// of, which is not looked into.
    pub fn data(&mut self, start: u64, bytes: u64) -> PlaceId {
        let end = start.saturating_add(bytes);
        let is_static = self.segments.as_slice().iter().any(|&[first, behind]| first <= start && end <= behind);
        if !is_static && let Some(block) = self.find(start) {
            return block;
        }
        let is_readable = is_static && bytes <= MOST_STATIC;
        let place = Place { is_whole: is_readable, ..Place::new(start, bytes, is_readable) };
        let id = self.other(OF_LIBRARY, start, place);
        if is_readable && !self.libraries.as_slice().contains(&id) {
            self.libraries.push(id);
            self.forget();
            self.state += 1;
        }
        id
    }

    /// Leaves those of some words within the extent that point to pages where something has lain, and not into `own` bytes from
    /// `start` on. How many these are. Without a branch for each.
    #[inline]
    pub fn sift(&self, words: &mut [u64], start: u64, own: u64) -> usize {
        static EMPTY: [u8; PAGES] = [0; PAGES];
        if self.tables.is_null() {
            return 0;
        }
        let mut count = 0;
        for at in 0..words.len() {
            let word = words[at];
            // SAFETY: words within the extent are below [`ADDRESSES`]; entries are null or tables.
            let there = unsafe {
                let table = *self.tables.add((word / REGION) as usize);
                let pages = if table.is_null() { EMPTY.as_ptr() } else { (&raw const (*table).pages).cast::<u8>() };
                prefetch(table.cast::<PlaceId>().wrapping_add((word / GRANULE % (REGION / GRANULE)) as usize) as u64);
                *pages.add((word / PAGE) as usize % PAGES)
            };
            words[count] = word;
            count += usize::from((there != 0) | self.has_larger) & usize::from(word.wrapping_sub(start) >= own);
        }
        count
    }

    /// Has the processor fetch what is known of the block that a word may be an address of.
    #[inline]
    pub fn fetch(&self, word: u64) {
        // SAFETY: as above; in a table, and where there is none nothing is read.
        let id = unsafe {
            let table = *self.tables.add((word / REGION) as usize);
            if table.is_null() { 0 } else { (*table).blocks[(word / GRANULE % (REGION / GRANULE)) as usize] }
        };
        prefetch(self.places.as_slice().as_ptr().wrapping_add(id as usize) as u64);
    }

    /// The place that a word is an address of, if it is one.
    #[inline]
    pub fn find(&mut self, word: u64) -> Option<PlaceId> {
        if self.extent.has(word) { self.find_within(word) } else { None }
    }

    /// The same for a word within the extent.
    #[inline]
    pub fn find_within(&mut self, word: u64) -> Option<PlaceId> {
        match self.block_at(word) {
            (None, listed) if listed || self.has_larger => self.find_recent(word),
            (block, _) => block,
        }
    }

    #[inline]
    fn find_recent(&mut self, word: u64) -> Option<PlaceId> {
        let at = (word >> 3) as usize % RECENT;
        let (address, id) = self.recent[at];
        if address == word {
            return id.checked_sub(1);
        }
        let found = self.find_other(word);
        self.recent[at] = (word, found.map_or(0, |id| id + 1));
        found
    }

    #[inline(never)]
    fn find_other(&mut self, word: u64) -> Option<PlaceId> {
        let places = self.places.as_slice();
        let is_around = |id: &&PlaceId| {
            let place = &places[**id as usize];
            word.wrapping_sub(place.start) < place.bytes
        };
        if let Some(&id) = self.large.as_slice().iter().find(is_around) {
            return Some(id);
        }
        let around = |range: &&[u64; 2]| (range[0]..range[1]).contains(&word);
        let window = |end: u64| Place::new(word, WINDOW.min(end - word), true);
        let is_constant = |place: &Place| {
            let within = |range: &[u64; 2]| range[0] <= place.start && place.start + place.bytes <= range[1];
            self.constants.as_slice().iter().any(within)
        };
        if let Some(&[_, end]) = self.segments.as_slice().iter().find(around) {
            let whole = self.libraries.as_slice().iter().find(is_around);
            let window = window(end);
            let window = Place { is_constant: is_constant(&window), ..window };
            return Some(whole.copied().unwrap_or_else(|| self.other(IN_MODULE, word, window)));
        }
        if let Some(&[_, number]) = self.handles.as_slice().iter().find(|handle| handle[0] == word) {
            return Some(self.other(HANDLE, number + 1, Place::new(number, reach::THREAD, false)));
        }
        let &[_, end] = self.stacks.as_slice().iter().find(around)?;
        Some(self.other(ON_STACK, word, window(end)))
    }
}

fn mapped(bytes: usize) -> *mut u8 {
    let memory = sys::map_anonymous(bytes);
    if memory.is_null() {
        sys::die(&[b"out of memory for a table of the runtime"]);
    }
    memory
}
