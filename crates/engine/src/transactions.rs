//! Transactions of a trace, as a graph of which the greater part is forgotten: what reaches what, by clocks over transactions.
//!
//! A node is known by its thread and its number there. A node's *row* says which nodes of each thread reach it. A node of a thread's open region
//! can still be reached by more, and then so is whatever it reaches: those nodes *wait* for it, and take its row over when it has ended.

use crate::clock::{Rows, Time, join, width_for};
use crate::hints::{prefetch, push};

pub(crate) type NodeId = u32;
pub(crate) const NONE: NodeId = NodeId::MAX;

/// What a region is, where it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region {
    /// The region's number, or that of its outermost lock.
    pub name: u32,
    pub location: u32,
    pub thread: u16,
    /// The event that began it, from 0.
    pub event: u64,
}

/// Apart from the rest of the node, because most questions are about no more than this.
#[derive(Clone, Copy, Debug)]
struct Name {
    number: u32,
    thread: u16,
}

#[derive(Clone, Debug)]
struct Node {
    /// Can be reached by more nodes.
    open: bool,
    /// None: a single event.
    region: Option<Region>,
    violates: bool,
    waits_for: Vec<NodeId>,
}

/// Nodes that are kept before a first sweep.
const FEW: usize = 1 << 14;
/// A sweep looks at every variable, so there may be a node for this many of them.
const VARIABLES: usize = 16;

#[derive(Clone, Debug)]
pub(crate) struct Graph {
    /// Of the nodes.
    names: Vec<Name>,
    nodes: Vec<Node>,
    rows: Rows,
    free: Vec<NodeId>,
    /// Each thread's latest.
    current: Vec<NodeId>,
    enough: usize,
}

impl Default for Graph {
    fn default() -> Self {
        Self { names: Vec::new(), nodes: Vec::new(), rows: Rows::default(), free: Vec::new(), current: Vec::new(), enough: FEW }
    }
}

impl Graph {
    pub fn prepare(&mut self, threads: usize) {
        if threads > self.current.len() {
            self.rows.widen(width_for(threads as u16 - 1));
            for thread in self.current.len()..threads {
                let node = self.new_node(thread as u16, 1, None);
                self.current.push(node);
            }
        }
    }

    /// How many there are, forgotten ones included.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Asks for what [`Self::reaches`] needs of the node, if it is one.
    #[inline]
    pub fn prefetch(&self, node: NodeId) {
        prefetch(&self.names, node as usize);
    }

    pub fn threads(&self) -> usize {
        self.current.len()
    }

    #[inline]
    pub fn current(&self, thread: u16) -> NodeId {
        self.current[usize::from(thread)]
    }

    pub fn is_in_region(&self, thread: u16) -> bool {
        self.nodes[self.current(thread) as usize].open
    }

    pub fn region(&self, node: NodeId) -> Option<Region> {
        self.nodes[node as usize].region
    }

    /// Says whether this is the node's first violation.
    pub fn violate(&mut self, node: NodeId) -> bool {
        !std::mem::replace(&mut self.nodes[node as usize].violates, true)
    }

    fn new_node(&mut self, thread: u16, number: u32, region: Option<Region>) -> NodeId {
        let name = Name { number, thread };
        let node = Node { open: region.is_some(), region, violates: false, waits_for: Vec::new() };
        let id = match self.free.pop() {
            Some(id) => {
                self.names[id as usize] = name;
                self.nodes[id as usize] = node;
                self.rows.row_mut(id as usize).fill(0);
                id
            }
            None => {
                push(&mut self.names, name);
                push(&mut self.nodes, node);
                self.rows.push() as NodeId
            }
        };
        self.rows.row_mut(id as usize)[usize::from(thread)] = number;
        id
    }

    /// The thread's next node, reached by its latest one, which ends.
    pub fn advance(&mut self, thread: u16, region: Option<Region>) -> NodeId {
        let old = self.current(thread);
        self.nodes[old as usize].open = false;
        self.settle(old);
        let number = self.names[old as usize].number + 1;
        let new = self.new_node(thread, number, region);
        let (row, from) = self.rows.pair(new as usize, old as usize);
        row.copy_from_slice(from);
        row[usize::from(thread)] = number;
        self.nodes[new as usize].waits_for = self.nodes[old as usize].waits_for.clone();
        self.current[usize::from(thread)] = new;
        new
    }

    /// Whether `from` is known to reach `to`. No is no answer as long as `to` waits.
    #[inline]
    pub fn reaches(&self, from: NodeId, to: NodeId) -> bool {
        let name = self.names[from as usize];
        self.rows.row(to as usize)[usize::from(name.thread)] >= name.number
    }

    /// Takes over what has ended meanwhile.
    fn settle(&mut self, node: NodeId) {
        if self.nodes[node as usize].waits_for.iter().all(|other| self.nodes[*other as usize].open) {
            return;
        }
        let mut open: Vec<NodeId> = Vec::new();
        let mut seen = Vec::new();
        let mut next = std::mem::take(&mut self.nodes[node as usize].waits_for);
        while let Some(other) = next.pop() {
            if other == node || seen.contains(&other) {
                continue;
            }
            seen.push(other);
            if self.nodes[other as usize].open {
                open.push(other);
                continue;
            }
            let (row, from) = self.rows.pair(node as usize, other as usize);
            join(row, from);
            next.extend_from_slice(&self.nodes[other as usize].waits_for);
        }
        self.nodes[node as usize].waits_for = open;
    }

    /// Whether `from`, an open node, reaches `to` over nodes that may be waited for.
    pub fn reaches_at_last(&mut self, from: NodeId, to: NodeId) -> bool {
        let mut seen = Vec::new();
        let mut next = vec![to];
        while let Some(node) = next.pop() {
            if node == from || self.reaches(from, node) {
                return true;
            }
            if !seen.contains(&node) {
                seen.push(node);
                self.settle(node);
                next.extend_from_slice(&self.nodes[node as usize].waits_for);
                if self.reaches(from, node) {
                    return true;
                }
            }
        }
        false
    }

    /// An edge that closes no cycle.
    pub fn add_edge(&mut self, from: NodeId, to: NodeId) {
        self.settle(from);
        let (row, other) = self.rows.pair(to as usize, from as usize);
        join(row, other);
        let mut waits_for = std::mem::take(&mut self.nodes[to as usize].waits_for);
        let more = self.nodes[from as usize].waits_for.iter().copied();
        let more = more.chain(self.nodes[from as usize].open.then_some(from));
        for node in more {
            if !waits_for.contains(&node) {
                waits_for.push(node);
            }
        }
        self.nodes[to as usize].waits_for = waits_for;
    }

    pub fn thread(&self, node: NodeId) -> u16 {
        self.names[node as usize].thread
    }

    pub fn is_crowded(&self) -> bool {
        self.nodes.len() - self.free.len() >= self.enough
    }

    /// Keeps these nodes, [`NONE`] apart, what they wait for, and each thread's latest.
    pub fn sweep(&mut self, named: impl Iterator<Item = NodeId>, variables: usize) {
        let mut wanted = vec![false; self.nodes.len()];
        let mut next: Vec<NodeId> = Vec::new();
        named.chain(self.current.iter().copied()).filter(|node| *node != NONE).for_each(|node| {
            if !std::mem::replace(&mut wanted[node as usize], true) {
                next.push(node);
            }
        });
        while let Some(node) = next.pop() {
            self.settle(node);
            for &other in &self.nodes[node as usize].waits_for {
                if !std::mem::replace(&mut wanted[other as usize], true) {
                    next.push(other);
                }
            }
        }
        self.free.clear();
        for (id, _) in wanted.iter().enumerate().filter(|(_, wanted)| !**wanted) {
            self.nodes[id].waits_for = Vec::new();
            self.free.push(id as NodeId);
        }
        let live = self.nodes.len() - self.free.len();
        self.enough = (2 * live).max(FEW).max(variables / VARIABLES);
    }

    pub fn bytes(&self) -> usize {
        self.nodes.capacity() * (size_of::<Node>() + size_of::<Name>()) + self.rows.bytes()
    }
}

const _: () = assert!(size_of::<Time>() == size_of::<u32>(), "rows hold numbers of nodes here");
