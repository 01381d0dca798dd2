//! Vector clocks as trees, so that a join looks at little more than what it changes.
//!
//! Mathur, Pavlogiannis, Tunç, Viswanathan, "A Tree Clock Data Structure for Causal Orderings in Concurrent Executions", ASPLOS
//! 2022, Algorithm 2: a clock's entries are the nodes of a tree whose root is the thread that the clock is, or was, of; a node's
//! parent is the thread over which it was learnt, and its *attachment* the parent's time when that had learnt it. A join descends
//! only below entries that are news; of a node's children, the latest first, it stops at one that was attached before what is
//! known of the node, since then it and all that follow are known too. To copy a clock into one that it contains changes as
//! little (*monotone copy*).
//!
//! Deviations: (1) times are numbers of events ([`crate::clock`]), and are written to the root when the clock is passed on
//! instead of being counted up; (2) the entries are a row beside the tree, so that whoever compares epochs reads it like any
//! other; (3) a row without a tree is joined too: what is news in it becomes children of the root; (4) a copy that is not
//! monotone copies all.
//!
//! Guarantee: the rows are those of [`Flat`](crate::synchronisation::Flat) clocks. Cost: a join, and a monotone copy, are optimal
//! in sum: no more than a constant for each entry that any data structure must change; twelve bytes an entry beside the row. At
//! most 65 535 threads.

use crate::clock::{ALWAYS, Row, Rows, Time};

const NONE: u16 = u16::MAX;

/// An entry's place in the tree; children are in the order of attachment, the latest first.
#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u16,
    child: u16,
    next: u16,
    before: u16,
    attached: Time,
}

const APART: Node = Node { parent: NONE, child: NONE, next: NONE, before: NONE, attached: 0 };

/// Trees of equal width, by number.
#[derive(Clone, Debug, Default)]
pub struct Trees {
    rows: Rows,
    nodes: Vec<Node>,
    /// The thread that the clock is of; [`NONE`] while it knows nothing.
    roots: Vec<u16>,
    /// News of the latest join, parents behind their children.
    news: Vec<u16>,
    /// Nodes on the way down, each with the child that is next.
    path: Vec<(u16, u16)>,
}

impl Trees {
    pub fn count(&self) -> usize {
        self.rows.count()
    }

    /// A new one, before everything.
    pub fn push(&mut self) -> usize {
        let tree = self.rows.push();
        self.nodes.resize((tree + 1) * self.rows.width(), APART);
        self.roots.push(NONE);
        tree
    }

    /// A new one, of a thread that knows its own past and everything before `floor`.
    pub fn push_thread(&mut self, thread: u16, floor: Time) -> usize {
        let tree = self.push();
        self.roots[tree] = thread;
        self.rows.row_mut(tree).fill(floor);
        self.rows.row_mut(tree)[usize::from(thread)] = ALWAYS;
        tree
    }

    pub fn widen(&mut self, width: usize) {
        assert!(width <= usize::from(NONE) + 1, "a thread's number fits");
        let old = self.rows.width();
        if width <= old {
            return;
        }
        let mut nodes = vec![APART; self.count() * width];
        for (new, old) in nodes.chunks_exact_mut(width).zip(self.nodes.chunks_exact(old)) {
            new[..old.len()].copy_from_slice(old);
        }
        self.nodes = nodes;
        self.rows.widen(width);
    }

    #[inline]
    pub fn row(&self, tree: usize) -> &Row {
        self.rows.row(tree)
    }

    pub fn bytes(&self) -> usize {
        self.rows.bytes() + self.nodes.capacity() * size_of::<Node>()
    }

    /// Everything before `now` is known from here on, of all threads.
    pub fn raise(&mut self, tree: usize, now: Time) {
        self.rows.row_mut(tree).iter_mut().for_each(|time| *time = (*time).max(now));
    }

    fn node(&self, tree: usize, thread: u16) -> &Node {
        &self.nodes[tree * self.rows.width() + usize::from(thread)]
    }

    fn node_mut(&mut self, tree: usize, thread: u16) -> &mut Node {
        let width = self.rows.width();
        &mut self.nodes[tree * width + usize::from(thread)]
    }

    /// Without its children's links, which stay.
    fn detach(&mut self, tree: usize, thread: u16) {
        let Node { parent, next, before, .. } = *self.node(tree, thread);
        if parent == NONE {
            return;
        }
        match before {
            NONE => self.node_mut(tree, parent).child = next,
            before => self.node_mut(tree, before).next = next,
        }
        if next != NONE {
            self.node_mut(tree, next).before = before;
        }
        self.node_mut(tree, thread).parent = NONE;
    }

    fn attach(&mut self, tree: usize, thread: u16, parent: u16, attached: Time) {
        let next = std::mem::replace(&mut self.node_mut(tree, parent).child, thread);
        if next != NONE {
            self.node_mut(tree, next).before = thread;
        }
        let node = self.node_mut(tree, thread);
        (node.parent, node.next, node.before, node.attached) = (parent, next, NONE, attached);
    }

    /// What of the subtree of `from` is news to `into`, whose root, too, is among it wherever it is met. `time`: that of the root
    /// of `from`.
    fn gather(&mut self, into: usize, from: usize, time: Time, old_root: u16) {
        let mut news = std::mem::take(&mut self.news);
        let mut path = std::mem::take(&mut self.path);
        news.clear();
        let width = self.rows.width();
        let (known, told) = (self.rows.row(into), self.rows.row(from));
        let nodes = &self.nodes[from * width..][..width];
        let root = self.roots[from];
        debug_assert!(time > known[usize::from(root)], "there is news");
        path.push((root, nodes[usize::from(root)].child));
        while let Some((thread, child)) = path.last_mut() {
            let next = *child;
            if next == NONE {
                news.push(*thread);
                path.pop();
                continue;
            }
            let node = &nodes[usize::from(next)];
            *child = node.next;
            if known[usize::from(next)] < told[usize::from(next)] {
                path.push((next, node.child));
                continue;
            }
            if next == old_root {
                news.push(next);
            }
            if node.attached <= known[usize::from(*thread)] {
                *child = NONE;
            }
        }
        (self.news, self.path) = (news, path);
    }

    /// Puts what was gathered where it is in `from`.
    fn place(&mut self, into: usize, from: usize, time: Time) {
        let news = std::mem::take(&mut self.news);
        let root = self.roots[from];
        for &thread in &news {
            self.detach(into, thread);
        }
        for &thread in news.iter().rev() {
            let (parent, attached) = (self.node(from, thread).parent, self.node(from, thread).attached);
            let told = if thread == root { time } else { self.rows.row(from)[usize::from(thread)] };
            self.rows.row_mut(into)[usize::from(thread)] = told;
            if thread != root {
                self.attach(into, thread, parent, attached);
            }
        }
        self.news = news;
    }

    /// The thread's tree learns at `now` what the other knew, whose root's own time is `time`. Says whether that is news.
    pub fn join(&mut self, thread: usize, from: usize, time: Time, now: Time) -> bool {
        let (own, root) = (self.roots[thread], self.roots[from]);
        if root == NONE || root == own || self.rows.row(thread)[usize::from(root)] >= time {
            return false;
        }
        self.gather(thread, from, time, NONE);
        self.place(thread, from, time);
        self.attach(thread, root, own, now);
        true
    }

    /// The thread's tree learns at `now` what a row knows, one that is no tree's.
    pub fn join_row(&mut self, thread: usize, row: &Row, now: Time) {
        let own = self.roots[thread];
        for (other, &time) in row.iter().enumerate() {
            if time > self.rows.row(thread)[other] {
                self.rows.row_mut(thread)[other] = time;
                self.detach(thread, other as u16);
                self.attach(thread, other as u16, own, now);
            }
        }
    }

    /// The thread's tree learns at `now` of one entry.
    pub fn join_entry(&mut self, thread: usize, other: u16, time: Time, now: Time) {
        if time > self.rows.row(thread)[usize::from(other)] {
            self.rows.row_mut(thread)[usize::from(other)] = time;
            self.detach(thread, other);
            self.attach(thread, other, self.roots[thread], now);
        }
    }

    /// A tree becomes what the thread knows at `now`; `time` is what it was last given as that.
    pub fn copy(&mut self, into: usize, thread: usize, time: Time, now: Time) {
        let (old_root, root) = (self.roots[into], self.roots[thread]);
        let is_contained = old_root == root || old_root != NONE && self.rows.row(thread)[usize::from(old_root)] >= time;
        if is_contained {
            self.gather(into, thread, now, old_root);
            self.place(into, thread, now);
        } else {
            let width = self.rows.width();
            self.nodes.copy_within(thread * width..(thread + 1) * width, into * width);
            let (row, from) = self.rows.pair(into, thread);
            row.copy_from_slice(from);
            row[usize::from(root)] = now;
        }
        self.roots[into] = root;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every tree is one: each node that has a parent is reached from the root once, children in the order of attachment.
    fn check(trees: &Trees, tree: usize) {
        let (root, mut seen) = (trees.roots[tree], vec![false; trees.rows.width()]);
        let mut next = vec![root];
        while let Some(thread) = next.pop() {
            assert!(!std::mem::replace(&mut seen[usize::from(thread)], true), "reached twice");
            let (mut child, mut attached, mut before) = (trees.node(tree, thread).child, ALWAYS, NONE);
            while child != NONE {
                let node = trees.node(tree, child);
                assert!((node.parent, node.before) == (thread, before) && node.attached <= attached);
                next.push(child);
                (attached, before, child) = (node.attached, child, node.next);
            }
        }
        for thread in 0..trees.rows.width() as u16 {
            assert!(seen[usize::from(thread)] || trees.node(tree, thread).parent == NONE);
        }
    }

    const WIDTH: usize = 32;

    /// The same in rows.
    struct Both {
        trees: Trees,
        rows: Vec<Vec<Time>>,
        /// Who released a lock last, and when.
        released: Vec<Option<(usize, Time)>>,
        threads: usize,
    }

    impl Both {
        fn new(threads: usize, locks: usize) -> Self {
            let mut trees = Trees::default();
            trees.widen(WIDTH);
            let mut rows = vec![vec![0; WIDTH]; threads + locks];
            for (thread, row) in rows.iter_mut().enumerate().take(threads) {
                assert_eq!(trees.push_thread(thread as u16, 0), thread);
                row[thread] = ALWAYS;
            }
            (0..locks).for_each(|lock| assert_eq!(trees.push(), threads + lock));
            Self { trees, rows, released: vec![None; locks], threads }
        }

        fn join(&mut self, into: usize, row: &[Time]) {
            self.rows[into].iter_mut().zip(row).for_each(|(into, from)| *into = (*into).max(*from));
        }

        /// A release of a lock that was not taken before is a copy of everything.
        fn step(&mut self, choice: u8, thread: usize, lock: usize, now: Time) {
            let (thread, lock) = (thread % self.threads, lock % self.released.len());
            let (tree, other) = (self.threads + lock, (thread + 1) % self.threads);
            let mut own = self.rows[thread].clone();
            own[thread] = now;
            match (choice % 20, self.released[lock]) {
                (0..=8, released) => {
                    self.trees.copy(tree, thread, released.map_or(0, |(_, time)| time), now);
                    self.rows[tree] = own;
                    self.released[lock] = Some((thread, now));
                }
                (9..=16, Some((releaser, time))) => {
                    let news = self.rows[thread][releaser] < time;
                    assert_eq!(self.trees.join(thread, tree, time, now), news);
                    self.join(thread, &self.rows[tree].clone());
                }
                (17 | 18, _) => {
                    self.trees.join(other, thread, now, now);
                    self.join(other, &own);
                }
                (19, _) => {
                    let row = self.rows[tree].clone();
                    self.trees.join_row(thread, &row, now);
                    self.join(thread, &row);
                }
                _ => {}
            }
            for changed in [thread, tree, other] {
                assert_eq!(self.trees.row(changed), self.rows[changed], "event {now}");
                if self.trees.roots[changed] != NONE {
                    check(&self.trees, changed);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn trees_know_what_rows_know(
            threads in 2..WIDTH,
            locks in 1_usize..12,
            steps in prop::collection::vec((any::<u8>(), any::<usize>(), any::<usize>()), 1..400),
        ) {
            let mut both = Both::new(threads, locks);
            for ((choice, thread, lock), now) in steps.into_iter().zip(1..) {
                both.step(choice, thread, lock, now);
            }
        }
    }
}
