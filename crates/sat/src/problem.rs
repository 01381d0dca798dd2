//! What is asked: clauses, nodes in chains, edges. Data only, without an opinion on how it is solved.

use crate::literal::{Literal, Variable};

/// Something that has a place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub u32);

impl Node {
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A list of nodes that is ordered as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chain(pub u32);

/// `from` comes before `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    pub from: Node,
    pub to: Node,
}

/// A node's chain, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub chain: Chain,
    pub index: u32,
}

/// A conjunction of clauses and edges. It only grows.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    variables: u32,
    clauses: Vec<Vec<Literal>>,
    places: Vec<Place>,
    chains: Vec<Vec<Node>>,
    fixed: Vec<Edge>,
    conditional: Vec<(Literal, Edge)>,
}

impl Problem {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn variable(&mut self) -> Variable {
        assert!(self.variables < u32::MAX >> 1, "a literal has 32 bits");
        self.variables += 1;
        Variable(self.variables - 1)
    }

    /// At least one of the literals holds.
    pub fn clause(&mut self, literals: &[Literal]) {
        assert!(literals.iter().all(|literal| literal.variable().0 < self.variables), "a variable of another problem");
        self.clauses.push(literals.to_vec());
    }

    /// A new chain, empty.
    pub fn chain(&mut self) -> Chain {
        self.chains.push(Vec::new());
        Chain(self.chains.len() as u32 - 1)
    }

    /// A new node at the end of a chain.
    pub fn node(&mut self, chain: Chain) -> Node {
        let node = Node(self.places.len() as u32);
        let nodes = &mut self.chains[chain.0 as usize];
        self.places.push(Place { chain, index: nodes.len() as u32 });
        nodes.push(node);
        node
    }

    /// `from` comes before `to`.
    pub fn edge(&mut self, from: Node, to: Node) {
        self.assert_known(from, to);
        self.fixed.push(Edge { from, to });
    }

    /// If the literal holds, `from` comes before `to`. A literal may have any number of edges.
    pub fn edge_if(&mut self, literal: Literal, from: Node, to: Node) {
        self.assert_known(from, to);
        assert!(literal.variable().0 < self.variables, "a variable of another problem");
        self.conditional.push((literal, Edge { from, to }));
    }

    /// A new literal that holds if `from` comes before `to`, and otherwise `to` comes before `from`.
    pub fn before(&mut self, from: Node, to: Node) -> Literal {
        let literal = self.variable().positive();
        self.edge_if(literal, from, to);
        self.edge_if(!literal, to, from);
        literal
    }

    fn assert_known(&self, from: Node, to: Node) {
        assert!(from.index().max(to.index()) < self.places.len(), "a node of another problem");
    }

    pub fn variables(&self) -> usize {
        self.variables as usize
    }

    pub fn clauses(&self) -> &[Vec<Literal>] {
        &self.clauses
    }

    pub fn nodes(&self) -> usize {
        self.places.len()
    }

    pub fn chains(&self) -> &[Vec<Node>] {
        &self.chains
    }

    pub fn place(&self, node: Node) -> Place {
        self.places[node.index()]
    }

    /// Edges that always hold, those of chains apart.
    pub fn fixed(&self) -> &[Edge] {
        &self.fixed
    }

    /// Edges that hold if their literal does.
    pub fn conditional(&self) -> &[(Literal, Edge)] {
        &self.conditional
    }
}
