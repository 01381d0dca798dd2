//! Where a thread's records go: the chunk that is being written, and the full ones.
//!
//! The chunk is the beginning of the thread's file, mapped for as long as the thread records: what is in it survives whatever the
//! process dies of, and its pages are touched once. A full chunk is compressed ([`rashomon_abi::compress`]) and appended to the
//! file; then the same memory is the next chunk. The first one begins small and grows, as most threads of programs that make many
//! have little to say.

use crate::system::folder;
use crate::system::sys::{self, syscall};
use crate::system::thread::Thread;
use core::sync::atomic::Ordering::Release;
use rashomon_abi::compress::{self, Model};
use rashomon_abi::record::{
    CHUNK_BYTES, CHUNK_CHECKSUM_WORD, CHUNK_HEADER_WORDS, CHUNK_MAGIC, CHUNK_USED_WORD, COMPRESSED_MAGIC, Checksum,
};

const RECORDS: usize = CHUNK_BYTES / 8 - CHUNK_HEADER_WORDS;
/// Bytes that a thread's first chunk begins with, and by how much it is multiplied when these are full.
const FIRST_BYTES: usize = 1 << 14;
const GROWTH: usize = 4;
const HEADER_BYTES: usize = CHUNK_HEADER_WORDS * 8;
const COMPRESSED: usize = (HEADER_BYTES + compress::bound(RECORDS)).next_multiple_of(8);

/// What compressing a chunk takes: mapped when a thread's first one is full.
#[repr(C)]
pub struct Compressor {
    model: Model,
    /// The chunk as it is appended.
    bytes: [u8; COMPRESSED],
}

/// A chunk's words, as many as the file has.
///
/// # Safety
/// The thread's chunk is mapped, and nobody else writes to it meanwhile.
unsafe fn words<'a>(thread: &Thread) -> &'a mut [u64] {
    // SAFETY: by the contract; the mapping has that alignment, and the file that length.
    unsafe { core::slice::from_raw_parts_mut(thread.chunk.get(), thread.chunk_bytes.get() / 8) }
}

fn open(thread: &Thread, flags: usize) -> isize {
    folder::open(rashomon_abi::THREAD_FILE_PREFIX.as_bytes(), Some(thread.number.get()), flags)
}

/// Maps the beginning of the thread's file.
fn map(thread: &Thread) -> Result<(), isize> {
    // O_RDWR | O_CREAT
    let file = open(thread, 0o102);
    if file < 0 {
        return Err(-file);
    }
    // Behind the first one there are others already, and the file is long enough.
    let is_long = thread.chunk_index.get() > 1;
    let bytes = if thread.chunk_index.get() == 0 { FIRST_BYTES } else { CHUNK_BYTES };
    // SAFETY: a descriptor of ours; the mapping is fresh. MAP_SHARED | MAP_POPULATE.
    let result = unsafe {
        let mut result = if is_long { 0 } else { sys::grow(file, 0, bytes) };
        if result == 0 {
            result = sys::call(sys::MMAP, 0, CHUNK_BYTES, 3, 1 | 0x8000, file as usize, 0);
        }
        syscall!(sys::CLOSE, file);
        result
    };
    if result <= 0 {
        return Err(-result);
    }
    thread.chunk.set(result as *mut u64);
    thread.chunk_bytes.set(bytes);
    Ok(())
}

/// Whether the thread's chunk can become larger.
pub fn grows(thread: &Thread) -> bool {
    !thread.chunk.get().is_null() && thread.chunk_bytes.get() < CHUNK_BYTES
}

/// Makes the thread's chunk larger; its records stay.
pub fn grow(thread: &Thread) -> Result<(), isize> {
    const MADV_POPULATE_WRITE: usize = 23;
    let bytes = thread.chunk_bytes.get();
    let more = (bytes * GROWTH).min(CHUNK_BYTES) - bytes;
    // O_RDWR
    let file = open(thread, 2);
    if file < 0 {
        return Err(-file);
    }
    // SAFETY: a descriptor of ours, and our own mapping, whose length is that of a whole chunk. Older kernels refuse the advice.
    let result = unsafe {
        let result = sys::grow(file, bytes, more);
        syscall!(sys::CLOSE, file);
        if result == 0 {
            syscall!(sys::MADVISE, thread.chunk.get() as usize + bytes, more, MADV_POPULATE_WRITE);
        }
        result
    };
    if result < 0 {
        return Err(-result);
    }
    thread.chunk_bytes.set(bytes + more);
    // SAFETY: within the mapping, or its end.
    thread.hot().end.set(unsafe { thread.chunk.get().add((bytes + more) / 8) });
    Ok(())
}

/// Makes the thread's next chunk. What was in the last one is appended to the file first. The error of the kernel if that fails:
/// the last chunk then is as [`close`] leaves it.
pub fn next(thread: &Thread) -> Result<(), isize> {
    if thread.chunk.get().is_null() {
        map(thread)?;
        // SAFETY: mapped; it is the thread's own, or the turn's holder's.
        let words = unsafe { words(thread) };
        if words[CHUNK_USED_WORD] != 0 {
            // It was closed, and the process went on.
            let used = (words[CHUNK_USED_WORD] / 8) as usize;
            append(thread, used.min(RECORDS)).inspect_err(|_| unmap(thread))?;
        }
    } else {
        let used = used(thread);
        if let Err(error) = append(thread, used) {
            close(thread, used);
            return Err(error);
        }
        thread.chunk_index.set(thread.chunk_index.get() + 1);
    }
    // SAFETY: as above.
    let words = unsafe { words(thread) };
    words[CHUNK_USED_WORD..].fill(0);
    // Until the index changes, the last chunk is in the file twice, and what is here counts for nothing.
    core::sync::atomic::fence(Release);
    words[1] = (thread.chunk_index.get() as u64) << 32 | thread.number.get() as u64;
    words[0] = CHUNK_MAGIC;
    let hot = thread.hot();
    hot.cursor.set(words[CHUNK_HEADER_WORDS..].as_mut_ptr());
    hot.end.set(words.as_mut_ptr_range().end);
    hot.previous_site.set(0);
    Ok(())
}

/// Words of records in the thread's chunk.
pub fn used(thread: &Thread) -> usize {
    let cursor = thread.hot().cursor.get() as usize;
    (cursor - thread.chunk.get() as usize) / 8 - CHUNK_HEADER_WORDS
}

/// Appends the chunk's records to the file.
fn append(thread: &Thread, used: usize) -> Result<(), isize> {
    const ENOMEM: isize = 12;
    let compressor: *mut Compressor = match thread.compressor.get().cast::<Compressor>() {
        known if !known.is_null() => known,
        _ => {
            thread.compressor.set(sys::map_anonymous(size_of::<Compressor>()));
            thread.compressor.get().cast()
        }
    };
    if compressor.is_null() {
        return Err(ENOMEM);
    }
    // SAFETY: mapped above or before, with bytes of any value or zero; one call at a time, as the chunk itself.
    let (Compressor { model, bytes }, words) = unsafe { (&mut *compressor, words(thread)) };
    let records = &words[CHUNK_HEADER_WORDS..CHUNK_HEADER_WORDS + used];
    let (head, body) = bytes.split_at_mut(HEADER_BYTES);
    // There is room for any records.
    let length = compress::compress(model, records, body).unwrap_or(0);
    let padded = length.next_multiple_of(8);
    body[length..padded].fill(0);
    let mut checksum = Checksum::new();
    for word in body[..padded].chunks_exact(8) {
        checksum = checksum.add(word.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)));
    }
    let header = [COMPRESSED_MAGIC, words[1], (used as u64 * 8) << 32 | length as u64, checksum.finish()];
    for (to, word) in head.chunks_exact_mut(8).zip(header) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    // O_WRONLY | O_APPEND
    let file = open(thread, 0o2001);
    if file < 0 {
        return Err(-file);
    }
    // SAFETY: a descriptor of ours.
    let result = unsafe {
        let result = sys::append(file, &bytes[..HEADER_BYTES + padded]);
        syscall!(sys::CLOSE, file);
        result
    };
    if result < 0 { Err(-result) } else { Ok(()) }
}

/// Completes the thread's chunk: from here on it is valid whatever happens.
pub fn close(thread: &Thread, used: usize) {
    let index = thread.chunk_index.get();
    // SAFETY: mapped; it is the thread's own, or the turn's holder's.
    let words = unsafe { words(thread) };
    let records = &words[CHUNK_HEADER_WORDS..CHUNK_HEADER_WORDS + used];
    words[CHUNK_CHECKSUM_WORD] = records.iter().fold(Checksum::new(), |sum, &word| sum.add(word)).finish();
    core::sync::atomic::fence(Release);
    words[CHUNK_USED_WORD] = used as u64 * 8;
    unmap(thread);
    thread.chunk_index.set(index + 1);
    if index == 0 {
        // Nothing is behind it, and what is only reserved is given back. O_RDWR
        let file = open(thread, 2);
        if file >= 0 {
            // SAFETY: a descriptor of ours.
            unsafe {
                syscall!(sys::FTRUNCATE, file, (CHUNK_HEADER_WORDS + used) * 8);
                syscall!(sys::CLOSE, file);
            }
        }
    }
}

/// Gives the chunk's memory back, and what compressing took. The file stays as it is.
pub fn unmap(thread: &Thread) {
    // SAFETY: the thread's own mappings, of which nobody has an address any more.
    unsafe {
        if !thread.chunk.get().is_null() {
            sys::unmap(thread.chunk.get().cast(), CHUNK_BYTES);
        }
        if !thread.compressor.get().is_null() {
            sys::unmap(thread.compressor.get(), size_of::<Compressor>());
        }
    }
    thread.chunk.set(core::ptr::null_mut());
    thread.compressor.set(core::ptr::null_mut());
    let hot = thread.hot();
    hot.cursor.set(core::ptr::null_mut());
    hot.end.set(core::ptr::null_mut());
}
