//! What is claimed, how often it was looked at, and how often it did not hold.

use crate::common::bar::Bar;
use serde::Serialize;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Claim {
    pub name: &'static str,
    pub checked: u64,
    pub failed: u64,
    /// The first case in which it did not hold.
    pub example: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Claims(pub Vec<Claim>);

impl Claims {
    fn of(&mut self, name: &'static str) -> &mut Claim {
        let place = self.0.iter().position(|claim| claim.name == name).unwrap_or_else(|| {
            self.0.push(Claim { name, ..Claim::default() });
            self.0.len() - 1
        });
        &mut self.0[place]
    }

    pub fn claim(&mut self, name: &'static str, holds: bool, example: impl FnOnce() -> String) {
        let claim = self.of(name);
        claim.checked += 1;
        if !holds {
            claim.failed += 1;
            claim.example.get_or_insert_with(example);
        }
    }

    /// It holds if it was looked at, and held each time.
    pub fn bar(&self, name: &'static str) -> Bar {
        let claim = self.0.iter().find(|claim| claim.name == name).cloned().unwrap_or_default();
        let found = match claim.checked {
            0 => "not judged".to_owned(),
            checked => format!("{} of {checked}", checked - claim.failed),
        };
        Bar::holds(name, claim.checked > 0 && claim.failed == 0, found)
    }

    pub fn add(&mut self, other: Self) {
        for claim in other.0 {
            let known = self.of(claim.name);
            known.checked += claim.checked;
            known.failed += claim.failed;
            known.example = known.example.take().or(claim.example);
        }
    }
}
