//! Sets that merge (union-find), with data at the root of each, and numbers that are used again.
//!
//! Numbers are freed by a *sweep*: whoever holds numbers replaces each by its root and marks it, then all others are free. So
//! the forest never has more members than twice what was held at the last sweep, plus a constant.

use std::marker::PhantomData;

/// A number of something in a table, and small in an `Option`.
pub(crate) trait Id: Copy + Eq {
    fn at(index: usize) -> Self;
    fn index(self) -> usize;
}

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) struct $name(std::num::NonZeroU32);

        impl Id for $name {
            fn at(index: usize) -> Self {
                let number = u32::try_from(index + 1).ok().and_then(std::num::NonZeroU32::new);
                $name(number.expect("the limits keep every table below four thousand million entries"))
            }

            fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }
    )*};
}

id! {
    /// A computational unit.
    UnitId;
    /// A correlated set.
    SetId;
    /// Bytes that have the same history.
    LocationId;
    /// What a thread knows and holds between two synchronisation operations.
    MomentId;
}

/// Which numbers are still in use.
pub(crate) struct Marks<I> {
    marked: Vec<bool>,
    of: PhantomData<I>,
}

impl<I: Id> Marks<I> {
    pub fn new(len: usize) -> Self {
        Marks { marked: vec![false; len], of: PhantomData }
    }

    pub fn mark(&mut self, id: I) {
        self.marked[id.index()] = true;
    }

    pub fn has(&self, id: I) -> bool {
        self.marked.get(id.index()).copied().unwrap_or(false)
    }
}

struct Node<T> {
    parent: u32,
    /// How many were merged into it.
    weight: u32,
    free: bool,
    data: T,
}

pub(crate) struct Forest<I, T> {
    nodes: Vec<Node<T>>,
    free: Vec<u32>,
    /// In use after the last sweep.
    kept: usize,
    of: PhantomData<I>,
}

impl<I: Id, T: Default> Forest<I, T> {
    pub fn new() -> Self {
        Forest { nodes: Vec::new(), free: Vec::new(), kept: 0, of: PhantomData }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn in_use(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    pub fn add(&mut self, data: T) -> I {
        let index = self.free.pop().map_or(self.nodes.len(), |index| index as usize);
        let node = Node { parent: index as u32, weight: 1, free: false, data };
        if index == self.nodes.len() {
            self.nodes.push(node);
        } else {
            self.nodes[index] = node;
        }
        I::at(index)
    }

    pub fn find(&mut self, id: I) -> I {
        let mut index = id.index();
        loop {
            let parent = self.nodes[index].parent as usize;
            if parent == index {
                return I::at(index);
            }
            let above = self.nodes[parent].parent;
            self.nodes[index].parent = above;
            index = above as usize;
        }
    }

    /// [`Forest::find`] without shortening paths.
    pub fn root(&self, id: I) -> I {
        let mut index = id.index();
        while self.nodes[index].parent as usize != index {
            index = self.nodes[index].parent as usize;
        }
        I::at(index)
    }

    pub fn get(&self, id: I) -> &T {
        &self.nodes[self.root(id).index()].data
    }

    pub fn get_mut(&mut self, id: I) -> &mut T {
        let root = self.find(id).index();
        &mut self.nodes[root].data
    }

    /// Merges two; the one that remains, the one that does not, and the latter's data. `None` if they are one already.
    pub fn merge(&mut self, one: I, other: I) -> Option<(I, I, T)> {
        let (one, other) = (self.find(one), self.find(other));
        if one == other {
            return None;
        }
        let heavier = self.nodes[one.index()].weight >= self.nodes[other.index()].weight;
        let (into, from) = if heavier { (one, other) } else { (other, one) };
        let weight = self.nodes[from.index()].weight;
        self.nodes[into.index()].weight = self.nodes[into.index()].weight.saturating_add(weight);
        self.nodes[from.index()].parent = into.index() as u32;
        let data = std::mem::take(&mut self.nodes[from.index()].data);
        Some((into, from, data))
    }

    pub fn wants_sweep(&self, least: usize) -> bool {
        self.in_use() > least.max(2 * self.kept)
    }

    /// Frees what is not marked. Only roots may be marked, and only marked numbers may be used afterwards.
    pub fn sweep(&mut self, marks: &Marks<I>) {
        for index in 0..self.nodes.len() {
            let node = &mut self.nodes[index];
            if node.free {
                continue;
            }
            if marks.has(I::at(index)) {
                debug_assert_eq!(node.parent as usize, index, "only roots are kept");
                node.weight = 1;
            } else {
                node.free = true;
                node.data = T::default();
                self.free.push(index as u32);
            }
        }
        self.kept = self.in_use();
    }
}
