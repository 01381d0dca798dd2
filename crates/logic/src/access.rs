//! An access that a thread is about to make, and whether two of them, side by side, are a race.

use rashomon_abi::record::AccessClass;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessAt {
    pub address: u64,
    pub bytes: u64,
    /// Code of an `AccessClass`; 0: no access.
    pub class: u64,
    pub atomic: bool,
    pub site: u64,
}

impl AccessAt {
    pub const NONE: Self = Self { address: 0, bytes: 0, class: 0, atomic: false, site: 0 };

    pub fn writes(&self) -> bool {
        AccessClass::from_code(self.class).is_some_and(AccessClass::writes)
    }

    /// Nothing may be looked for inside of something: an empty range overlaps what lies around it.
    pub fn overlaps(&self, address: u64, bytes: u64) -> bool {
        self.address < address.saturating_add(bytes) && address < self.address.saturating_add(self.bytes)
    }
}

/// Whether two threads that stand at these accesses are about to race. An access of no bytes races with nothing.
pub fn conflict(first: &AccessAt, second: &AccessAt) -> bool {
    first.class != 0
        && second.class != 0
        && first.bytes > 0
        && second.bytes > 0
        && first.overlaps(second.address, second.bytes)
        && (first.writes() || second.writes())
        && !(first.atomic && second.atomic)
}
