//! Memory and registers of a trial's copy, compared without the functions that the runtime interposes.

use super::{MOST_XSTATE, PAGE, Saved, give_up};

impl Saved {
    pub(super) fn is_unchanged(&self) -> bool {
        // SAFETY: a page of the program's that is mapped.
        unsafe { same(self.page as *const u8, self.bytes.as_ptr(), PAGE as usize) }
    }
}

/// Byte by byte: a `memcpy` may be the one that we interpose.
///
/// # Safety
/// So many bytes can be read and written.
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    for at in 0..bytes {
        // SAFETY: by the contract.
        unsafe { to.add(at).write_volatile(from.add(at).read_volatile()) };
    }
}

/// # Safety
/// So many bytes can be read at both.
pub(super) unsafe fn same(one: *const u8, other: *const u8, bytes: usize) -> bool {
    // SAFETY: by the contract.
    (0..bytes).all(|at| unsafe { one.add(at).read_volatile() == *other.add(at) })
}

/// How many bytes the floating-point state has, as the kernel says in its reserved bytes.
pub(super) unsafe fn xstate_bytes(floating: *const u8) -> usize {
    const MAGIC: u32 = 0x4650_5853;
    // SAFETY: the legacy area has 512 bytes.
    let (magic, bytes) =
        unsafe { (floating.add(464).cast::<u32>().read_unaligned(), floating.add(480).cast::<u32>().read_unaligned()) };
    let bytes = if magic == MAGIC { bytes as usize } else { 512 };
    if !(512..=MOST_XSTATE).contains(&bytes) {
        give_up();
    }
    bytes
}

/// Control words and registers; not where the last floating-point instruction was, nor the reserved bytes.
pub(super) unsafe fn same_floating(floating: *const u8, known: &[u8]) -> bool {
    // SAFETY: as many bytes as are known.
    let equal = |from: usize, to: usize| unsafe { same(floating.add(from), known.as_ptr().add(from), to - from) };
    equal(0, 5) && equal(24, 28) && equal(32, 416) && equal(512, known.len())
}
