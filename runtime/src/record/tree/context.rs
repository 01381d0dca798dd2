//! Γ of one thread: outgoing events, which of them are dead, and the path of the locks held (`crates/filter/src/context.rs`
//! is the same in plain words).

use crate::system::memory::{List, Map};
use rashomon_logic::sent::Sent;

/// A held lock, in the order of acquisition.
#[derive(Clone, Copy)]
pub struct Step {
    lock: u32,
    shared: bool,
    /// The path up to here.
    pub node: u32,
}

/// All zero: a thread that has done nothing yet.
pub struct Contexts {
    path: List<Step>,
    /// (path, lock and mode) → longer path.
    nodes: Map,
    node_count: u32,
    outgoing: u32,
    sent: Sent<MOST_PENDING>,
}

/// Nodes have 16 bits.
const MOST_NODES: u32 = (1 << 16) - 1;
/// Mutexes that may be released and not acquired again.
const MOST_PENDING: usize = 256;

impl Contexts {
    pub fn path(&self) -> &[Step] {
        self.path.as_slice()
    }

    /// Of all locks held.
    pub fn node(&self) -> u32 {
        self.path().last().map_or(0, |step| step.node)
    }

    pub fn outgoing(&self) -> u32 {
        self.outgoing
    }

    /// The highest number of an outgoing event that is not dead.
    pub fn alive(&self) -> u32 {
        self.sent.alive()
    }

    /// Nothing more can be told apart before everything is forgotten.
    pub fn is_full(&self) -> bool {
        self.node_count >= MOST_NODES || self.outgoing == u32::MAX
    }

    /// Paths and numbers begin anew; there is no history that knows the old ones.
    pub fn forget_paths(&mut self) {
        self.nodes.clear_and_free();
        self.node_count = 0;
        self.find_nodes(0);
        if self.outgoing == u32::MAX {
            self.outgoing = 1;
            self.sent = Sent::new();
            self.sent.send(1);
        }
    }

    /// Names the paths from a place on.
    fn find_nodes(&mut self, from: usize) {
        for at in from..self.path.len() {
            let parent = at.checked_sub(1).map_or(0, |before| self.path.as_slice()[before].node);
            let step = &mut self.path.as_mut_slice()[at];
            let node = self.nodes.entry((parent as u64 + 1, (step.lock as u64) << 1 | step.shared as u64));
            if *node == 0 {
                // Beyond the limit the last path stands for several; nothing is noted before all is forgotten.
                self.node_count = (self.node_count + 1).min(MOST_NODES);
                *node = self.node_count as u64;
            }
            step.node = *node as u32;
        }
    }

    /// An outgoing event that others may receive from at any time.
    pub fn send(&mut self) {
        self.outgoing = self.outgoing.saturating_add(1);
        self.sent.send(self.outgoing);
    }

    /// `alone`: nobody else acquired the lock since this thread last did.
    pub fn acquire(&mut self, (lock, alone): (u32, bool), shared: bool) {
        self.path.push(Step { lock, shared, node: 0 });
        self.find_nodes(self.path.len() - 1);
        self.sent.acquire(lock, !shared, |_| alone);
    }

    pub fn release(&mut self, lock: u32, shared: bool) {
        if let Some(at) = self.path().iter().rposition(|step| step.lock == lock && step.shared == shared) {
            self.path.remove(at);
            self.find_nodes(at);
        }
        self.outgoing = self.outgoing.saturating_add(1);
        self.sent.release(lock, self.outgoing);
    }

    pub fn end(&mut self) {
        self.path.clear_and_free();
        self.nodes.clear_and_free();
        (self.node_count, self.outgoing) = (0, 0);
        self.sent = Sent::new();
    }
}
