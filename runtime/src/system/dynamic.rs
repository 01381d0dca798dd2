//! What a loaded module says of itself in its dynamic section: the names that it needs, the slots through which it calls others,
//! and where its static data lies.

use crate::system::modules::{Module, ProgramHeader, STRINGS, SYMBOLS};
use core::ffi::{CStr, c_char};
use core::ops::Range;

const LOADED: u32 = 1;
const DYNAMIC: u32 = 2;
const SEALED: u32 = 0x6474_e552;
/// Tags of the dynamic section.
const NEEDED: u64 = 1;
const SLOTS_SIZE: u64 = 2;
const SLOT_TABLE: u64 = 3;
const RELOCATIONS: u64 = 7;
const RELOCATIONS_SIZE: u64 = 8;
const OWN_NAME: u64 = 14;
const SLOT_RELOCATIONS: u64 = 23;
/// A relocation: place, kind and symbol, addend.
const RELOCATION: u64 = 24;
const SYMBOL: u64 = 24;

/// A segment of a module.
#[derive(Clone, Copy)]
pub struct Segment {
    pub start: u64,
    pub end: u64,
    pub is_executable: bool,
    pub is_writable: bool,
}

/// A slot that the loader fills with the address of a function.
#[derive(Clone, Copy)]
pub struct Slot {
    pub place: u64,
    /// Of the function, terminated.
    pub name: u64,
    /// The loader made its page read-only.
    pub is_sealed: bool,
}

impl Module<'_> {
    /// All words of the dynamic section under a tag.
    fn entries(&self, tag: u64) -> impl Iterator<Item = u64> {
        let dynamic = self.headers.iter().find(|header| header.kind == DYNAMIC);
        let (place, count) = dynamic.map_or((0, 0), |it| (self.base + it.address, it.memory_size / 16));
        // SAFETY: the module's dynamic section, loaded.
        let entry = move |at| unsafe { *((place + 16 * at) as *const [u64; 2]) };
        (0..count).map(entry).take_while(|entry| entry[0] != 0).filter(move |entry| entry[0] == tag).map(|entry| entry[1])
    }

    fn entry(&self, tag: u64) -> Option<u64> {
        self.entries(tag).next()
    }

    /// Where a table is. The loader has put addresses into most entries, offsets are left in those that cannot be written.
    pub(super) fn table(&self, tag: u64) -> Option<u64> {
        self.entry(tag).map(|place| if place < self.base { self.base + place } else { place })
    }

    fn texts(&self, tag: u64) -> impl Iterator<Item = &'static [u8]> {
        let strings = self.table(STRINGS);
        // SAFETY: terminated texts of the module's, which are only looked at while it is loaded.
        let text = |at| unsafe { CStr::from_ptr(at as *const c_char) }.to_bytes();
        self.entries(tag).filter_map(move |offset| Some(text(strings? + offset)))
    }

    /// The names of libraries that it needs.
    pub fn needed(&self) -> impl Iterator<Item = &'static [u8]> {
        self.texts(NEEDED)
    }

    /// The name by which others need it, if it has one.
    pub fn own_name(&self) -> Option<&'static [u8]> {
        self.texts(OWN_NAME).next()
    }

    pub fn segments(&self) -> impl Iterator<Item = Segment> {
        self.headers.iter().filter(|header| header.kind == LOADED).map(|header| {
            let start = self.base + header.address;
            Segment {
                start,
                end: start + header.memory_size,
                is_executable: header.flags & 1 != 0,
                is_writable: header.flags & 2 != 0,
            }
        })
    }

    fn sealed(&self) -> Option<&ProgramHeader> {
        self.headers.iter().find(|header| header.kind == SEALED)
    }

    /// The pages that the loader made read-only when it had filled them: it spares the last one where that holds other data, too.
    fn sealed_pages(&self) -> Option<Range<u64>> {
        const PAGE: u64 = 4096;
        self.sealed().map(|it| it.address / PAGE * PAGE..(it.address + it.memory_size) / PAGE * PAGE)
    }

    /// Where they lie: start, end.
    pub fn constants(&self) -> Option<[u64; 2]> {
        let pages = self.sealed_pages().filter(|pages| !pages.is_empty())?;
        Some([self.base + pages.start, self.base + pages.end])
    }

    fn is_sealed(&self, place: u64) -> bool {
        self.sealed_pages().is_some_and(|pages| pages.contains(&place))
    }

    /// The slots that the loader fills with addresses of functions by their names.
    pub fn each_slot(&self, mut visit: impl FnMut(Slot)) {
        // R_X86_64_64 (without an addend), R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT.
        const KINDS: [u64; 3] = [1, 6, 7];
        // STT_OBJECT, STT_TLS.
        const DATA: [u8; 2] = [1, 6];
        let (Some(strings), Some(symbols)) = (self.table(STRINGS), self.table(SYMBOLS)) else { return };
        for (table, size) in [(RELOCATIONS, RELOCATIONS_SIZE), (SLOT_RELOCATIONS, SLOTS_SIZE)] {
            let (Some(table), Some(size)) = (self.table(table), self.entry(size)) else { continue };
            for at in (0..size).step_by(RELOCATION as usize) {
                // SAFETY: a relocation of the loaded table.
                let [place, info, addend] = unsafe { *((table + at) as *const [u64; 3]) };
                if !KINDS.contains(&(info & 0xffff_ffff)) || addend != 0 || info >> 32 == 0 {
                    continue;
                }
                let symbol = symbols + SYMBOL * (info >> 32);
                // SAFETY: a symbol of the loaded table: the offset of its name, then a byte with its type.
                let (name, kind) = unsafe { (*(symbol as *const u32), *((symbol + 4) as *const u8) & 15) };
                if !DATA.contains(&kind) {
                    visit(Slot { place: self.base + place, name: strings + u64::from(name), is_sealed: self.is_sealed(place) });
                }
            }
        }
    }

    /// Where its variables lie, from the first byte that stays writable on; `None` where it has none but those that the start-up
    /// code of every library brings along.
    pub fn state(&self) -> Option<[u64; 2]> {
        let mut all = self.headers.iter().filter(|header| header.kind == LOADED && header.flags & 2 != 0);
        let (header, more) = (all.next()?, all.next().is_some());
        let (start, end) = (self.base + header.address, self.base + header.address + header.memory_size);
        let sealed = self.sealed().map_or(start, |sealed| self.base + sealed.address + sealed.memory_size);
        let first = sealed.clamp(start, end);
        let in_file = self.base + header.address + header.file_size;
        let slots = self.behind_slots().filter(|behind| (first..=in_file).contains(behind)).unwrap_or(first);
        let is_plain = !more && self.is_own_handle(slots.next_multiple_of(8), in_file) && end - in_file <= 8;
        if is_plain && !self.mentions(in_file, end) { None } else { Some([first, end - first]) }
    }

    /// Where the table ends of slots that are filled at the first call: three words, and one for each function.
    fn behind_slots(&self) -> Option<u64> {
        Some(self.table(SLOT_TABLE)? + 8 * (3 + self.entry(SLOTS_SIZE).unwrap_or(0) / RELOCATION))
    }

    /// Whether nothing is there but a word that is its own address (`__dso_handle`).
    fn is_own_handle(&self, start: u64, end: u64) -> bool {
        // SAFETY: data of the module's.
        end <= start || end - start == 8 && unsafe { *(start as *const u64) } == start
    }

    /// Whether code of the module may mention variables in `[start + 1, end)`, relative to where it stands itself. The byte at
    /// the start is the start-up code's: it notes there that it is done, and asks whether a table that begins there is empty.
    fn mentions(&self, start: u64, end: u64) -> bool {
        // Bytes of a constant that stands behind the distance in an instruction.
        const BEHIND: [u64; 4] = [0, 1, 2, 4];
        self.segments().filter(|segment| segment.is_executable).any(|segment| {
            (segment.start..segment.end.saturating_sub(3)).any(|at| {
                // SAFETY: code of the module's, which can be read.
                let distance = unsafe { (at as *const i32).read_unaligned() };
                let target = at.wrapping_add(4).wrapping_add_signed(i64::from(distance));
                let is_start = target == start || target.wrapping_add(1) == start;
                !is_start && BEHIND.iter().any(|more| (start + 1..end).contains(&target.wrapping_add(*more)))
            })
        })
    }
}
