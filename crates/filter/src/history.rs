//! Θ: who was where in which context (thesis, Definition 3.3.4). Per location a tree of lock paths that share their prefixes, and
//! at each node the visitors.
//!
//! Memory is bounded: locations live in two generations; when the younger one is full, the older one is forgotten. A location
//! looked at is young again. A forgotten location is sound: its next access is kept.

use crate::context::Lock;
use rashomon_event::{Access, AccessClass, Address, LockMode, SiteId, ThreadId};
use rustc_hash::FxHashMap;

/// What must be the same of two accesses: conditions 1 to 3 of the thesis' §3.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// None where only addresses are to be preserved.
    site: u32,
    address: u64,
    size: u32,
    class: u8,
}

impl Location {
    pub fn new(site: SiteId, access: &Access) -> Self {
        Self { site: site.0, ..Self::span(access, access.class) }
    }

    /// Regardless of the site.
    pub fn span(access: &Access, class: AccessClass) -> Self {
        Self { site: u32::MAX, address: access.address.0, size: access.size, class: class as u8 }
    }
}

/// A kept access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visitor {
    pub thread: ThreadId,
    /// c of the access; what [`crate::lookahead`] knows it by.
    pub outgoing: u32,
    /// What [`crate::lookahead`] knows of what the access had received.
    pub incoming: u32,
}

struct Node {
    lock: Lock,
    sibling: u32,
    child: u32,
    visitors: Vec<Visitor>,
}

const NONE: u32 = u32::MAX;

#[derive(Default)]
struct Generation {
    roots: FxHashMap<Location, u32>,
    nodes: Vec<Node>,
}

impl Generation {
    fn node(&mut self, lock: Lock, sibling: u32) -> u32 {
        self.nodes.push(Node { lock, sibling, child: NONE, visitors: Vec::new() });
        self.nodes.len() as u32 - 1
    }

    fn root(&mut self, location: Location) -> u32 {
        if let Some(&root) = self.roots.get(&location) {
            return root;
        }
        let root = self.node((Address(0), LockMode::Exclusive), NONE);
        self.roots.insert(location, root);
        root
    }

    fn child(&self, node: u32, lock: Lock) -> Option<u32> {
        let mut at = self.nodes[node as usize].child;
        while at != NONE {
            let child = &self.nodes[at as usize];
            if child.lock == lock {
                return Some(at);
            }
            at = child.sibling;
        }
        None
    }

    fn child_or_new(&mut self, node: u32, lock: Lock) -> u32 {
        self.child(node, lock).unwrap_or_else(|| {
            let sibling = self.nodes[node as usize].child;
            let child = self.node(lock, sibling);
            self.nodes[node as usize].child = child;
            child
        })
    }

    /// Copies a tree.
    fn adopt(&mut self, other: &Self, from: u32, to: u32) {
        self.nodes[to as usize].visitors = other.nodes[from as usize].visitors.clone();
        let mut at = other.nodes[from as usize].child;
        while at != NONE {
            let child = &other.nodes[at as usize];
            let copy = self.child_or_new(to, child.lock);
            self.adopt(other, at, copy);
            at = child.sibling;
        }
    }
}

pub struct History {
    young: Generation,
    old: Generation,
    /// Locations of a generation.
    room: usize,
    pub forgotten: u64,
}

impl History {
    /// At most `locations` are remembered.
    pub fn new(locations: usize) -> Self {
        Self { young: Generation::default(), old: Generation::default(), room: (locations / 2).max(1), forgotten: 0 }
    }

    pub fn locations(&self) -> usize {
        self.young.roots.len() + self.old.roots.len()
    }

    fn root(&mut self, location: Location) -> u32 {
        if let Some(&root) = self.young.roots.get(&location) {
            return root;
        }
        if self.young.roots.len() >= self.room {
            let full = std::mem::take(&mut self.young);
            self.forgotten += self.old.roots.len() as u64;
            self.old = full;
        }
        let root = self.young.root(location);
        if let Some(old) = self.old.roots.remove(&location) {
            self.young.adopt(&self.old, old, root);
        }
        root
    }

    /// Calls `visit` with the visitors of each node on the path, from no locks on, until it says stop; then says so too.
    pub fn any(&mut self, location: Location, path: &[Lock], mut visit: impl FnMut(&[Visitor]) -> bool) -> bool {
        let mut node = self.root(location);
        for step in 0..=path.len() {
            if visit(&self.young.nodes[node as usize].visitors) {
                return true;
            }
            match path.get(step).and_then(|&lock| self.young.child(node, lock)) {
                Some(child) => node = child,
                None => break,
            }
        }
        false
    }

    /// Notes a kept access at the end of the path; an earlier one of the thread there gives way if `replaces` says so.
    pub fn note(&mut self, location: Location, path: &[Lock], new: Visitor, replaces: impl Fn(&Visitor) -> bool) {
        let mut node = self.root(location);
        for &lock in path {
            node = self.young.child_or_new(node, lock);
        }
        let visitors = &mut self.young.nodes[node as usize].visitors;
        match visitors.iter_mut().find(|visitor| replaces(visitor)) {
            Some(visitor) => *visitor = new,
            None => visitors.push(new),
        }
    }
}
