//! Which memory of a trial's copy is the thread's own, and the rights of all other memory.

use super::{MOST_OWN, MOST_RANGES, PAGE, Range, Trial, give_up, set_rights};
use crate::system::sys::{self, syscall};
use rashomon_logic::mappings::Line;

impl Trial {
    /// What the thread may write without being stopped: see above.
    pub(super) fn own_ranges(&mut self, stack_pointer: u64) {
        let thread_pointer: u64;
        // SAFETY: the thread control block begins with its own address.
        unsafe { core::arch::asm!("mov {}, fs:[0]", out(reg) thread_pointer, options(nostack, pure, readonly)) };
        if !self.stack.contains(stack_pointer) {
            give_up();
        }
        const RED_ZONE: u64 = 128;
        // The runtime's own block is in thread-local storage, below the thread control block, of which the kernel knows two pages
        // at most.
        let mapped_end =
            |at: u64| self.protected[..self.protected_count].iter().find(|range| range.contains(at)).map_or(0, |range| range.end);
        let storage = Range {
            start: (self.block as u64).min(thread_pointer) & !(PAGE - 1),
            end: ((thread_pointer & !(PAGE - 1)) + 2 * PAGE).min(mapped_end(thread_pointer)),
        };
        let stack =
            Range { start: stack_pointer - RED_ZONE, end: self.stack.end.next_multiple_of(PAGE).min(mapped_end(stack_pointer)) };
        // Of threads that libc makes both are parts of one mapping, and may overlap.
        self.own = if storage.end <= stack.start || stack.end < storage.start {
            [stack, storage]
        } else if storage.start >= stack.start {
            [Range { end: storage.end.max(stack.end), ..stack }, Range::EMPTY]
        } else {
            give_up()
        };
        if self.own.iter().any(|range| range.start > range.end || range.end - range.start > MOST_OWN as u64) {
            give_up();
        }
    }

    /// Makes all writable memory read-only but the thread's own and this.
    pub(super) fn protect(&mut self) {
        let this =
            Range { start: core::ptr::from_ref(self) as u64, end: core::ptr::from_ref(self) as u64 + size_of::<Self>() as u64 };
        // Below the stack pointer signals' frames are written.
        let below = self.stack.start & !(PAGE - 1);
        let free = [
            Range { start: below, end: self.own[0].end },
            self.own[1],
            Range { start: this.start & !(PAGE - 1), end: this.end.next_multiple_of(PAGE) },
        ];
        for at in 0..self.protected_count {
            let mut page = self.protected[at].start;
            let end = self.protected[at].end;
            // Pieces between what stays as it is.
            while page < end {
                if let Some(free) = free.iter().find(|free| free.contains(page)) {
                    page = free.end.next_multiple_of(PAGE);
                    continue;
                }
                let stop = free.iter().map(|free| free.start).filter(|&start| start > page).fold(end, u64::min);
                set_rights(page, stop - page, 1);
                page = stop;
            }
        }
        for at in 0..self.other_count {
            let Range { start, end } = self.others[at];
            // What is not mapped there is no matter.
            for mapped in 0..self.protected_count {
                let Range { start: from, end: to } = self.protected[mapped];
                let (from, to) = (from.max(start), to.min(end));
                if from < to && !free.iter().any(|free| free.start < to && from < free.end) {
                    set_rights(from, to - from, 0);
                }
            }
        }
    }

    /// Writable mappings of the process. Gives up where memory is shared with others.
    pub(super) fn list_mappings(&mut self) {
        let mut line = Line::default();
        let mut buffer = [0u8; 4096];
        // SAFETY: a terminated path, our own descriptor and buffer. O_RDONLY | O_CLOEXEC
        unsafe {
            let file = syscall!(sys::OPENAT, -100isize, c"/proc/self/maps".as_ptr(), 0o2000000, 0);
            if file < 0 {
                give_up();
            }
            loop {
                let read = syscall!(sys::READ, file, buffer.as_mut_ptr(), buffer.len());
                if read <= 0 {
                    break;
                }
                for &byte in &buffer[..read as usize] {
                    if line.takes(byte) {
                        self.take_mapping(&core::mem::take(&mut line));
                    }
                }
            }
            syscall!(sys::CLOSE, file);
        }
        if self.protected_count == 0 {
            give_up();
        }
    }

    fn take_mapping(&mut self, line: &Line) {
        let range = Range { start: line.numbers[0], end: line.numbers[1] };
        let is_kernel_code = line.rest_starts_with(b"[vdso]");
        if is_kernel_code {
            self.kernel_code = range;
        }
        let [_, write, execute, shared] = line.rights;
        if shared == b's' {
            // Caches of the system's own that nobody writes.
            let known =
                self.shared[..self.shared_count].contains(&range.start) || write != b'w' && line.rest_starts_with(b"/usr/");
            if !known {
                give_up();
            }
        } else if write == b'w' {
            if execute == b'x' || self.protected_count == MOST_RANGES {
                give_up();
            }
            self.protected[self.protected_count] = range;
            self.protected_count += 1;
        }
    }
}
