//! Vector clocks as slices: the epoch of each slot; those behind the end are at 0.

pub type Epoch = u32;

/// The epoch of a slot.
#[inline(always)]
pub fn get(clock: &[Epoch], slot: u32) -> Epoch {
    clock.get(slot as usize).copied().unwrap_or(0)
}

/// `clock` learns all that `other` knows. It must be as long as `other` at least.
#[inline]
pub fn join(clock: &mut [Epoch], other: &[Epoch]) {
    debug_assert!(other.len() <= clock.len());
    for (own, other) in clock.iter_mut().zip(other) {
        *own = (*own).max(*other);
    }
}

/// Whether something that the owner of `slot` did in `epoch` is ordered before what a thread with the slot `own` does, whose
/// clock says `known` of that slot.
#[inline(always)]
pub fn is_ordered(slot: u32, epoch: Epoch, own: u32, known: impl FnOnce(u32) -> Epoch) -> bool {
    slot == own || known(slot) >= epoch
}
