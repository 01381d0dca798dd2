//! Blocks of a heap that were given back and are held, oldest first: a ring of them, and a table of their addresses.
//!
//! Bounds. At most as many blocks as the ring has places, and as many bytes as are allowed: whoever adds one takes the oldest out
//! until it [fits](Quarantine::fits). A block larger than all that is allowed fits never.
//!
//! The table is one of open addresses with linear probing, of which entries are taken out by moving back what follows them (D.
//! Knuth, The Art of Computer Programming, volume 3, 2nd edition 1998, §6.4, algorithm R). Only a beginning of it is used as
//! long as few blocks are held: each of its pages that is touched costs a short execution as much as some of its steps.

/// A place of the ring. Address 0: what was here was taken out of turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub address: u64,
    /// Bytes that it counts as.
    pub bytes: u32,
    /// It is a mapping of its own.
    pub is_mapping: bool,
}

/// What is held now.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Number of the oldest place, and of the next free one; they only grow.
    oldest: u64,
    next: u64,
    bytes: u64,
    /// Entries of the table that are used, if it has so many: a power of two.
    used: usize,
}

/// Entries of the table that are used at first: a page.
const FEW: usize = 512;
/// How much longer it gets at once.
const GROWTH: usize = 4;

impl State {
    pub const NOTHING: Self = Self { oldest: 0, next: 0, bytes: 0, used: FEW };
}

/// The three together. The ring's length is a power of two, the table's twice that; both begin as zeros.
#[derive(Debug)]
pub struct Quarantine<'m> {
    pub ring: &'m mut [Held],
    /// Number of a place, plus 1; 0: nothing.
    pub table: &'m mut [u64],
    pub state: &'m mut State,
}

impl Quarantine<'_> {
    /// Whether so many bytes more may be held.
    pub const fn fits(&self, bytes: u32, most: u32) -> bool {
        let (bytes, most) = (bytes as u64, most as u64);
        self.state.next - self.state.oldest < self.ring.len() as u64 && bytes <= most && self.state.bytes <= most - bytes
    }

    /// Adds a block that fits and is not held.
    pub fn hold(&mut self, block: Held) {
        debug_assert!(block.address != 0 && !self.holds(block.address));
        if (self.state.next - self.state.oldest) as usize * 2 >= self.used() && self.used() < self.table.len() {
            self.grow();
        }
        let number = self.state.next;
        self.state.next += 1;
        self.state.bytes += u64::from(block.bytes);
        let place = self.place(number);
        self.ring[place] = block;
        let at = self.find(block.address);
        self.table[at] = number + 1;
    }

    pub fn holds(&self, address: u64) -> bool {
        self.table[self.find(address)] != 0
    }

    /// Takes the oldest block out.
    pub fn release_oldest(&mut self) -> Option<Held> {
        while self.state.oldest < self.state.next {
            let block = self.ring[self.place(self.state.oldest)];
            if block.address != 0 {
                return self.release(block.address);
            }
            self.state.oldest += 1;
        }
        None
    }

    /// Takes a block out, if it is held.
    pub fn release(&mut self, address: u64) -> Option<Held> {
        let at = self.find(address);
        let number = self.table[at].checked_sub(1)?;
        let place = self.place(number);
        let block = self.ring[place];
        self.state.bytes -= u64::from(block.bytes);
        self.remove(at);
        self.ring[place] = Held::default();
        if number == self.state.oldest {
            self.state.oldest += 1;
        }
        Some(block)
    }

    fn used(&self) -> usize {
        self.state.used.min(self.table.len())
    }

    /// More of the table is used: all that is held gets another entry.
    fn grow(&mut self) {
        let used = self.used();
        self.table[..used].fill(0);
        self.state.used = used * GROWTH;
        for number in self.state.oldest..self.state.next {
            let address = self.ring[self.place(number)].address;
            if address != 0 {
                let at = self.find(address);
                self.table[at] = number + 1;
            }
        }
    }

    const fn place(&self, number: u64) -> usize {
        number as usize & (self.ring.len() - 1)
    }

    fn home(&self, address: u64) -> usize {
        let mixed = (address >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (self.used() - 1)
    }

    fn address_at(&self, at: usize) -> u64 {
        self.table[at].checked_sub(1).map_or(0, |number| self.ring[self.place(number)].address)
    }

    /// Where the address is in the table, or the free place where it belongs.
    fn find(&self, address: u64) -> usize {
        let mut at = self.home(address);
        while self.table[at] != 0 && self.address_at(at) != address {
            at = self.after(at);
        }
        at
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.used() - 1)
    }

    /// Empties a place of the table, and moves back what could not be found any more behind an empty one.
    fn remove(&mut self, mut hole: usize) {
        let mut at = hole;
        loop {
            at = self.after(at);
            if self.table[at] == 0 {
                break;
            }
            let home = self.home(self.address_at(at));
            let mask = self.used() - 1;
            // How far each is behind the home.
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.table[hole] = self.table[at];
                hole = at;
            }
        }
        self.table[hole] = 0;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::VecDeque;
    use std::vec;
    use std::vec::Vec;

    struct Memory {
        ring: Vec<Held>,
        table: Vec<u64>,
        state: State,
    }

    impl Memory {
        fn of(places: usize) -> Self {
            Self { ring: vec![Held::default(); places], table: vec![0; 2 * places], state: State::NOTHING }
        }

        fn all(&mut self) -> Quarantine<'_> {
            Quarantine { ring: &mut self.ring, table: &mut self.table, state: &mut self.state }
        }
    }

    /// Against a queue that is searched from end to end.
    fn holds_what_a_queue_holds(places: usize, addresses: u64, most: u32, (seeds, steps): (u64, usize)) {
        for seed in 1..seeds {
            let (mut memory, mut model) = (Memory::of(places), VecDeque::<Held>::new());
            let mut random = seed.wrapping_mul(0x2545_f491_4f6c_dd1d);
            for _ in 0..steps {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let block = Held {
                    address: 16 * (1 + (random >> 40) % addresses),
                    bytes: 1 + (random >> 50) as u32 % 5,
                    is_mapping: random >> 63 == 1,
                };
                let mut held = memory.all();
                assert_eq!(held.holds(block.address), model.iter().any(|other| other.address == block.address));
                match model.iter().position(|other| other.address == block.address) {
                    Some(at) => {
                        assert_eq!(held.release(block.address), model.remove(at));
                    }
                    None => {
                        assert_eq!(held.release(block.address), None);
                        while !held.fits(block.bytes, most) {
                            assert_eq!(held.release_oldest(), model.pop_front());
                        }
                        held.hold(block);
                        model.push_back(block);
                    }
                }
                assert!(model.iter().all(|other| held.holds(other.address)));
                assert_eq!(memory.state.bytes, model.iter().map(|other| u64::from(other.bytes)).sum::<u64>());
            }
            let all: Vec<Held> = std::iter::from_fn(|| memory.all().release_oldest()).collect();
            assert_eq!(all, Vec::from(model));
            assert!(memory.table.iter().all(|&entry| entry == 0));
        }
    }

    /// Few addresses, so that many of them share a home.
    #[test]
    fn it_holds_what_a_plain_queue_holds() {
        holds_what_a_queue_holds(8, 12, 14, (40, 400));
    }

    #[test]
    fn it_holds_as_much_when_more_of_the_table_is_used() {
        holds_what_a_queue_holds(2048, 3000, 4000, (3, 6000));
    }

    #[test]
    fn what_is_larger_than_all_that_is_allowed_never_fits() {
        let mut memory = Memory::of(8);
        assert!(!memory.all().fits(15, 14) && memory.all().fits(14, 14));
        assert_eq!(memory.all().release_oldest(), None);
    }
}
