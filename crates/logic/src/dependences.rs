//! Items of OpenMP's `depend`: which tasks they order.

/// What a task says that it does with what it names in `depend`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Reads,
    /// `inoutset`: in any order with others of the kind.
    Joins,
    Writes,
}

/// An item of `depend`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    pub address: u64,
    pub uses: Use,
}

/// The address of `omp_all_memory`, which every other one lies in.
pub const ALL_MEMORY: u64 = 0;

impl Item {
    /// Whether tasks that name these are ordered.
    pub fn orders(self, other: Self) -> bool {
        let meet = self.address == other.address || self.address == ALL_MEMORY || other.address == ALL_MEMORY;
        meet && (self.uses != other.uses || self.uses == Use::Writes)
    }

    /// Whether who is ordered behind this one is so behind all that the other one orders.
    pub fn stands_for(self, other: Self) -> bool {
        self.uses == Use::Writes && (self.address == other.address || self.address == ALL_MEMORY)
    }
}
