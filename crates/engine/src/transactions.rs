//! Transactions of a trace, as a graph of which the greater part is forgotten: what reaches what, by clocks over transactions.
//!
//! A node is known by its thread and its number there. A node's *row* says which nodes of each thread reach it. A node of a
//! thread's open region can still be reached by more, and then so is whatever it reaches: those nodes *wait* for it, and take its
//! row over when it has ended. An edge that closes a cycle is an edge like others: the nodes on it reach each other from then on.
//!
//! A node that has ended and waits for nothing is *final*: nothing more will reach it, or anything that reaches it. So no further
//! cycle goes through it, and an edge from it is left out (after the garbage collection of Flanagan, Freund, Yi, "Velodrome",
//! PLDI 2008). A row need not say which final nodes reach its node, and a sweep keeps none that is not its thread's latest.

use crate::clock::{Row, Rows, Time, join, width_for};
use crate::cycles::Cycles;
use crate::hints::{prefetch, push};

pub(crate) type NodeId = u32;
pub(crate) const NONE: NodeId = NodeId::MAX;
/// Their numbers leave the highest bit to others.
const MOST: usize = 1 << 31;

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

/// Sixteen bytes, because there are as many as transactions that anything still names.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// Of its region, if it is one.
    name: u32,
    location: u32,
    event: Time,
    /// [`OPEN`], [`REGION`], and the number of the list of nodes that it waits for, or 0.
    state: u32,
}

/// Can be reached by more nodes.
const OPEN: u32 = 1 << 31;
/// Is no single event.
const REGION: u32 = 1 << 30;
const LIST: u32 = REGION - 1;

impl Node {
    fn is_open(self) -> bool {
        self.state & OPEN != 0
    }
}

/// What nodes wait for: few do.
#[derive(Clone, Debug)]
struct Waits {
    lists: Vec<Vec<NodeId>>,
    free: Vec<u32>,
}

impl Default for Waits {
    fn default() -> Self {
        // Number 0 is that of no list.
        Self { lists: vec![Vec::new()], free: Vec::new() }
    }
}

impl Waits {
    fn of(&self, node: Node) -> &[NodeId] {
        &self.lists[(node.state & LIST) as usize]
    }

    fn take(&mut self, node: &mut Node) -> Vec<NodeId> {
        match node.state & LIST {
            0 => Vec::new(),
            number => {
                node.state &= !LIST;
                self.free.push(number);
                std::mem::take(&mut self.lists[number as usize])
            }
        }
    }

    /// The node waits for nothing so far.
    fn put(&mut self, node: &mut Node, list: Vec<NodeId>) {
        debug_assert!(node.state & LIST == 0, "one list a node");
        if list.is_empty() {
            return;
        }
        let number = match self.free.pop() {
            Some(number) => {
                self.lists[number as usize] = list;
                number
            }
            None => {
                self.lists.push(list);
                self.lists.len() as u32 - 1
            }
        };
        assert!(number <= LIST, "fewer lists than transactions");
        node.state |= number;
    }
}

/// Some of the nodes.
#[derive(Debug)]
pub(crate) struct Nodes(Vec<u64>);

impl Nodes {
    #[inline]
    pub fn add(&mut self, node: NodeId) {
        if node != NONE {
            self.0[node as usize / 64] |= 1 << (node % 64);
        }
    }

    #[inline]
    pub fn has(&self, node: NodeId) -> bool {
        self.0[node as usize / 64] >> (node % 64) & 1 != 0
    }
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
    waits: Waits,
    rows: Rows,
    free: Vec<NodeId>,
    /// Each thread's latest.
    current: Vec<NodeId>,
    cycles: Cycles,
    enough: usize,
    is_eager: bool,
}

impl Default for Graph {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            nodes: Vec::new(),
            waits: Waits::default(),
            rows: Rows::default(),
            free: Vec::new(),
            current: Vec::new(),
            cycles: Cycles::default(),
            enough: FEW,
            is_eager: false,
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
        self.nodes[self.current(thread) as usize].is_open()
    }

    pub fn region(&self, node: NodeId) -> Option<Region> {
        let Node { name, location, event, state } = self.nodes[node as usize];
        let region = || Region { name, location, thread: self.thread(node), event: event.into() };
        (state & REGION != 0).then(region)
    }

    fn new_node(&mut self, thread: u16, number: u32, region: Option<Region>) -> NodeId {
        let name = Name { number, thread };
        let node = region.map_or_else(Node::default, |Region { name, location, event, .. }| Node {
            name,
            location,
            event: event as Time,
            state: OPEN | REGION,
        });
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
                assert!(self.nodes.len() <= MOST, "fewer transactions that are named at once than a number of a node can be");
                self.rows.push() as NodeId
            }
        };
        self.rows.row_mut(id as usize)[usize::from(thread)] = number;
        id
    }

    /// The thread's next node, reached by its latest one, which ends.
    pub fn advance(&mut self, thread: u16, region: Option<Region>) -> NodeId {
        let old = self.current(thread);
        let was_open = self.nodes[old as usize].is_open();
        self.nodes[old as usize].state &= !OPEN;
        self.settle(old);
        if was_open {
            for before in self.waits.of(self.nodes[old as usize]) {
                self.cycles.hand_over(thread, self.names[*before as usize].thread);
            }
        }
        let number = self.names[old as usize].number + 1;
        if let Some(region) = &region {
            let (current, nodes, names) = (&self.current, &self.nodes, &self.names);
            let open = |thread: usize| {
                let node = *current.get(thread)? as usize;
                nodes[node].is_open().then(|| names[node].number)
            };
            self.cycles.begin(region, number, open);
        }
        let new = self.new_node(thread, number, region);
        let (row, from) = self.rows.pair(new as usize, old as usize);
        row.copy_from_slice(from);
        row[usize::from(thread)] = number;
        if self.nodes[old as usize].state & LIST != 0 {
            let list = self.waits.of(self.nodes[old as usize]).to_vec();
            self.waits.put(&mut self.nodes[new as usize], list);
        }
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
    #[inline]
    fn settle(&mut self, node: NodeId) {
        if self.nodes[node as usize].state & LIST != 0 {
            self.settle_waiting(node);
        }
    }

    fn settle_waiting(&mut self, node: NodeId) {
        if self.waits.of(self.nodes[node as usize]).iter().all(|other| self.nodes[*other as usize].is_open()) {
            return;
        }
        let mut open: Vec<NodeId> = Vec::new();
        let mut seen = Vec::new();
        let mut next = self.waits.take(&mut self.nodes[node as usize]);
        while let Some(other) = next.pop() {
            if other == node || seen.contains(&other) {
                continue;
            }
            seen.push(other);
            if self.nodes[other as usize].is_open() {
                open.push(other);
                continue;
            }
            let (row, from) = self.rows.pair(node as usize, other as usize);
            join(row, from);
            next.extend_from_slice(self.waits.of(self.nodes[other as usize]));
        }
        self.waits.put(&mut self.nodes[node as usize], open);
    }

    /// Whether `from` reaches `to`, over nodes that may be waited for too.
    pub fn reaches_at_last(&mut self, from: NodeId, to: NodeId) -> bool {
        if to == from || self.reaches(from, to) {
            return true;
        }
        self.settle(to);
        if self.nodes[to as usize].state & LIST == 0 {
            return self.reaches(from, to);
        }
        let mut seen = Vec::new();
        let mut next = vec![to];
        while let Some(node) = next.pop() {
            if node == from || self.reaches(from, node) {
                return true;
            }
            if !seen.contains(&node) {
                seen.push(node);
                self.settle(node);
                next.extend_from_slice(self.waits.of(self.nodes[node as usize]));
                if self.reaches(from, node) {
                    return true;
                }
            }
        }
        false
    }

    /// The regions on the cycles that an edge to `to`, an open node that reaches `from`, will close, but for those that were told
    /// before.
    pub fn close_cycles(&mut self, from: NodeId, to: NodeId) -> Vec<Region> {
        let mut last: Box<Row> = vec![0; self.rows.width()].into();
        let mut seen = Vec::new();
        let mut next = vec![from];
        while let Some(node) = next.pop() {
            if !seen.contains(&node) {
                seen.push(node);
                self.settle(node);
                join(&mut last, self.rows.row(node as usize));
                next.extend_from_slice(self.waits.of(self.nodes[node as usize]));
            }
        }
        let open: Vec<NodeId> = self.current.iter().copied().filter(|node| self.nodes[*node as usize].is_open()).collect();
        let reached: Vec<NodeId> = open.into_iter().filter(|node| *node == to || self.reaches_at_last(to, *node)).collect();
        let name = |node: &NodeId| (self.names[*node as usize].thread, self.names[*node as usize].number);
        let reached: Vec<(u16, Time)> = reached.iter().map(name).collect();
        self.cycles.take(&reached, &last)
    }

    pub fn cycles(&mut self) -> &mut Cycles {
        &mut self.cycles
    }

    /// Whether no further cycle goes through the node: it has ended, and so has all that reaches it.
    #[inline]
    pub fn is_final(&mut self, node: NodeId) -> bool {
        self.settle(node);
        self.nodes[node as usize].state & (LIST | OPEN) == 0
    }

    /// An edge from a final node is left out.
    pub fn add_edge(&mut self, from: NodeId, to: NodeId) {
        if self.is_final(from) {
            return;
        }
        let (row, other) = self.rows.pair(to as usize, from as usize);
        join(row, other);
        let source = self.nodes[from as usize];
        let mut waits_for = self.waits.take(&mut self.nodes[to as usize]);
        let more = self.waits.of(source).iter().copied().chain(source.is_open().then_some(from));
        let Name { number, thread } = self.names[to as usize];
        for node in more {
            if node != to && !waits_for.contains(&node) {
                waits_for.push(node);
                self.cycles.reach(self.names[node as usize].thread, thread, number);
            }
        }
        self.waits.put(&mut self.nodes[to as usize], waits_for);
    }

    pub fn thread(&self, node: NodeId) -> u16 {
        self.names[node as usize].thread
    }

    /// Sweeps are due all the time.
    pub fn be_eager(&mut self) {
        self.is_eager = true;
    }

    pub fn is_crowded(&self) -> bool {
        self.is_eager || self.nodes.len() - self.free.len() >= self.enough
    }

    /// Those that are not final.
    pub fn unfinished(&mut self) -> Nodes {
        let mut nodes = self.no_nodes();
        for node in 0..self.nodes.len() as NodeId {
            if !self.is_final(node) {
                nodes.add(node);
            }
        }
        nodes
    }

    pub fn no_nodes(&self) -> Nodes {
        Nodes(vec![0; self.nodes.len().div_ceil(64)])
    }

    /// Forgets what is not named, but for each thread's latest. All nodes are settled.
    pub fn sweep(&mut self, mut named: Nodes, variables: usize) {
        // What is waited for is open, and so the latest of its thread.
        self.current.iter().for_each(|node| named.add(*node));
        self.free.clear();
        for id in (0..self.nodes.len() as NodeId).filter(|node| !named.has(*node)) {
            drop(self.waits.take(&mut self.nodes[id as usize]));
            self.free.push(id);
        }
        let live = self.nodes.len() - self.free.len();
        self.enough = (2 * live).max(FEW).max(variables / VARIABLES);
    }

    pub fn bytes(&self) -> usize {
        let nodes = self.nodes.capacity() * (size_of::<Node>() + size_of::<Name>() + size_of::<NodeId>());
        nodes + self.rows.bytes() + self.waits.lists.capacity() * size_of::<Vec<NodeId>>() + self.cycles.bytes()
    }
}

const _: () = assert!(size_of::<Time>() == size_of::<u32>(), "rows hold numbers of nodes here");
