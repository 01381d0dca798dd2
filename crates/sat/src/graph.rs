//! The theory: edges come and go, and who reaches whom is known at any time.
//!
//! Computed: per node and chain, the first node of the chain that it reaches, kept up to date as edges are added and restored as
//! they are taken back. An edge that closes a cycle is refused with one of least literals (breadth first). A literal one of whose
//! edges would close a cycle is told at once: the propagation is complete. (He, Sun, Fan, "Satisfiability Modulo Ordering
//! Consistency Theory for Multi-Threaded Program Verification", PLDI 2021, §5, has the conflicts and a part of the propagation,
//! over a topological order. Tunç, Deshmukh, Çirisci, Enea, Pavlogiannis, "CSSTs: A Dynamic Data Structure for Partial Orders in
//! Concurrent Execution Analysis", ASPLOS 2024, has reachability by chains.)
//!
//! Cost: a query is one look. An edge costs the number of chains for each node that comes to reach more, and taking it back the
//! same. Memory: nodes times chains.

use crate::literal::Literal;
use crate::problem::{Edge, Node, Problem};
use crate::proof::{Hop, Why};
use std::collections::VecDeque;

/// Reaches nothing there.
const NEVER: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Arc {
    to: Node,
    /// `None`: it always holds.
    literal: Option<Literal>,
}

/// A conditional edge, by its number in the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeNumber(pub u32);

/// A state to return to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    edges: usize,
    rows: usize,
}

#[derive(Default)]
pub struct Graph {
    /// Number of chains, which is the length of a row.
    width: usize,
    /// Per node, its chain and its place there.
    places: Vec<(usize, u32)>,
    chains: Vec<Vec<Node>>,
    /// Rows: per node and chain, the first place that it reaches.
    first: Vec<u32>,
    out: Vec<Vec<Arc>>,
    into: Vec<Vec<Node>>,
    /// Per node, the conditional edges that end there, with where they start.
    ending: Vec<Vec<(EdgeNumber, Node)>>,
    /// Edges to take back, the last one added last.
    added: Vec<Edge>,
    /// Rows to restore: nodes, and what their rows were.
    changed: Vec<Node>,
    saved: Vec<u32>,
    /// Of the search for a cycle: per node, the literals on the way and the last hop.
    distance: Vec<u32>,
    last: Vec<Option<Hop>>,
    visited: Vec<Node>,
    /// Of an addition: nodes that came to reach more.
    grown: Vec<Node>,
    is_grown: Vec<bool>,
}

impl Graph {
    /// All edges that always hold; or a cycle of them.
    pub fn new(problem: &Problem) -> Result<Self, Vec<Hop>> {
        let (nodes, width) = (problem.nodes(), problem.chains().len());
        let place = |number: usize| problem.place(Node(number as u32));
        let mut graph = Self {
            width,
            places: (0..nodes).map(|number| (place(number).chain.0 as usize, place(number).index)).collect(),
            chains: problem.chains().to_vec(),
            first: vec![NEVER; nodes * width],
            out: vec![Vec::new(); nodes],
            into: vec![Vec::new(); nodes],
            ending: vec![Vec::new(); nodes],
            distance: vec![NEVER; nodes],
            last: vec![None; nodes],
            is_grown: vec![false; nodes],
            ..Self::default()
        };
        for (node, &(chain, index)) in graph.places.iter().enumerate() {
            graph.first[node * width + chain] = index;
        }
        for (number, (_, edge)) in problem.conditional().iter().enumerate() {
            graph.ending[edge.to.index()].push((EdgeNumber(number as u32), edge.from));
        }
        if !graph.close_fixed(problem.fixed()) {
            for &edge in problem.fixed() {
                graph.add(edge, None, &mut Vec::new())?;
            }
        }
        Ok(graph)
    }

    /// Adds the edges at once, unless they have a cycle.
    fn close_fixed(&mut self, fixed: &[Edge]) -> bool {
        let nodes = self.places.len();
        let mut missing = vec![0usize; nodes];
        for edge in fixed {
            self.connect(*edge, None);
            missing[edge.to.index()] += 1;
        }
        for (node, &(_, index)) in self.places.iter().enumerate() {
            missing[node] += usize::from(index > 0);
        }
        let mut order: Vec<Node> = (0..nodes).filter(|&node| missing[node] == 0).map(|node| Node(node as u32)).collect();
        let mut done = 0;
        while let Some(&node) = order.get(done) {
            done += 1;
            for next in self.next_in_chain(node).into_iter().chain(self.out[node.index()].iter().map(|arc| arc.to)) {
                missing[next.index()] -= 1;
                if missing[next.index()] == 0 {
                    order.push(next);
                }
            }
        }
        if order.len() < nodes {
            self.undo_to(Mark::default());
            return false;
        }
        for &node in order.iter().rev() {
            let next: Vec<Node> =
                self.next_in_chain(node).into_iter().chain(self.out[node.index()].iter().map(|arc| arc.to)).collect();
            for next in next {
                self.join(node, next, false);
            }
        }
        self.added.clear();
        true
    }

    pub fn mark(&self) -> Mark {
        Mark { edges: self.added.len(), rows: self.changed.len() }
    }

    /// Takes back what was added since.
    pub fn undo_to(&mut self, mark: Mark) {
        for edge in self.added.drain(mark.edges..).rev() {
            self.out[edge.from.index()].pop();
            self.into[edge.to.index()].pop();
        }
        while self.changed.len() > mark.rows {
            let Some(node) = self.changed.pop() else { break };
            let (row, start) = (node.index() * self.width, self.saved.len() - self.width);
            self.first[row..row + self.width].copy_from_slice(&self.saved[start..]);
            self.saved.truncate(start);
        }
    }

    /// What was added so far stays.
    pub fn settle(&mut self) {
        self.added.clear();
        self.changed.clear();
        self.saved.clear();
    }

    /// A new conditional edge, which is told if it would close a cycle.
    pub fn watch(&mut self, number: EdgeNumber, edge: Edge, impossible: &mut Vec<EdgeNumber>) {
        self.ending[edge.to.index()].push((number, edge.from));
        if self.reaches(edge.to, edge.from) {
            impossible.push(number);
        }
    }

    /// Whether `from` is `to` or comes before it.
    pub fn reaches(&self, from: Node, to: Node) -> bool {
        let (chain, index) = self.places[to.index()];
        self.first[from.index() * self.width + chain] <= index
    }

    /// Adds an edge, and tells which conditional edges are impossible with it; or the cycle that it would close.
    pub fn add(&mut self, edge: Edge, literal: Option<Literal>, impossible: &mut Vec<EdgeNumber>) -> Result<(), Vec<Hop>> {
        let Edge { from, to } = edge;
        if self.reaches(to, from) {
            let mut cycle = self.path(to, from, |_| true).unwrap_or_default();
            cycle.push(Hop { from, to, why: literal.map_or(Why::Fixed, Why::If) });
            return Err(cycle);
        }
        let known = self.reaches(from, to);
        self.connect(edge, literal);
        if !known {
            self.grow(from, to);
            let mut grown = std::mem::take(&mut self.grown);
            for node in grown.drain(..) {
                self.is_grown[node.index()] = false;
                self.impossible_into(node, impossible);
            }
            self.grown = grown;
        }
        Ok(())
    }

    /// All conditional edges that would close a cycle.
    pub fn impossible(&self) -> Vec<EdgeNumber> {
        let mut impossible = Vec::new();
        (0..self.places.len()).for_each(|node| self.impossible_into(Node(node as u32), &mut impossible));
        impossible
    }

    fn impossible_into(&self, node: Node, impossible: &mut Vec<EdgeNumber>) {
        let edges = self.ending[node.index()].iter();
        impossible.extend(edges.filter(|&&(_, start)| self.reaches(node, start)).map(|&(number, _)| number));
    }

    fn connect(&mut self, edge: Edge, literal: Option<Literal>) {
        self.out[edge.from.index()].push(Arc { to: edge.to, literal });
        self.into[edge.to.index()].push(edge.from);
        self.added.push(edge);
    }

    fn next_in_chain(&self, node: Node) -> Option<Node> {
        let (chain, index) = self.places[node.index()];
        self.chains[chain].get(index as usize + 1).copied()
    }

    /// `node` reaches all that `beyond` does. Whether that is more than before.
    fn join(&mut self, node: Node, beyond: Node, undoable: bool) -> bool {
        let (row, other, width) = (node.index() * self.width, beyond.index() * self.width, self.width);
        if (0..width).all(|chain| self.first[row + chain] <= self.first[other + chain]) {
            return false;
        }
        if undoable {
            self.changed.push(node);
            self.saved.extend_from_slice(&self.first[row..row + width]);
        }
        for chain in 0..width {
            self.first[row + chain] = self.first[row + chain].min(self.first[other + chain]);
        }
        true
    }

    /// Brings what `to` reaches to `from`, and to all that reach `from`.
    fn grow(&mut self, from: Node, to: Node) {
        let mut open = vec![(from, to)];
        while let Some((node, beyond)) = open.pop() {
            if !self.join(node, beyond, true) {
                continue;
            }
            if !std::mem::replace(&mut self.is_grown[node.index()], true) {
                self.grown.push(node);
            }
            let (chain, index) = self.places[node.index()];
            open.extend(self.into[node.index()].iter().map(|&before| (before, node)));
            if index > 0 {
                open.push((self.chains[chain][index as usize - 1], node));
            }
        }
    }

    /// A way with the least number of literals, all of which are `allowed`. Hops along one chain are one hop.
    pub fn path(&mut self, from: Node, to: Node, allowed: impl Fn(Literal) -> bool) -> Option<Vec<Hop>> {
        let mut open = VecDeque::from([(from, 0)]);
        self.distance[from.index()] = 0;
        self.visited.push(from);
        while let Some((node, distance)) = open.pop_front() {
            if node == to {
                break;
            }
            if distance > self.distance[node.index()] {
                continue;
            }
            if let Some(next) = self.next_in_chain(node) {
                self.step(&mut open, Hop { from: node, to: next, why: Why::Chain }, distance, to);
            }
            for place in 0..self.out[node.index()].len() {
                let arc = self.out[node.index()][place];
                let why = arc.literal.map_or(Why::Fixed, Why::If);
                if arc.literal.is_none_or(&allowed) {
                    self.step(&mut open, Hop { from: node, to: arc.to, why }, distance, to);
                }
            }
        }
        let mut hops: Vec<Hop> = Vec::new();
        let mut node = to;
        while node != from
            && let Some(hop) = self.last[node.index()]
        {
            node = hop.from;
            match hops.last_mut() {
                Some(later) if later.why == Why::Chain && hop.why == Why::Chain => later.from = hop.from,
                _ => hops.push(hop),
            }
        }
        hops.reverse();
        for node in self.visited.drain(..) {
            self.distance[node.index()] = NEVER;
            self.last[node.index()] = None;
        }
        (node == from).then_some(hops)
    }

    fn step(&mut self, open: &mut VecDeque<(Node, u32)>, hop: Hop, distance: u32, goal: Node) {
        let costs = matches!(hop.why, Why::If(_));
        let distance = distance + u32::from(costs);
        let known = &mut self.distance[hop.to.index()];
        if distance >= *known {
            return;
        }
        if *known == NEVER {
            self.visited.push(hop.to);
        }
        *known = distance;
        self.last[hop.to.index()] = Some(hop);
        if self.reaches(hop.to, goal) {
            if costs { open.push_back((hop.to, distance)) } else { open.push_front((hop.to, distance)) }
        }
    }
}
