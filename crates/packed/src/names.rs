//! What the numbers of a trace stand for.

use crate::event::Space;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The names of one space, one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Table {
    bytes: Vec<u8>,
    /// Where each name ends.
    ends: Vec<u64>,
}

/// One table for each space. A number without a name is called by its space's letter and itself.
/// Cost: eight bytes a name, and the name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    tables: [Table; Space::COUNT],
}

impl Names {
    /// How many numbers have a name: those below.
    pub fn count(&self, space: Space) -> u32 {
        self.tables[space as usize].ends.len() as u32
    }

    /// Bytes of all names of the space together.
    pub fn size(&self, space: Space) -> usize {
        self.tables[space as usize].bytes.len()
    }

    /// The next number's name.
    pub fn push(&mut self, space: Space, name: &str) {
        self.push_bytes(space, name.as_bytes());
    }

    /// Foreign names need not be UTF-8.
    pub fn push_bytes(&mut self, space: Space, name: &[u8]) {
        let table = &mut self.tables[space as usize];
        assert!(table.ends.len() < u32::MAX as usize, "numbers have 32 bits");
        table.bytes.extend_from_slice(name);
        table.ends.push(table.bytes.len() as u64);
    }

    /// Gives numbers other names; those in between that have none get what they are called by.
    pub fn replace(&mut self, space: Space, names: &BTreeMap<u32, String>) {
        let Some((last, _)) = names.last_key_value() else { return };
        let old = self.clone();
        self.tables[space as usize] = Table::default();
        for number in 0..old.count(space).max(last + 1) {
            match names.get(&number) {
                Some(name) => self.push(space, name),
                None => self.push_bytes(space, old.bytes(space, number).unwrap_or(old.get(space, number).as_bytes())),
            }
        }
    }

    /// The name as it stands in the file, if it has one.
    pub fn bytes(&self, space: Space, number: u32) -> Option<&[u8]> {
        let table = &self.tables[space as usize];
        let end = *table.ends.get(number as usize)? as usize;
        let start = if number == 0 { 0 } else { table.ends[number as usize - 1] as usize };
        Some(&table.bytes[start..end])
    }

    pub fn get(&self, space: Space, number: u32) -> Cow<'_, str> {
        match self.bytes(space, number) {
            Some(name) => String::from_utf8_lossy(name),
            None => Cow::Owned(format!("{}{number}", space.letter())),
        }
    }
}
