//! Locations: what is remembered for the bytes of memory.
//!
//! The paper has a shadow value for each byte (§4). Bytes that were always accessed together have the same value, so they share
//! one *location*, of at most eight bytes of one aligned word. A location is split where an access touches a part of it; each
//! part then goes on with the history of the whole. So the result is that of a shadow for each byte.

use crate::accesses::Accesses;
use crate::event::Bytes;
use crate::forest::{Id, LocationId, SetId, UnitId};
use rustc_hash::FxHashMap;

#[derive(Clone, Debug)]
pub(crate) struct Location {
    pub start: u64,
    pub len: u8,
    /// More than one thread accessed it.
    pub shared: bool,
    /// Its set was declared, and stays.
    pub declared: bool,
    /// Dense number of the thread that accessed it first.
    pub owner: usize,
    pub set: SetId,
    /// The unit that wrote it last, and the activation in which it did.
    pub writer: Option<UnitId>,
    pub activation: u64,
    pub accesses: Accesses,
    /// The circle of the members of its set.
    next: LocationId,
    previous: LocationId,
}

impl Location {
    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.start, u32::from(self.len))
    }
}

/// A part of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Known(LocationId),
    /// Within one word, and not accessed before.
    Gap(Bytes),
}

const WORD: u64 = 8;

/// Entries of [`Memory::recent`].
const RECENT: usize = 1 << 12;

pub(crate) struct Memory {
    /// By the word's number: a location in it that was accessed as a whole. It may be another one by now, or none.
    recent: Box<[Option<LocationId>; RECENT]>,
    words: FxHashMap<u64, [Option<LocationId>; WORD as usize]>,
    locations: Vec<Option<Location>>,
    free: Vec<LocationId>,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory { recent: Box::new([None; RECENT]), words: FxHashMap::default(), locations: Vec::new(), free: Vec::new() }
    }
}

impl Memory {
    #[inline]
    pub fn get(&self, id: LocationId) -> &Location {
        self.locations[id.index()].as_ref().expect("a number is used only until its location is removed")
    }

    #[inline]
    pub fn get_mut(&mut self, id: LocationId) -> &mut Location {
        self.locations[id.index()].as_mut().expect("a number is used only until its location is removed")
    }

    pub fn in_use(&self) -> usize {
        self.locations.len() - self.free.len()
    }

    /// Numbers of locations are below this.
    pub fn len(&self) -> usize {
        self.locations.len()
    }

    /// What is known of the accesses to a location, if it exists; it is to be given back.
    pub fn take_accesses(&mut self, id: LocationId) -> Accesses {
        self.locations[id.index()].as_mut().map(|location| std::mem::take(&mut location.accesses)).unwrap_or_default()
    }

    pub fn set_accesses(&mut self, id: LocationId, accesses: Accesses) {
        if let Some(location) = &mut self.locations[id.index()] {
            location.accesses = accesses;
        }
    }

    pub fn all(&self) -> impl Iterator<Item = &Location> {
        self.locations.iter().flatten()
    }

    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Location> {
        self.locations.iter_mut().flatten()
    }

    /// The location of a byte.
    pub fn at(&self, address: u64) -> Option<LocationId> {
        self.words.get(&(address / WORD))?[(address % WORD) as usize]
    }

    fn recent_of(bytes: Bytes) -> usize {
        (bytes.start / WORD) as usize % RECENT
    }

    /// The location that is just this range, if it was accessed lately.
    #[inline]
    pub fn recent(&self, bytes: Bytes) -> Option<LocationId> {
        let id = self.recent[Self::recent_of(bytes)]?;
        let location = self.locations[id.index()].as_ref()?;
        (location.bytes() == bytes).then_some(id)
    }

    /// The parts of a range, in order. Locations that it touches in part are split.
    pub fn cover(&mut self, bytes: Bytes, pieces: &mut Vec<Piece>) {
        if bytes.len == 0 {
            return;
        }
        let end = bytes.end();
        if let Some(id) = self.at(bytes.start)
            && self.get(id).bytes() == bytes
        {
            self.recent[Self::recent_of(bytes)] = Some(id);
            pieces.push(Piece::Known(id));
            return;
        }
        self.split(bytes.start);
        self.split(end);
        let mut at = bytes.start;
        while at < end {
            let Some(ids) = self.words.get(&(at / WORD)) else {
                let stop = end.min((at / WORD + 1).saturating_mul(WORD));
                pieces.push(Piece::Gap(Bytes::new(at, (stop - at) as u32)));
                at = stop;
                continue;
            };
            let offset = (at % WORD) as usize;
            let reach = (end - at).min(WORD - offset as u64) as usize;
            let same = ids[offset..offset + reach].iter().take_while(|id| **id == ids[offset]).count() as u64;
            pieces.push(match ids[offset] {
                Some(id) => Piece::Known(id),
                None => Piece::Gap(Bytes::new(at, same as u32)),
            });
            at += same;
        }
    }

    /// Makes `address` the beginning of a location, if it is within one.
    fn split(&mut self, address: u64) {
        let Some(id) = self.at(address) else { return };
        let front = self.get_mut(id);
        if front.start == address {
            return;
        }
        let mut back = front.clone();
        back.start = address;
        back.len = (front.start + u64::from(front.len) - address) as u8;
        front.len -= back.len;
        let bytes = back.bytes();
        let new = self.place(back);
        self.name(bytes, Some(new));
        self.link_behind(id, new);
    }

    /// A location for bytes of one word that have none. It is alone in its circle.
    pub fn add(&mut self, bytes: Bytes, owner: usize, set: SetId, declared: bool) -> LocationId {
        debug_assert!(bytes.len > 0 && bytes.start / WORD == (bytes.end() - 1) / WORD);
        let alone = LocationId::at(0);
        let location = Location {
            start: bytes.start,
            len: bytes.len as u8,
            shared: false,
            declared,
            owner,
            set,
            writer: None,
            activation: 0,
            accesses: Accesses::new(),
            next: alone,
            previous: alone,
        };
        let id = self.place(location);
        let location = self.get_mut(id);
        (location.next, location.previous) = (id, id);
        self.name(bytes, Some(id));
        id
    }

    fn place(&mut self, location: Location) -> LocationId {
        if let Some(id) = self.free.pop() {
            self.locations[id.index()] = Some(location);
            return id;
        }
        self.locations.push(Some(location));
        LocationId::at(self.locations.len() - 1)
    }

    fn name(&mut self, bytes: Bytes, id: Option<LocationId>) {
        let ids = self.words.entry(bytes.start / WORD).or_default();
        let offset = (bytes.start % WORD) as usize;
        ids[offset..offset + bytes.len as usize].fill(id);
    }

    /// Forgets a location. It must be alone in its circle.
    pub fn remove(&mut self, id: LocationId) {
        let bytes = self.get(id).bytes();
        debug_assert_eq!(self.get(id).next, id);
        self.name(bytes, None);
        self.locations[id.index()] = None;
        self.free.push(id);
    }

    /// Forgets words in which no location is left.
    pub fn sweep(&mut self) {
        self.words.retain(|_, ids| ids.iter().any(Option::is_some));
    }

    /// The locations of a range that may be large.
    pub fn within(&mut self, start: u64, len: u64) -> Vec<LocationId> {
        let end = start.saturating_add(len);
        if len == 0 {
            return Vec::new();
        }
        self.split(start);
        self.split(end);
        let words = (end - 1) / WORD - start / WORD;
        let mut found = Vec::new();
        let mut look = |word: u64, ids: &[Option<LocationId>; WORD as usize]| {
            for (offset, id) in ids.iter().enumerate() {
                let address = word * WORD + offset as u64;
                if (start..end).contains(&address)
                    && let Some(id) = id
                    && found.last() != Some(id)
                {
                    found.push(*id);
                }
            }
        };
        if words <= self.words.len() as u64 {
            for word in start / WORD..=(end - 1) / WORD {
                if let Some(ids) = self.words.get(&word) {
                    look(word, ids);
                }
            }
        } else {
            for (word, ids) in &self.words {
                look(*word, ids);
            }
            // The order of the table is nobody's business.
            found.sort_unstable();
        }
        found
    }

    fn link_behind(&mut self, id: LocationId, new: LocationId) {
        let next = self.get(id).next;
        self.get_mut(id).next = new;
        self.get_mut(next).previous = new;
        let location = self.get_mut(new);
        (location.previous, location.next) = (id, next);
    }

    /// Two circles become one.
    pub fn join_circles(&mut self, one: LocationId, other: LocationId) {
        let (behind_one, behind_other) = (self.get(one).next, self.get(other).next);
        self.get_mut(one).next = behind_other;
        self.get_mut(behind_other).previous = one;
        self.get_mut(other).next = behind_one;
        self.get_mut(behind_one).previous = other;
    }

    /// Takes a location out of its circle; another one of the circle, if there is one.
    pub fn leave_circle(&mut self, id: LocationId) -> Option<LocationId> {
        let (next, previous) = (self.get(id).next, self.get(id).previous);
        if next == id {
            return None;
        }
        self.get_mut(previous).next = next;
        self.get_mut(next).previous = previous;
        let location = self.get_mut(id);
        (location.next, location.previous) = (id, id);
        Some(next)
    }

    /// The members of the circle, beginning with `id`.
    pub fn circle(&self, id: LocationId) -> impl Iterator<Item = LocationId> {
        let mut at = Some(id);
        std::iter::from_fn(move || {
            let now = at?;
            let next = self.get(now).next;
            at = (next != id).then_some(next);
            Some(now)
        })
    }
}
