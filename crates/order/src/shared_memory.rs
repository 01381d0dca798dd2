//! Which bytes can matter between threads at all.
//!
//! Memory is cut into granules of eight bytes. A granule is *shared* if at least two threads touch it and at least one writes it. All
//! other granules neither race nor carry reads-from between threads, so every analysis skips them; most accesses of most programs
//! are gone with one bit test. Synthetic addresses make this exact across reuse of memory.
//!
//! Limit: of an access longer than [`MAX_GRANULES`] granules only that many are looked at.

use crate::hash::IntegerMap;
use rashomon_event::{Access, EventIndex, Trace};

/// Bytes per granule.
pub const GRANULE: u64 = 8;
/// 16 MiB: longer accesses are cut, so that one event cannot stall an analysis.
pub const MAX_GRANULES: u64 = 2 << 20;

const SEVERAL: u32 = 1 << 31;
const WRITTEN: u32 = 1 << 30;
const THREAD: u32 = WRITTEN - 1;

pub struct SharedMemory {
    numbers: IntegerMap<u64, u32>,
    /// One bit per event: it touches a shared granule.
    touching: Vec<u64>,
}

/// Granule numbers of an access, with the bytes it touches in each as a bit mask.
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

impl SharedMemory {
    pub fn new(trace: &Trace) -> Self {
        let mut states: IntegerMap<u64, u32> = IntegerMap::default();
        for event in &trace.events {
            let Some(access) = event.access() else {
                continue;
            };
            let thread = event.thread.0 & THREAD;
            let written = if access.class.writes() { WRITTEN } else { 0 };
            for (granule, _) in granules(&access) {
                let state = states.entry(granule).or_insert(thread);
                if *state & THREAD != thread {
                    *state |= SEVERAL;
                }
                *state |= written;
            }
        }
        states.retain(|_, state| *state & (SEVERAL | WRITTEN) == SEVERAL | WRITTEN);
        states.shrink_to_fit();
        let mut memory = Self { numbers: states, touching: vec![0; trace.events.len().div_ceil(64)] };
        // Numbers in the order of first touch, so that they do not depend on the order of the table.
        const NONE: u32 = u32::MAX;
        for number in memory.numbers.values_mut() {
            *number = NONE;
        }
        let mut next = 0;
        for (index, event) in trace.events.iter().enumerate() {
            let Some(access) = event.access() else {
                continue;
            };
            for (granule, _) in granules(&access) {
                if let Some(number) = memory.numbers.get_mut(&granule) {
                    if *number == NONE {
                        *number = next;
                        next += 1;
                    }
                    memory.touching[index / 64] |= 1 << (index % 64);
                }
            }
        }
        memory
    }

    /// How many granules are shared; they are numbered from 0.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    pub fn touches(&self, event: EventIndex) -> bool {
        self.touching[event.index() / 64] >> (event.index() % 64) & 1 == 1
    }

    /// The shared granules of an access: number and bytes.
    pub fn granules(&self, access: &Access) -> impl Iterator<Item = (usize, u8)> + use<'_> {
        granules(access).filter_map(|(granule, bytes)| self.numbers.get(&granule).map(|&number| (number as usize, bytes)))
    }
}
