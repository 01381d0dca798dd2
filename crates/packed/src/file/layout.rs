//! The bytes of a packed trace. All numbers are little-endian.

use crate::event::{Event, Op, Space};

pub(crate) const MAGIC: [u8; 8] = *b"RASHPACK";
pub(super) const VERSION: u32 = 1;
pub(super) const HEADER: usize = 64;
pub(super) const CHUNK_HEADER: usize = 32;
/// Events of a chunk: what fits the second-level cache.
pub(super) const CHUNK_EVENTS: usize = 1 << 14;
/// Bytes behind a chunk's header.
pub(super) const MAX_PAYLOAD: usize = 1 << 20;
pub(super) const END_PAYLOAD: usize = 64;
pub(super) const OP_BITS: u32 = 5;

const _: () = assert!(Op::COUNT <= 1 << OP_BITS);
const _: () = assert!(CHUNK_EVENTS * 16 <= MAX_PAYLOAD);

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The file's first bytes. Zero stands for what its writer did not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub events: u64,
    pub numbers: [u32; Space::COUNT],
}

impl FileHeader {
    pub fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.events.to_le_bytes());
        for (index, number) in self.numbers.iter().enumerate() {
            bytes[24 + 4 * index..28 + 4 * index].copy_from_slice(&number.to_le_bytes());
        }
        let checksum = crc32fast::hash(&bytes);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8; HEADER]) -> Result<Self, String> {
        if bytes[..8] != MAGIC {
            return Err("not a packed trace".into());
        }
        let version = u32_at(bytes, 8);
        if version != VERSION {
            return Err(format!("a packed trace of version {version}; this program reads version {VERSION}"));
        }
        let mut blank = *bytes;
        blank[12..16].fill(0);
        if crc32fast::hash(&blank) != u32_at(bytes, 12) {
            return Err("the header's checksum does not match".into());
        }
        Ok(Self { events: u64_at(bytes, 16), numbers: std::array::from_fn(|index| u32_at(bytes, 24 + 4 * index)) })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Events,
    Names,
    End,
}

impl Kind {
    const ALL: [(Self, [u8; 4]); 3] = [(Self::Events, *b"EVTS"), (Self::Names, *b"NAME"), (Self::End, *b"ENDS")];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkHeader {
    pub kind: Kind,
    pub length: u32,
    /// Events or names in it.
    pub count: u32,
    pub checksum: u32,
    /// The first event's index, the first name's number, or how many events there were.
    pub first: u64,
    /// Widths of an event's fields, or the space of the names.
    pub detail: [u8; 4],
}

impl ChunkHeader {
    pub fn encode(&self) -> [u8; CHUNK_HEADER] {
        let mut bytes = [0; CHUNK_HEADER];
        let (_, mark) = Kind::ALL.into_iter().find(|(kind, _)| *kind == self.kind).expect("all kinds are listed");
        bytes[..4].copy_from_slice(&mark);
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.count.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.checksum.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.detail);
        let checksum = crc32fast::hash(&bytes[..28]);
        bytes[28..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8; CHUNK_HEADER]) -> Result<Self, String> {
        if crc32fast::hash(&bytes[..28]) != u32_at(bytes, 28) {
            return Err("the checksum of a chunk's header does not match".into());
        }
        let Some((kind, _)) = Kind::ALL.into_iter().find(|(_, mark)| *mark == bytes[..4]) else {
            return Err("a chunk of a kind that version 1 does not have".into());
        };
        let header = Self {
            kind,
            length: u32_at(bytes, 4),
            count: u32_at(bytes, 8),
            checksum: u32_at(bytes, 12),
            first: u64_at(bytes, 16),
            detail: bytes[24..28].try_into().expect("four bytes"),
        };
        if header.length as usize > MAX_PAYLOAD {
            return Err(format!("a chunk of {} bytes; the most there can be is {MAX_PAYLOAD}", header.length));
        }
        Ok(header)
    }
}

/// How many bits each field takes in a word; from the lowest: operation, order, thread, location, target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub order: u32,
    pub thread: u32,
    pub location: u32,
    pub target: u32,
}

/// Operations by number; what there is not is replaced, and noticed beforehand.
const OPS: [Op; 1 << OP_BITS] = {
    let mut ops = [Op::Nothing; 1 << OP_BITS];
    let mut number = 0;
    while number < Op::COUNT {
        if let Some(op) = Op::from_number(number) {
            ops[number as usize] = op;
        }
        number += 1;
    }
    ops
};

impl Layout {
    /// Two words an event: for numbers that one does not hold.
    pub const WIDE: Self = Self { order: 3, thread: 16, location: 32, target: 32 };

    /// Just wide enough.
    pub fn of(events: &[Event]) -> Self {
        let (mut order, mut thread, mut location, mut target) = (0, 0, 0, 0);
        for event in events {
            order |= event.order;
            thread |= event.thread;
            location |= event.location;
            target |= event.target;
        }
        let layout = Self {
            order: 8 - order.leading_zeros(),
            thread: 16 - thread.leading_zeros(),
            location: 32 - location.leading_zeros(),
            target: 32 - target.leading_zeros(),
        };
        if layout.bits() <= 64 { layout } else { Self::WIDE }
    }

    fn bits(self) -> u32 {
        OP_BITS + self.order + self.thread + self.location + self.target
    }

    /// Bytes of an event.
    pub fn stride(self) -> usize {
        if self.bits() <= 64 { 8 } else { 16 }
    }

    pub fn detail(self) -> [u8; 4] {
        [self.order, self.thread, self.location, self.target].map(|bits| bits as u8)
    }

    pub fn from_detail(detail: [u8; 4]) -> Result<Self, String> {
        let [order, thread, location, target] = detail.map(u32::from);
        let layout = Self { order, thread, location, target };
        if order > 3 || thread > 16 || location > 32 || target > 32 || layout.bits() > 64 && layout != Self::WIDE {
            return Err(format!("fields of {order}, {thread}, {location} and {target} bits, which no event has"));
        }
        Ok(layout)
    }

    pub fn encode(self, events: &[Event], payload: &mut Vec<u8>) {
        payload.reserve(events.len() * self.stride());
        if self == Self::WIDE {
            for event in events {
                let low = u64::from(event.op as u8) | u64::from(event.order) << OP_BITS | u64::from(event.thread) << 16;
                payload.extend_from_slice(&low.to_le_bytes());
                payload.extend_from_slice(&(u64::from(event.target) << 32 | u64::from(event.location)).to_le_bytes());
            }
            return;
        }
        let (thread, location, target) = self.shifts();
        for event in events {
            // A field of no bits may stand behind the word's end.
            let word = u64::from(event.op as u8)
                | u64::from(event.order) << OP_BITS
                | u64::from(event.thread) << thread
                | u64::from(event.location).checked_shl(location).unwrap_or(0)
                | u64::from(event.target).checked_shl(target).unwrap_or(0);
            payload.extend_from_slice(&word.to_le_bytes());
        }
    }

    fn shifts(self) -> (u32, u32, u32) {
        let thread = OP_BITS + self.order;
        let location = thread + self.thread;
        (thread, location, location + self.location)
    }

    /// Appends the events of whole words. False: one of them has an operation that there is not.
    #[inline]
    pub fn decode(self, payload: &[u8], block: &mut Vec<Event>) -> bool {
        let mut highest = 0;
        let op_mask = (1_u64 << OP_BITS) - 1;
        if self == Self::WIDE {
            block.extend(payload.chunks_exact(16).map(|words| {
                let (low, high) = (u64_at(words, 0), u64_at(words, 8));
                let op = low & op_mask;
                highest = highest.max(op);
                Event {
                    target: (high >> 32) as u32,
                    location: high as u32,
                    thread: (low >> 16) as u16,
                    op: OPS[op as usize],
                    order: (low >> OP_BITS & 7) as u8,
                }
            }));
        } else {
            let (thread, location, target) = self.shifts();
            let mask = |bits: u32| (1_u64 << bits) - 1;
            let (order_mask, thread_mask) = (mask(self.order), mask(self.thread));
            let (location_mask, target_mask) = (mask(self.location), mask(self.target));
            // Where a field has no bits its shift may be the word's width: the mask is empty, the shift's amount does not matter.
            let (location, target) = (location & 63, target & 63);
            block.extend(payload.chunks_exact(8).map(|word| {
                let word = u64_at(word, 0);
                let op = word & op_mask;
                highest = highest.max(op);
                Event {
                    target: (word >> target & target_mask) as u32,
                    location: (word >> location & location_mask) as u32,
                    thread: (word >> thread & thread_mask) as u16,
                    op: OPS[op as usize],
                    order: (word >> OP_BITS & order_mask) as u8,
                }
            }));
        }
        highest < u64::from(Op::COUNT)
    }
}

/// Numbers that a file may use without having said so, of each space: a table of locks by number, four bytes each, tells whether
/// their use is well-formed.
const FREE_NUMBERS: u64 = 1 << 24;
/// Numbers that a file may announce.
pub(super) const ANNOUNCED_NUMBERS: u32 = 1 << 27;
/// Numbers that come with each event.
const NUMBERS_AN_EVENT: u64 = 16;

/// First number that is too high for a trace of so many events that announced so many numbers.
pub(super) fn number_bound(announced: u32, events: u64) -> u64 {
    FREE_NUMBERS.max(u64::from(announced.min(ANNOUNCED_NUMBERS))).max(events.saturating_mul(NUMBERS_AN_EVENT))
}

/// What the last chunk says about the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub events: u64,
    /// One more than the highest number used.
    pub numbers: [u32; Space::COUNT],
    pub names: [u32; Space::COUNT],
}

impl Totals {
    pub fn encode(&self) -> [u8; END_PAYLOAD] {
        let mut bytes = [0; END_PAYLOAD];
        bytes[..8].copy_from_slice(&self.events.to_le_bytes());
        for (index, number) in self.numbers.iter().chain(&self.names).enumerate() {
            bytes[8 + 4 * index..12 + 4 * index].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    pub fn decode(bytes: &[u8; END_PAYLOAD]) -> Self {
        Self {
            events: u64_at(bytes, 0),
            numbers: std::array::from_fn(|index| u32_at(bytes, 8 + 4 * index)),
            names: std::array::from_fn(|index| u32_at(bytes, 32 + 4 * index)),
        }
    }

    /// Takes the numbers of one more event into account.
    #[inline]
    pub fn count(&mut self, event: &Event) {
        let mut use_number = |space: Space, number: u32| {
            let highest = &mut self.numbers[space as usize];
            *highest = (*highest).max(number.saturating_add(1));
        };
        use_number(Space::Thread, event.thread.into());
        use_number(Space::Location, event.location);
        if let Some(space) = event.op.space() {
            use_number(space, event.target);
        }
    }
}
