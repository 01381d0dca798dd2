//! `--only PART`: what an evaluation is restricted to. A part that no name contains chooses nothing, and bars asked of nothing
//! would all be met: that is an error.

use anyhow::{Result, bail};
use std::cell::{Cell, RefCell};

#[derive(Debug, Default)]
pub struct Only<'a> {
    part: Option<&'a str>,
    met: Cell<bool>,
    names: RefCell<Vec<String>>,
}

impl<'a> Only<'a> {
    pub fn of(part: Option<&'a str>) -> Self {
        Self { part, ..Self::default() }
    }

    /// Whether something of that name is to be measured.
    pub fn wants(&self, name: &str) -> bool {
        let wants = self.part.is_none_or(|part| name.contains(part));
        if wants {
            self.met.set(true);
        } else if !self.names.borrow().iter().any(|known| known == name) {
            self.names.borrow_mut().push(name.to_owned());
        }
        wants
    }

    /// Behind the last name: that one was wanted.
    pub fn check(&self) -> Result<()> {
        match self.part {
            Some(part) if !self.met.get() => {
                bail!("no name contains `{part}`; there are {}", self.names.borrow().join(", "))
            }
            _ if !self.met.get() => bail!("there is nothing to measure"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_no_name_is_an_error_that_lists_them() {
        let only = Only::of(Some("x"));
        assert!(!only.wants("one") && !only.wants("two") && !only.wants("one"));
        assert_eq!(only.check().unwrap_err().to_string(), "no name contains `x`; there are one, two");
        assert!(only.wants("three x") && only.check().is_ok());
        let all = Only::of(None);
        assert!(all.check().is_err() && all.wants("one") && all.check().is_ok());
    }
}
