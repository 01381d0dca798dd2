//! Which bytes can matter between threads at all.
//!
//! Memory is cut into granules of eight bytes. A granule is *shared* if at least two threads touch it and at least one writes it.
//! All other granules neither race nor carry reads-from between threads, so every analysis skips them. Of the shared ones, those
//! that can hold a candidate are *contested* (see [`crate::contention`]). Synthetic addresses make this exact across reuse of
//! memory.
//!
//! Limit: of an access longer than [`MAX_GRANULES`] granules only that many are looked at.

use crate::contention::{Contention, Granule};
use crate::happens_before::{HappensBefore, Model};
use crate::lockset::LockSets;
use rashomon_event::{Access, Deadline, EventIndex, EventKind, EventSet, Trace};
use rustc_hash::FxHashMap;

/// Bytes per granule.
pub const GRANULE: u64 = 8;
/// 16 MiB: longer accesses are cut, so that one event cannot stall an analysis.
pub const MAX_GRANULES: u64 = 2 << 20;

/// Granules per page; a page is numbered as soon as one of its bytes is touched.
const PAGE: u64 = 64;
const CACHE_SLOTS: usize = 256;
const NOT_SHARED: u32 = u32::MAX;
const CONTESTED: u32 = 1 << 31;

pub struct SharedMemory {
    pages: FxHashMap<u64, u32>,
    /// Per page and granule: its number and whether it is contested, or [`NOT_SHARED`].
    numbers: Vec<u32>,
    shared: usize,
    contested: usize,
    /// The events that touch a contested granule.
    contending: EventSet,
    /// The events that touch a shared granule.
    sharing: EventSet,
    complete: bool,
}

/// Granule numbers of an access, with the bytes it touches in each as a bit mask.
#[inline]
fn granules(access: &Access) -> impl Iterator<Item = (u64, u8)> + use<> {
    let start = access.address.0;
    let end = start.saturating_add(u64::from(access.size.max(1)));
    let last = ((end - 1) / GRANULE).min(start / GRANULE + MAX_GRANULES);
    (start / GRANULE..=last).map(move |granule| {
        let low = start.saturating_sub(granule * GRANULE);
        let high = (end - granule * GRANULE).min(GRANULE);
        (granule, (0xffu32 >> (GRANULE - high) & 0xffu32 << low) as u8)
    })
}

/// Pages by address, in the order of first touch.
struct Pages {
    numbers: FxHashMap<u64, u32>,
    /// Direct-mapped: page and its number.
    cache: Vec<(u64, u32)>,
}

impl Pages {
    #[inline]
    fn number(&mut self, page: u64) -> usize {
        let (known, number) = self.cache[page as usize % CACHE_SLOTS];
        if known == page { number as usize } else { self.number_slowly(page) }
    }

    #[inline(never)]
    fn number_slowly(&mut self, page: u64) -> usize {
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(page).or_insert(next);
        self.cache[page as usize % CACHE_SLOTS] = (page, number);
        number as usize
    }
}

impl SharedMemory {
    pub fn new(trace: &Trace) -> Self {
        Self::until(trace, Deadline::NEVER)
    }

    /// What comes behind the deadline is not looked at: then the answer is of no use.
    pub fn until(trace: &Trace, deadline: Deadline) -> Self {
        let mut order = HappensBefore::new(trace, Model::WEAK);
        let mut locks = LockSets::new(order.threads());
        let mut contention = Contention::new(order.threads());
        let mut pages = Pages { numbers: FxHashMap::default(), cache: vec![(u64::MAX, 0); CACHE_SLOTS] };
        let mut states: Vec<Granule> = Vec::new();
        let mut events = deadline.bound(trace.indices().zip(&trace.events));
        for (index, event) in events.by_ref() {
            let plain = matches!(event.kind, EventKind::Access(_));
            let passive = plain && !order.is_kept(index);
            if !passive {
                order.receive(index, &event);
            }
            if let Some(access) = event.access() {
                let clock = order.clock(event.thread);
                let visit = contention.visit(event.thread, clock, locks.current(event.thread), &access);
                for (granule, _) in granules(&access) {
                    let at = pages.number(granule / PAGE) * PAGE as usize + (granule % PAGE) as usize;
                    if at >= states.len() {
                        states.resize((at / PAGE as usize + 1) * PAGE as usize, Granule::default());
                    }
                    contention.access(&mut states[at], visit, clock, &locks);
                }
            }
            if !plain {
                contention.step(&event);
                locks.step(index, &event);
            }
            if !passive {
                order.release(index, &event);
            }
        }
        let mut memory = Self {
            pages: pages.numbers,
            numbers: Vec::with_capacity(states.len()),
            shared: 0,
            contested: 0,
            contending: EventSet::default(),
            sharing: EventSet::default(),
            complete: !events.was_cut(),
        };
        for state in states {
            let number = match (state.is_shared(), state.is_contested()) {
                (false, _) => NOT_SHARED,
                (true, false) => memory.shared as u32,
                (true, true) => memory.shared as u32 | CONTESTED,
            };
            memory.shared += usize::from(state.is_shared());
            memory.contested += usize::from(number != NOT_SHARED && number & CONTESTED != 0);
            memory.numbers.push(number);
        }
        if memory.shared > 0 {
            memory.mark(trace, deadline);
        }
        memory
    }

    /// Finds the events that touch granules that are shared, or contested.
    fn mark(&mut self, trace: &Trace, deadline: Deadline) {
        let (mut contending, mut sharing) = <(EventSet, EventSet)>::default();
        let mut events = deadline.bound(trace.indices());
        for event in events.by_ref() {
            let Some(access) = trace.access(event) else { continue };
            let numbers = granules(&access).map(|(granule, _)| self.number(granule)).filter(|number| *number != NOT_SHARED);
            let (is_shared, is_contested) =
                numbers.fold((false, false), |(_, any), number| (true, any || number & CONTESTED != 0));
            if is_shared {
                sharing.insert(event);
            }
            if is_contested {
                contending.insert(event);
            }
        }
        (self.contending, self.sharing) = (contending, sharing);
        self.complete &= !events.was_cut();
    }

    /// Whether all of the trace was looked at.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// How many granules are shared; they are numbered from 0.
    pub fn len(&self) -> usize {
        self.shared
    }

    pub fn is_empty(&self) -> bool {
        self.shared == 0
    }

    /// How many of the shared granules can hold a candidate.
    pub fn contested(&self) -> usize {
        self.contested
    }

    /// The events that touch a contested granule.
    pub const fn contending(&self) -> &EventSet {
        &self.contending
    }

    /// The events that touch a shared granule.
    pub const fn sharing(&self) -> &EventSet {
        &self.sharing
    }

    /// Whether the event touches a contested granule.
    pub fn contends(&self, event: EventIndex) -> bool {
        self.contending.contains(event)
    }

    fn number(&self, granule: u64) -> u32 {
        match self.pages.get(&(granule / PAGE)) {
            Some(&page) => self.numbers[page as usize * PAGE as usize + (granule % PAGE) as usize],
            None => NOT_SHARED,
        }
    }

    /// The shared granules of an access: number and bytes.
    pub fn granules(&self, access: &Access) -> impl Iterator<Item = (usize, u8)> + use<'_> {
        granules(access).filter_map(|(granule, bytes)| match self.number(granule) {
            NOT_SHARED => None,
            number => Some(((number & !CONTESTED) as usize, bytes)),
        })
    }

    /// The same, each with the address of its first byte.
    pub fn placed_granules(&self, access: &Access) -> impl Iterator<Item = (u64, usize, u8)> + use<'_> {
        granules(access).filter_map(|(granule, bytes)| match self.number(granule) {
            NOT_SHARED => None,
            number => Some((granule * GRANULE, (number & !CONTESTED) as usize, bytes)),
        })
    }

    /// Those of them that can hold a candidate.
    pub fn contested_granules(&self, access: &Access) -> impl Iterator<Item = (usize, u8)> + use<'_> {
        granules(access).filter_map(|(granule, bytes)| match self.number(granule) {
            number if number == NOT_SHARED || number & CONTESTED == 0 => None,
            number => Some(((number & !CONTESTED) as usize, bytes)),
        })
    }
}
