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

/// Parents lie apart from the data, so that the way to a root does not lead through it.
pub(crate) struct Forest<I, T> {
    parents: Vec<u32>,
    /// How many were merged into it; 0: free.
    weights: Vec<u32>,
    data: Vec<T>,
    free: Vec<u32>,
    /// In use after the last sweep.
    kept: usize,
    of: PhantomData<I>,
}

impl<I: Id, T: Default> Forest<I, T> {
    pub fn new() -> Self {
        let (parents, weights, data, free) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Forest { parents, weights, data, free, kept: 0, of: PhantomData }
    }

    pub fn len(&self) -> usize {
        self.parents.len()
    }

    pub fn in_use(&self) -> usize {
        self.parents.len() - self.free.len()
    }

    pub fn add(&mut self, data: T) -> I {
        if let Some(index) = self.free.pop() {
            let at = index as usize;
            (self.parents[at], self.weights[at], self.data[at]) = (index, 1, data);
            return I::at(at);
        }
        let index = self.parents.len();
        self.parents.push(index as u32);
        self.weights.push(1);
        self.data.push(data);
        I::at(index)
    }

    #[inline]
    pub fn find(&mut self, id: I) -> I {
        let mut index = id.index();
        loop {
            let parent = self.parents[index] as usize;
            if parent == index {
                return I::at(index);
            }
            let above = self.parents[parent];
            self.parents[index] = above;
            index = above as usize;
        }
    }

    /// [`Forest::find`] without shortening paths.
    #[inline]
    pub fn root(&self, id: I) -> I {
        let mut index = id.index();
        while self.parents[index] as usize != index {
            index = self.parents[index] as usize;
        }
        I::at(index)
    }

    #[inline]
    pub fn get(&self, id: I) -> &T {
        &self.data[self.root(id).index()]
    }

    #[inline]
    pub fn get_mut(&mut self, id: I) -> &mut T {
        let root = self.find(id).index();
        &mut self.data[root]
    }

    /// Merges two; the one that remains, the one that does not, and the latter's data. `None` if they are one already.
    pub fn merge(&mut self, one: I, other: I) -> Option<(I, I, T)> {
        let (one, other) = (self.find(one), self.find(other));
        if one == other {
            return None;
        }
        let heavier = self.weights[one.index()] >= self.weights[other.index()];
        let (into, from) = if heavier { (one, other) } else { (other, one) };
        let weight = self.weights[from.index()];
        self.weights[into.index()] = self.weights[into.index()].saturating_add(weight);
        self.parents[from.index()] = into.index() as u32;
        let data = std::mem::take(&mut self.data[from.index()]);
        Some((into, from, data))
    }

    pub fn wants_sweep(&self, least: usize) -> bool {
        self.in_use() > least.max(2 * self.kept)
    }

    /// Frees what is not marked. Only roots may be marked, and only marked numbers may be used afterwards.
    pub fn sweep(&mut self, marks: &Marks<I>) {
        for index in 0..self.parents.len() {
            if self.weights[index] == 0 {
                continue;
            }
            if marks.has(I::at(index)) {
                debug_assert_eq!(self.parents[index] as usize, index, "only roots are kept");
                self.weights[index] = 1;
            } else {
                self.weights[index] = 0;
                self.data[index] = T::default();
                self.free.push(index as u32);
            }
        }
        self.kept = self.in_use();
    }
}
