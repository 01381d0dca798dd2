//! Room for the references of accesses: a slab of numbers, of which parts are taken from one end to the other.
//!
//! A *window* is where the references of one span lie side by side. How many there will be is not known when it begins: it is as
//! large a power of two as there is room for, and what it has left over is given back when it ends. Whether a reference is of a
//! window is a subtraction and a masked comparison. The last number before a window is never given out, and neither is the last
//! one of a slab: what remains of a reference that is given out, less the begin of a window, never has all bits set.

/// References that say the same of an access but for its call stack.
pub const GRANULE: u32 = 4;
/// Numbers of a slab.
pub const SLAB: u32 = 1024;
/// Those that are given out.
const USABLE: u32 = SLAB - GRANULE;
/// A window that is left of a slab has to have room for so many, or the span begins another slab.
const SMALLEST: u32 = 64;

/// Where the room of a slab begins that is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room(u32);

impl Room {
    pub const WHOLE: Self = Self(0);
    pub const NONE: Self = Self(SLAB);

    /// The begin of a granule, which is taken.
    #[must_use]
    pub const fn granule(&mut self) -> Option<u32> {
        if self.0 + GRANULE > USABLE {
            return None;
        }
        let begin = self.0;
        self.0 += GRANULE;
        Some(begin)
    }

    /// Begin and size of a window. Nothing else is to be taken before [`Self::close`] says how much of it was.
    #[must_use]
    pub const fn window(&self) -> Option<(u32, u32)> {
        if self.0 + SMALLEST > USABLE { None } else { Some((self.0, 1 << (USABLE - self.0).ilog2())) }
    }

    /// The window's numbers in front of this one were given out.
    pub const fn close(&mut self, next: u32) {
        // The next granule, and not the number before it.
        self.0 = (next + 1).next_multiple_of(GRANULE);
    }
}
