//! What a walk through a recording found, and what it left out.

use rashomon_units::Line;

/// What was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    pub activations: u64,
    pub segments: u64,
    /// Accesses that have their place in a table.
    pub placed: u64,
    /// Accesses of code without tables.
    pub outside: u64,
    /// Accesses in tables that the recording does not have.
    pub unseen: u64,
    /// Activations that were left in another way than by a return.
    pub left: u64,
    /// Records that fit no activation.
    pub misfits: u64,
    /// Of each place in the code, whether it has accesses that are placed, and such that are outside.
    places: Vec<[bool; 2]>,
}

impl Walked {
    /// An access at this place is, or is not, one that a table has.
    pub(crate) fn saw(&mut self, line: Line, is_outside: bool) {
        let at = line.0 as usize;
        if self.places.len() <= at {
            self.places.resize(at + 1, [false; 2]);
        }
        self.places[at][usize::from(is_outside)] = true;
    }

    /// Places in the code of accesses, and whether tables have none of what is accessed there.
    pub fn places(&self) -> impl Iterator<Item = (Line, bool)> {
        let seen = self.places.iter().enumerate().filter(|(_, [placed, outside])| *placed || *outside);
        seen.map(|(line, [placed, _])| (Line(line as u32), !placed))
    }
}
