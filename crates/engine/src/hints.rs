//! Tells processor and kernel about memory before it is needed. A block tells the next variables' numbers long before their turn,
//! and a table of variables that no cache holds costs a miss an event otherwise; in small pages it costs another one for where
//! the page is, and the processor drops a hint about a page that was never touched.
#![expect(unsafe_code, reason = "prefetch instructions and advice about memory are unsafe calls")]

/// Hints that the element will be written to. Does nothing where it does not exist, or the processor has no such instruction.
#[inline(always)]
pub fn prefetch<T>(elements: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = elements.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, the instruction changes nothing that a program can observe, and the address is that of a
        // live element.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (elements, index);
}

/// Appends; whenever the vector moves, to large pages.
#[inline]
pub fn push<T>(elements: &mut Vec<T>, new: T) {
    if elements.len() == elements.capacity() {
        elements.reserve(1);
        use_large_pages(elements);
    }
    elements.push(new);
}

/// Makes it so long, and what is on disk of it does not have to be in memory at once.
pub fn fill<T: Clone>(elements: &mut Vec<T>, length: usize, value: &T) {
    const BYTES: usize = 1 << 20;
    let step = (BYTES / size_of::<T>().max(1)).max(1);
    while elements.len() < length {
        elements.resize((elements.len() + step).min(length), value.clone());
        rashomon_spill::trim();
    }
}

/// Asks for large pages behind a vector, the room it has not used yet included. Does nothing for a small one, or where the kernel
/// has none.
pub fn use_large_pages<T>(elements: &mut Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        const LARGE_PAGE: usize = 2 << 20;
        let before = elements.as_ptr().addr().wrapping_neg() % LARGE_PAGE;
        let bytes = (elements.capacity() * size_of::<T>()).saturating_sub(before) / LARGE_PAGE * LARGE_PAGE;
        // Of what is on disk only what is needed is to be in memory.
        if size_of::<T>() > 0 && bytes > 0 && !rashomon_spill::is_on_disk(elements.as_ptr().addr()) {
            let start = elements.as_mut_ptr().wrapping_byte_add(before);
            // SAFETY: the range of whole large pages lies in the vector's own allocation, and this advice changes no content,
            // only how it is mapped.
            let advised = unsafe { rustix::mm::madvise(start.cast(), bytes, rustix::mm::Advice::LinuxHugepage) };
            // A kernel without large pages refuses: everything works as well, more slowly.
            let _ = advised;
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = elements;
}
