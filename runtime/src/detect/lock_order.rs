//! The order in which locks are taken: a cycle in it is a deadlock that can happen.
//!
//! A graph whose nodes are locks (of one life) and whose edges say "somebody who held this one waited for that one". Havelund's
//! "Using Runtime Analysis to Guide Model Checking of Java Programs" (SPIN 2000) calls it the lock graph; as in ThreadSanitizer,
//! a cycle is reported whichever threads its edges are from and whatever other locks they held, so a cycle within one thread is,
//! too: it says what the code allows, not what can be scheduled. An edge is made when a thread asks for a lock, before it waits:
//! a deadlock that really happens has been reported then. A try makes no edge to the lock that it takes, as it does not wait;
//! edges from that lock count. Shared holders are holders.
//!
//! The cycle is looked for when an edge is new, breadth first, so a shortest one is found. Threads remember what they asked for
//! lately under which set of locks: that needs no look at the graph. Edges vanish with either lock. There is no bound on the
//! locks held, nor on a cycle's length; a report shows its first [`LONGEST`] edges.
//!
//! Limit: 2^24 edges at once; further ones are left out.

use super::locksets::{self, LockSet};
use super::objects::{self, Life, Locked, Object};
use super::shadow::reserve;
use super::stacks::StackId;
use super::walked;
use crate::detect::own::Own;
use crate::report::{self, Edge as Told, Lock, options};
use crate::system::lock::RawLock;
use crate::system::memory::{List, Map};
use crate::system::shared::Shared;
use crate::system::sys;
use core::sync::atomic::{AtomicPtr, Ordering::*};

const MAX_NODES: usize = 1 << 24;
const MAX_EDGES: u32 = 1 << 24;
/// Edges of a cycle that are told.
const LONGEST: usize = walked::MOST / 2;

/// The lock that is the object of that number.
#[repr(C)]
struct Node {
    /// Whose edges these are; 0: nobody's. All else is read and written under [`LOCK`].
    life: Shared<u64>,
    /// First edge from and to it; 0: none.
    first: [Shared<u32>; 2],
    /// The search that came here last, and the edge it came by.
    search: Shared<u32>,
    by: Shared<u32>,
}

const OUT: usize = 0;
const IN: usize = 1;

#[derive(Clone, Copy)]
#[repr(C)]
struct Edge {
    /// Numbers of the lock that was held and the one that was asked for.
    ends: [u32; 2],
    /// Neighbours in the list of edges from the one, and to the other.
    next: [u32; 2],
    previous: [u32; 2],
    thread: u32,
    /// Where the held lock had been taken, and where the other was asked for.
    held_since: StackId,
    asked: StackId,
}

static NODES: AtomicPtr<Node> = AtomicPtr::new(core::ptr::null_mut());
static EDGES: AtomicPtr<Edge> = AtomicPtr::new(core::ptr::null_mut());
pub static LOCK: RawLock = RawLock::new();
static mut STATE: State = State { used: 1, free: 0, search: 0, queue: List::new(), edges: Map::new(), told: Map::new() };

struct State {
    used: u32,
    free: u32,
    search: u32,
    queue: List<u32>,
    /// Each edge's number, by its ends; 0 where there was one. Numbers of objects are used again, so these are few.
    edges: Map,
    /// Cycles that were told, by their stacks.
    told: Map,
}

impl State {
    /// Runs `body` under [`LOCK`].
    fn with<R>(body: impl FnOnce(&mut Self) -> R) -> R {
        let state = &raw mut STATE;
        // SAFETY: under the lock, which nothing here takes twice.
        LOCK.with(|| body(unsafe { &mut *state }))
    }

    /// The number of the edge between these two; 0: there is none.
    fn between(&mut self, from: u32, to: u32) -> &mut u64 {
        self.edges.entry((u64::from(from), u64::from(to)))
    }

    fn edge(&mut self, number: u32) -> &mut Edge {
        // SAFETY: inside the table, which is never unmapped; the state is borrowed for as long.
        unsafe { &mut *EDGES.load(Relaxed).add((number & (MAX_EDGES - 1)) as usize) }
    }
}

pub fn initialise() {
    NODES.store(reserve(MAX_NODES * size_of::<Node>()).cast(), Release);
    EDGES.store(reserve(MAX_EDGES as usize * size_of::<Edge>()).cast(), Release);
}

fn node(number: u32) -> &'static Node {
    // SAFETY: inside the table, which is never unmapped.
    unsafe { &*NODES.load(Relaxed).add(number as usize & (MAX_NODES - 1)) }
}

const REMEMBERED: usize = 256;

/// What a thread asked for lately: a lock, under a set of locks. Every edge that follows from it is there.
pub struct Known(*mut [(LockSet, Life); REMEMBERED]);

impl Known {
    pub const fn new() -> Self {
        Self(core::ptr::null_mut())
    }

    /// Whether it is there; from now on it is.
    fn replace(&mut self, set: LockSet, life: Life) -> bool {
        if self.0.is_null() {
            self.0 = sys::map_anonymous(size_of::<[(LockSet, Life); REMEMBERED]>()).cast();
            if self.0.is_null() {
                return false;
            }
        }
        let at = (life ^ set as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        // SAFETY: the thread's own table.
        let entry = unsafe { &mut (&mut *self.0)[at as usize % REMEMBERED] };
        core::mem::replace(entry, (set, life)) == (set, life)
    }

    pub fn free(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the thread's own table, used no more.
            unsafe { sys::unmap(self.0.cast(), size_of::<[(LockSet, Life); REMEMBERED]>()) };
        }
        *self = Self::new();
    }
}

/// The thread asks for a lock with what it holds.
#[inline]
pub fn acquiring(thread: &mut Own, object: &Object, stack: StackId) {
    if thread.detect.held.len() > 0 {
        ordered(thread, object, stack);
    }
}

#[inline(never)]
fn ordered(thread: &mut Own, object: &Object, stack: StackId) {
    if !options::get().detect_deadlocks {
        return;
    }
    let number = thread.number.get();
    let local = &mut thread.detect;
    // A set that does not hold all of the locks, as it would be too large, says too little.
    let whole = locksets::elements(local.lock_set).len() == local.held.len();
    if whole && local.orders.replace(local.lock_set, object.life()) {
        return;
    }
    let held = local.held.as_slice();
    if held.iter().any(|held| held.number == object.number()) {
        return;
    }
    let mut cycle = List::new();
    State::with(|state| {
        for held in held {
            // SAFETY: the number of an object that is held.
            let lives = unsafe { objects::by_number(held.number).life() == held.life };
            if !lives || *state.between(held.number, object.number()) != 0 {
                continue;
            }
            let fresh = Edge {
                ends: [held.number, object.number()],
                next: [0; 2],
                previous: [0; 2],
                thread: number,
                held_since: held.stack,
                asked: stack,
            };
            let closes = cycle.len() == 0 && find_path(state, object.number(), held.number, &mut cycle);
            if closes {
                cycle.push(fresh);
            }
            insert(state, fresh);
            node(held.number).life.set(held.life);
        }
        node(object.number()).life.set(object.life());
        if cycle.len() > 0 && !is_first(state, cycle.as_slice()) {
            cycle.truncate(0);
        }
    });
    if cycle.len() > 0 {
        tell(cycle.as_slice());
    }
    cycle.clear_and_free();
}

fn insert(state: &mut State, mut fresh: Edge) {
    let number = if state.free != 0 {
        let number = state.free;
        state.free = state.edge(number).next[OUT];
        number
    } else if state.used < MAX_EDGES {
        state.used += 1;
        state.used - 1
    } else {
        return;
    };
    for direction in [OUT, IN] {
        let first = node(fresh.ends[direction]).first[direction].replace(number);
        fresh.next[direction] = first;
        if first != 0 {
            state.edge(first).previous[direction] = number;
        }
    }
    *state.edge(number) = fresh;
    *state.between(fresh.ends[OUT], fresh.ends[IN]) = u64::from(number);
}

/// The edges of a shortest path, if there is one.
fn find_path(state: &mut State, from: u32, to: u32, path: &mut List<Edge>) -> bool {
    state.search = state.search.wrapping_add(1);
    let search = state.search;
    state.queue.truncate(0);
    state.queue.push(from);
    node(from).search.set(search);
    let mut next = 0;
    while next < state.queue.len() {
        let mut at = node(state.queue.as_slice()[next]).first[OUT].get();
        next += 1;
        while at != 0 {
            let Edge { ends: [_, target], next: [following, _], .. } = *state.edge(at);
            if node(target).search.get() != search {
                node(target).search.set(search);
                node(target).by.set(at);
                if target == to {
                    let mut end = to;
                    while end != from {
                        let by = *state.edge(node(end).by.get());
                        path.push(by);
                        end = by.ends[OUT];
                    }
                    path.as_mut_slice().reverse();
                    return true;
                }
                state.queue.push(target);
            }
            at = following;
        }
    }
    false
}

/// Whether no cycle of these stacks was told before.
fn is_first(state: &mut State, cycle: &[Edge]) -> bool {
    let mix = |edge: &Edge| {
        let word = (edge.held_since as u64) << 32 | edge.asked as u64;
        (word ^ word >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    // Whichever edge closed it.
    let sum = cycle.iter().fold(0u64, |sum, edge| sum.wrapping_add(mix(edge).rotate_left(17)));
    core::mem::replace(state.told.entry((sum, cycle.len() as u64)), 1) == 0
}

#[cold]
#[inline(never)]
fn tell(cycle: &[Edge]) {
    let cycle = &cycle[..cycle.len().min(LONGEST)];
    let mut ids = [0; walked::MOST];
    for (edge, pair) in cycle.iter().zip(ids.chunks_exact_mut(2)) {
        pair.copy_from_slice(&[edge.asked, edge.held_since]);
    }
    let nothing = Told { lock: Lock::NONE, thread: 0, stack: &[], held_since: &[] };
    walked::with(&ids[..2 * cycle.len()], |stacks| {
        let mut told = [nothing; LONGEST];
        for ((told, edge), stacks) in told.iter_mut().zip(cycle).zip(stacks.chunks_exact(2)) {
            // SAFETY: the number of an object; at worst it is another one by now.
            let object = unsafe { objects::by_number(edge.ends[OUT]) };
            let lock = object.as_told(true);
            *told = Told { lock, thread: edge.thread, stack: stacks[0], held_since: stacks[1] };
        }
        report::deadlock(&told[..cycle.len()])
    });
}

/// The lock is gone, or becomes another one.
pub fn forget(object: &Locked) {
    let node = node(object.number());
    if node.life.get() != object.life() {
        return;
    }
    State::with(|state| {
        node.life.set(0);
        for direction in [OUT, IN] {
            let mut at = node.first[direction].get();
            while at != 0 {
                let following = state.edge(at).next[direction];
                remove(state, at);
                at = following;
            }
        }
    });
}

fn remove(state: &mut State, number: u32) {
    let gone = *state.edge(number);
    for direction in [OUT, IN] {
        let (previous, next) = (gone.previous[direction], gone.next[direction]);
        match previous {
            0 => node(gone.ends[direction]).first[direction].set(next),
            _ => state.edge(previous).next[direction] = next,
        }
        if next != 0 {
            state.edge(next).previous[direction] = previous;
        }
    }
    *state.between(gone.ends[OUT], gone.ends[IN]) = 0;
    state.edge(number).next[OUT] = state.free;
    state.free = number;
}
