//! Call stacks as numbers: every stack is a node of one tree, a node is (its caller's node, return address).
//!
//! Threads share the tree, and a node is never removed; so a number names its stack for as long as the process lives, and a stack
//! that many accesses share is stored once. Node 0 is the empty stack. When the tree is full, deeper or new paths stand for their
//! known part.

use super::numbers::{Free, Numbers};
use super::shadow::reserve;
use crate::system::lock::RawLock;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

/// A call stack; its innermost frame first when walked.
pub type StackId = u32;

const MAX_NODES: u32 = 1 << 24;

/// Set in the return address of a frame that is an interposed function's own: the place in the program is its caller's.
pub const FUNCTION: u64 = 1 << 63;
/// Set in an entry that is no frame: the caller's is an access to an object of that kind.
pub const TAG: u64 = 1 << 62;

pub use crate::report::EXTERNAL;

#[derive(Clone, Copy)]
#[repr(C)]
struct Node {
    site: u64,
    parent: u32,
    depth: u32,
}

static NODES: AtomicPtr<Node> = AtomicPtr::new(core::ptr::null_mut());
static COUNT: AtomicU32 = AtomicU32::new(1);
static NUMBERS: Numbers = Numbers::new();
pub static LOCK: RawLock = RawLock::new();

pub fn initialise() {
    NODES.store(reserve(MAX_NODES as usize * size_of::<Node>()).cast(), Release);
    NUMBERS.initialise(1 << 12);
}

fn node(id: StackId) -> Node {
    // SAFETY: numbers come from `intern`.
    unsafe { *NODES.load(Relaxed).add(id as usize) }
}

fn hash(parent: StackId, site: u64) -> u32 {
    let mixed = (site ^ (parent as u64) << 40 ^ parent as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32
}

/// The node of a stack, or where it would be.
fn find(parent: StackId, site: u64) -> Result<StackId, Free> {
    NUMBERS.find(hash(parent, site), |id| {
        let known = node(id);
        known.site == site && known.parent == parent
    })
}

/// The stack of a call from `site` made with the stack `parent`.
pub fn intern(parent: StackId, site: u64) -> StackId {
    if let Ok(known) = find(parent, site) {
        return known;
    }
    LOCK.with(|| {
        let free = match find(parent, site) {
            Ok(known) => return known,
            Err(free) => free,
        };
        let fresh = COUNT.load(Relaxed);
        if fresh == MAX_NODES {
            return parent;
        }
        // SAFETY: a node nobody knows yet.
        unsafe { *NODES.load(Relaxed).add(fresh as usize) = Node { site, parent, depth: node(parent).depth + 1 } };
        COUNT.store(fresh + 1, Release);
        NUMBERS.add(&free, fresh);
        fresh
    })
}

/// A call: its caller's stack, its own, and the return address.
type Call = (StackId, StackId, u64);

const CALLS: usize = 1024;

/// Calls that a thread made lately: what [`intern`] finds lies far apart. No return address is 0, so all bytes zero are none.
pub struct Calls(*mut Call);

impl Calls {
    pub const BYTES: usize = CALLS * size_of::<Call>();

    /// Of no thread yet.
    pub const fn new() -> Self {
        Self(core::ptr::null_mut())
    }

    /// # Safety
    /// [`Self::BYTES`] of memory, all zero, which nobody else uses for as long as calls are made.
    pub unsafe fn begin(&mut self, memory: *mut u8) {
        self.0 = memory.cast();
    }

    /// [`intern`], remembered.
    #[inline(always)]
    pub fn intern(&mut self, parent: StackId, site: u64) -> StackId {
        debug_assert!(!self.0.is_null() && site != 0);
        // SAFETY: inside the thread's table.
        let known = unsafe { &mut *self.0.add(hash(parent, site) as usize % CALLS) };
        if known.0 != parent || known.2 != site {
            *known = (parent, intern(parent, site), site);
        }
        known.1
    }
}

/// Writes the return addresses of a stack, innermost first, and tells how many there are.
pub fn walk(mut id: StackId, into: &mut [u64]) -> usize {
    let mut length = 0;
    while id != 0 && length < into.len() {
        let node = node(id);
        if node.site & TAG == 0 {
            into[length] = node.site & !FUNCTION;
            length += 1;
        }
        id = node.parent;
    }
    length
}

/// The innermost return address of the program's own code; 0 of the empty stack.
pub fn innermost(id: StackId) -> u64 {
    let innermost = node(id);
    if innermost.site & FUNCTION != 0 { node(innermost.parent).site } else { innermost.site }
}

/// The kind of external object that an access with this stack is to; 0: none.
pub fn tag(id: StackId) -> u32 {
    let parent = node(node(id).parent).site;
    if parent & TAG != 0 { parent as u32 } else { 0 }
}

pub fn count() -> u32 {
    COUNT.load(Relaxed)
}
