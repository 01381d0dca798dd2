//! What the kernel is asked of a process in which a thread is to show what it does, and told.

use crate::system::sys::{self, syscall};

/// Whether a debugger, or the like, would see the traps.
pub(super) fn is_traced() -> bool {
    const FIELD: &[u8] = b"TracerPid:\t";
    let mut text = [0u8; 4096];
    // SAFETY: a terminated path, our own descriptor and buffer. O_RDONLY | O_CLOEXEC
    let read = unsafe {
        let file = syscall!(sys::OPENAT, -100isize, c"/proc/self/status".as_ptr(), 0o2000000, 0);
        if file < 0 {
            return true;
        }
        let read = syscall!(sys::READ, file, text.as_mut_ptr(), text.len());
        syscall!(sys::CLOSE, file);
        read.max(0) as usize
    };
    let at = text[..read].windows(FIELD.len()).position(|window| window == FIELD);
    at.is_none_or(|at| text[at + FIELD.len()] != b'0')
}

/// The kernel writes into the thread's memory on which processor it runs.
pub(super) fn stay_on_processor() {
    const GETCPU: usize = 309;
    const SCHED_SETAFFINITY: usize = 203;
    let (mut processor, mut set) = (0u32, [0u64; 128]);
    // SAFETY: our own variables.
    unsafe {
        if syscall!(GETCPU, &raw mut processor, 0usize, 0usize) == 0 {
            if let Some(word) = set.get_mut(processor as usize / 64) {
                *word = 1 << (processor % 64);
            }
            syscall!(SCHED_SETAFFINITY, 0, size_of_val(&set), set.as_ptr());
        }
    }
}
