//! What signal handlers must not do: call what is not safe where anything may have been interrupted, or leave another `errno`
//! behind.

use super::stacks::{self, StackId};
use super::{ignores, places, walked};
use crate::detect::own::Own;
use crate::report;
use crate::system::lock::RawLock;
use crate::system::memory::Map;
use crate::system::real::{errno, set_errno};
use rashomon_abi::report::warning;

/// No function sets it, so that a handler that spoils `errno` is seen to.
const UNLIKELY_ERROR: i32 = 99;
const SIGPIPE: i32 = 13;
const SIGTERM: i32 = 15;

pub static LOCK: RawLock = RawLock::new();
static mut KNOWN: Map = Map::new();

/// Whether something of this kind was found for the first time at the place where `stack` is in the program.
fn is_new(kind: u64, stack: StackId) -> bool {
    let known = &raw mut KNOWN;
    // SAFETY: under the lock.
    LOCK.with(|| unsafe { core::mem::replace((*known).entry((kind, stacks::innermost(stack) | 1 << 63)), 1) == 0 })
}

/// Handlers on top of each other that are told apart.
const DEEPEST: usize = 8;

/// The handlers that a thread runs: where their frames are, and what was put aside for their time.
pub struct Running {
    depth: usize,
    frames: [(u64, (u64, u32)); DEEPEST],
}

impl Running {
    pub const fn new() -> Self {
        Self { depth: 0, frames: [(0, (0, 0)); DEEPEST] }
    }
}

/// A handler of the program begins on this thread, above the stack pointer `frame`.
pub fn begins(thread: &mut Own, frame: u64) {
    set_errno(UNLIKELY_ERROR);
    let ignored = ignores::suspend(thread);
    let running = &mut thread.detect.handlers;
    if let Some(place) = running.frames.get_mut(running.depth) {
        *place = (frame, ignored);
    }
    running.depth += 1;
}

/// The innermost handler is over, whether it returned or not.
fn left(thread: &mut Own) {
    let running = &mut thread.detect.handlers;
    running.depth = running.depth.saturating_sub(1);
    if let Some(&(_, ignored)) = running.frames.get(running.depth) {
        ignores::resume(thread, ignored);
    }
}

/// The thread jumps from the stack pointer `from` to `target`: handlers that it leaves by that are over.
pub fn jumped(thread: &mut Own, from: u64, target: u64) {
    while let Some(depth) = thread.detect.handlers.depth.checked_sub(1) {
        let stays = thread.detect.handlers.frames.get(depth).is_none_or(|&(frame, _)| from <= target && target <= frame);
        if stays {
            break;
        }
        left(thread);
    }
}

/// It has returned.
pub fn ends(thread: &mut Own, signal: i32, handler: u64) {
    let spoiled = errno() != UNLIKELY_ERROR;
    left(thread);
    // Handlers of SIGTERM often end the process by raising it again, which is not seen from here.
    let asynchronous = !crate::system::signals::is_synchronous(signal) && signal != SIGPIPE && signal != thread.detect.sending;
    if spoiled && asynchronous && signal != SIGTERM {
        let context = places::context(thread);
        let stack = stacks::intern(context, handler + 1);
        if is_new(warning::ERRNO_IN_SIGNAL, stack) {
            walked::with(&[stack], |stacks| report::signal(warning::ERRNO_IN_SIGNAL, signal as u32, stacks[0]));
        }
    }
}

/// The allocator was called.
#[inline(always)]
pub fn unsafe_call(thread: &mut Own, site: u64) {
    if thread.detect.handlers.depth > 0 {
        called(thread, site);
    }
}

#[cold]
#[inline(never)]
fn called(thread: &mut Own, site: u64) {
    let stack = places::call_stack(thread, site);
    if is_new(warning::SIGNAL_UNSAFE, stack) {
        walked::with(&[stack], |stacks| report::signal(warning::SIGNAL_UNSAFE, 0, stacks[0]));
    }
}
