//! What the numbers of a trace stand for.

use crate::event::Space;

/// One table for each space. A number without a name is called by its space's letter and itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    tables: [Vec<String>; 6],
}

impl Names {
    pub fn all(&self, space: Space) -> &[String] {
        &self.tables[space as usize]
    }

    /// The next number's name.
    pub fn push(&mut self, space: Space, name: String) {
        self.tables[space as usize].push(name);
    }

    pub fn get(&self, space: Space, number: u32) -> String {
        let letter = match space {
            Space::Thread => 'T',
            Space::Variable => 'V',
            Space::Lock => 'L',
            Space::Region => 'R',
            Space::Object => 'O',
            Space::Location => 'P',
        };
        self.all(space).get(number as usize).cloned().unwrap_or_else(|| format!("{letter}{number}"))
    }
}
