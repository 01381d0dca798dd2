//! Asks the processor for memory that will soon be needed. A block tells the next variables' numbers long before their turn, and a table of
//! variables that no cache holds costs a miss an event otherwise.
#![expect(unsafe_code, reason = "prefetch instructions are unsafe intrinsics")]

/// Hints that the element will be written to. Does nothing where it does not exist, or the processor has no such instruction.
#[inline(always)]
pub fn prefetch<T>(elements: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = elements.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, the instruction changes nothing that a program can observe, and the address is that of a live element.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (elements, index);
}
