//! Transactions of a trace, as a graph of which the greater part is forgotten: what reaches what, by clocks over transactions.
//!
//! A node is known by its thread and its number there. A node's *row* says which nodes of each thread reach it. A node of a thread's open region
//! can still be reached by more, and then so is whatever it reaches: those nodes *wait* for it, and take its row over when it has ended. An edge that closes a
//! cycle is an edge like others: the nodes on it reach each other from then on.

use crate::clock::{Row, Rows, Time, join, width_for};
use crate::cycles::Cycles;
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
    cycles: Cycles,
    enough: usize,
}

impl Default for Graph {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            nodes: Vec::new(),
            rows: Rows::default(),
            free: Vec::new(),
            current: Vec::new(),
            cycles: Cycles::default(),
            enough: FEW,
        }
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
            self.cycles.prepare(threads);
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

    fn new_node(&mut self, thread: u16, number: u32, region: Option<Region>) -> NodeId {
        let name = Name { number, thread };
        let node = Node { open: region.is_some(), region, waits_for: Vec::new() };
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
        let was_open = std::mem::replace(&mut self.nodes[old as usize].open, false);
        self.settle(old);
        if was_open {
            for before in &self.nodes[old as usize].waits_for {
                self.cycles.hand_over(thread, self.names[*before as usize].thread);
            }
        }
        let number = self.names[old as usize].number + 1;
        if let Some(region) = &region {
            let (current, nodes, names) = (&self.current, &self.nodes, &self.names);
            let open = |thread: usize| {
                let node = *current.get(thread)? as usize;
                nodes[node].open.then(|| names[node].number)
            };
            self.cycles.begin(region, number, open);
        }
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

    /// Whether `from` reaches `to`, over nodes that may be waited for too.
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

    /// The regions on the cycles that an edge to `to`, an open node that reaches `from`, will close, but for those that were told before.
    pub fn close_cycles(&mut self, from: NodeId, to: NodeId) -> Vec<Region> {
        let mut last: Box<Row> = vec![0; self.rows.width()].into();
        let mut seen = Vec::new();
        let mut next = vec![from];
        while let Some(node) = next.pop() {
            if !seen.contains(&node) {
                seen.push(node);
                self.settle(node);
                join(&mut last, self.rows.row(node as usize));
                next.extend_from_slice(&self.nodes[node as usize].waits_for);
            }
        }
        let open: Vec<NodeId> = self.current.iter().copied().filter(|node| self.nodes[*node as usize].open).collect();
        let reached: Vec<NodeId> = open.into_iter().filter(|node| *node == to || self.reaches_at_last(to, *node)).collect();
        let name = |node: &NodeId| (self.names[*node as usize].thread, self.names[*node as usize].number);
        let reached: Vec<(u16, Time)> = reached.iter().map(name).collect();
        self.cycles.take(&reached, &last)
    }

    pub fn cycles(&mut self) -> &mut Cycles {
        &mut self.cycles
    }

    pub fn add_edge(&mut self, from: NodeId, to: NodeId) {
        self.settle(from);
        let (row, other) = self.rows.pair(to as usize, from as usize);
        join(row, other);
        let mut waits_for = std::mem::take(&mut self.nodes[to as usize].waits_for);
        let more = self.nodes[from as usize].waits_for.iter().copied();
        let more = more.chain(self.nodes[from as usize].open.then_some(from));
        let Name { number, thread } = self.names[to as usize];
        for node in more {
            if node != to && !waits_for.contains(&node) {
                waits_for.push(node);
                self.cycles.reach(self.names[node as usize].thread, thread, number);
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
        self.nodes.capacity() * (size_of::<Node>() + size_of::<Name>()) + self.rows.bytes() + self.cycles.bytes()
    }
}

const _: () = assert!(size_of::<Time>() == size_of::<u32>(), "rows hold numbers of nodes here");
