//! The per-thread words that the hooks touch, at a fixed distance from the thread pointer.
//!
//! Stable Rust has no initial-exec thread-locals, so the block is a `.tbss` symbol that assembly addresses through the GOT: two
//! instructions in a shared object, relaxed to one constant when linked statically. A thread that the runtime does not know has
//! an all-zero block: its first hook takes the slow path, finds no thread and returns.

use crate::system::entry;
use crate::system::shared::Shared;
use crate::system::thread::Thread;
use core::arch::{asm, global_asm};
use core::cell::Cell;
use core::mem::offset_of;

pub const HOT_BYTES: usize = 384;

global_asm!(
    ".section .tbss,\"awT\",@nobits",
    ".p2align 6",
    ".hidden rashomon_hot",
    ".globl rashomon_hot",
    ".type rashomon_hot,@object",
    ".size rashomon_hot,384",
    "rashomon_hot:",
    ".zero 384",
    ".text",
    // core is compiled for unwinding; nothing here unwinds, but a whole-archive link looks for the name.
    ".weak rust_eh_personality",
    ".hidden rust_eh_personality",
    "rust_eh_personality: ret",
);

/// One entry of the shadow call stack.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Call {
    /// Return address in the caller.
    pub site: u64,
    /// Stack pointer inside the callee: tells which entries a `longjmp` left behind.
    pub stack_pointer: u64,
}

/// Cells, as the hooks change them in assembly, and so does other code of the runtime that is called while one of them is looked
/// at: nobody has a reference to what is inside. A block is its thread's; while that stands still, also the holder of the turn's.
#[repr(C, align(16))]
pub struct Hot {
    /// Detection: what a cell, less the begin of the span's window, must look like to stand for an access that need not be looked
    /// at (see [`crate::detect::shadow`]): the bits to compare, of a read and of a write, beside those of the access's bytes; of
    /// these all but the bytes are to be 0. Four equal words each.
    pub window: Cell<[u32; 4]>,
    pub covers_read: Cell<[u32; 4]>,
    pub covers_write: Cell<[u32; 4]>,
    /// The same for whole words, bytes included, and what is to come out.
    pub covers_read_word: Cell<[u32; 4]>,
    pub covers_write_word: Cell<[u32; 4]>,
    pub whole_word: Cell<[u32; 4]>,
    /// Where the shadow begins; null: no detection. And which bits of twice an address select in it.
    pub shadow: Cell<*mut u8>,
    pub shadow_mask: Cell<u64>,
    /// Next free word of the stream's chunk, and its end.
    pub cursor: Cell<*mut u64>,
    pub end: Cell<*mut u64>,
    /// Site of the last access record in this chunk.
    pub previous_site: Cell<u64>,
    /// Number of the current span, shifted left by 48. Two accesses of a span have no event of their thread between them.
    pub span: Cell<u64>,
    /// The table of [`crate::record::filter`], and what selects a slot in it ([`crate::record::filter::mask`]).
    pub filter: Cell<*mut [u64; 2]>,
    pub filter_mask: Cell<u64>,
    /// Times word at which an access is no longer kept.
    pub cap: Cell<u64>,
    /// 1 when that happened.
    pub capped: Cell<u64>,
    /// Hash of the locks held.
    pub locks: Cell<u64>,
    /// Accesses left before the slow path has to look. The hooks count in assembly; others change it, too (see
    /// [`Thread::force_slow_path`]), and what two write at the same moment is counted by one of them.
    pub quantum: Shared<i64>,
    pub thread: Cell<Option<&'static Thread>>,
    /// Shadow call stack: next free entry.
    pub top: Cell<*mut Call>,
    pub limit: Cell<*mut Call>,
    pub bottom: Cell<*mut Call>,
    /// Lowest `top` since the call context was last resolved.
    pub lowest: Cell<*mut Call>,
    /// Calls that did not fit the shadow stack.
    pub overflow: Cell<u64>,
    /// 1 when the call stack changed since the context was resolved.
    pub dirty: Cell<u64>,
    /// Depth of runtime code on this thread: hooks and interposers under it pass through.
    pub nesting: Cell<u64>,
    /// Return address of the interposed call that is being entered.
    pub caller: Cell<u64>,
    /// The interposed function that is being entered, and the one through which the runtime was entered.
    pub callee: Cell<u64>,
    pub entered: Cell<u64>,
    /// Depth of `__tsan_ignore_thread_begin`.
    pub ignored: Cell<u64>,
    /// What [`crate::openmp`] knows of the thread; null: nothing yet.
    pub openmp: Cell<*mut u8>,
    /// Not 0: what the compiler's plugin tells of dependences is recorded.
    pub deep: Cell<u64>,
    /// A write whose value is to be recorded when the thread is in the runtime again: its address, and above it its size
    /// (`record/values.rs`). 0: none.
    pub pending: Cell<u64>,
    /// Activations recorded so far: which process of a line of forks ([`rashomon_abi::record::PROCESS_SHIFT`]), and how many
    /// in it.
    pub activations: Cell<u64>,
    /// Frame of the innermost passage to code that is not seen whose call was noted; 0: none.
    pub passage: Cell<u64>,
}

impl Hot {
    /// Whether the thread is known and executes its own code.
    #[inline(always)]
    pub fn is_outside(&self) -> bool {
        self.thread.get().is_some() && self.nesting.get() == 0
    }

    /// The hooks pass through from here on.
    pub fn forget_thread(&self) {
        self.thread.set(None);
        self.quantum.set(0);
        for end in [&self.top, &self.limit, &self.bottom, &self.lowest] {
            end.set(core::ptr::null_mut());
        }
    }

    /// Becomes what another block is.
    ///
    /// # Safety
    /// Nobody else uses either.
    pub unsafe fn assign(&self, other: &Self) {
        // SAFETY: all of a block is cells.
        unsafe { core::ptr::from_ref(self).cast_mut().write(core::ptr::from_ref(other).read()) };
    }
}

pub const COVERS_READ: usize = offset_of!(Hot, covers_read);
pub const COVERS_WRITE: usize = offset_of!(Hot, covers_write);
pub const COVERS_READ_WORD: usize = offset_of!(Hot, covers_read_word);
pub const COVERS_WRITE_WORD: usize = offset_of!(Hot, covers_write_word);
pub const WHOLE_WORD: usize = offset_of!(Hot, whole_word);
pub const WINDOW: usize = offset_of!(Hot, window);
pub const SHADOW: usize = offset_of!(Hot, shadow);
pub const SHADOW_MASK: usize = offset_of!(Hot, shadow_mask);
pub const CURSOR: usize = offset_of!(Hot, cursor);
pub const END: usize = offset_of!(Hot, end);
pub const PREVIOUS_SITE: usize = offset_of!(Hot, previous_site);
pub const SPAN: usize = offset_of!(Hot, span);
pub const FILTER: usize = offset_of!(Hot, filter);
pub const FILTER_MASK: usize = offset_of!(Hot, filter_mask);
pub const CAP: usize = offset_of!(Hot, cap);
pub const CAPPED: usize = offset_of!(Hot, capped);
pub const LOCKS: usize = offset_of!(Hot, locks);
pub const QUANTUM: usize = offset_of!(Hot, quantum);
pub const TOP: usize = offset_of!(Hot, top);
pub const LIMIT: usize = offset_of!(Hot, limit);
pub const BOTTOM: usize = offset_of!(Hot, bottom);
pub const LOWEST: usize = offset_of!(Hot, lowest);
pub const OVERFLOW: usize = offset_of!(Hot, overflow);
pub const DIRTY: usize = offset_of!(Hot, dirty);
pub const DEEP: usize = offset_of!(Hot, deep);
pub const ACTIVATIONS: usize = offset_of!(Hot, activations);
pub const CALLER: usize = offset_of!(Hot, caller);
pub const CALLEE: usize = offset_of!(Hot, callee);

/// What a cell must look like to cover an access.
pub const fn covers(read: bool, whole_word: bool) -> usize {
    match (read, whole_word) {
        (true, false) => COVERS_READ,
        (false, false) => COVERS_WRITE,
        (true, true) => COVERS_READ_WORD,
        (false, true) => COVERS_WRITE_WORD,
    }
}

const _: () = assert!(size_of::<Hot>() <= HOT_BYTES);

/// The calling thread's block.
#[inline(always)]
pub fn hot() -> &'static Hot {
    let block: *const Hot;
    // SAFETY: reads the thread pointer and a constant of the loader. The block lives as long as its thread, which alone gets this
    // reference; all bytes 0 are a block.
    unsafe {
        asm!(
            "mov {t}, qword ptr [rip + rashomon_hot@GOTTPOFF]",
            "add {t}, qword ptr fs:[0]",
            t = out(reg) block,
            options(nostack, pure, readonly)
        );
        &*block
    }
}

/// The calling thread, if the runtime knows it.
#[inline(always)]
pub fn current() -> Option<&'static Thread> {
    hot().thread.get()
}

/// Return address of the interposed call, stored by the trampoline that led here. Where code that is not seen has jumped to the
/// interposed function as its last act, it is that of the call to that code.
#[inline(always)]
pub fn caller() -> u64 {
    let caller = hot().caller.get();
    if entry::is_in_passage(caller) { entry::caller_of_passage(caller) } else { caller }
}
