//! The environment of the commands that a store comes from, by which a replay that goes wrong can tell what is different now.
//!
//! Values may be secrets and stores are given away, so a value is kept as sixteen bits of a hash: enough to see that it changed,
//! and too few to find out what it was.

use rashomon_abi::numbers::Fnv;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

/// Variables that differ from shell to shell, and that no program is known to be steered by.
const CHANGING: [&str; 9] = ["_", "COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "TERM", "WINDOWID", "XDG_SESSION_ID"];
/// Variables of an environment that are kept.
const MOST: usize = 4096;
/// Names that are told.
const TOLD: usize = 8;

/// Names of variables, and marks of their values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Surroundings(BTreeMap<String, u16>);

impl Surroundings {
    /// Of this process.
    pub fn now() -> Self {
        Self::of(std::env::vars_os())
    }

    fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let kept = variables.into_iter().filter_map(|(name, value)| {
            let name = name.into_string().ok().filter(|name| !CHANGING.contains(&name.as_str()))?;
            Some((name, mark(&value)))
        });
        Self(kept.take(MOST).collect())
    }

    pub fn is_unknown(&self) -> bool {
        self.0.is_empty()
    }

    /// How `now` differs, in words; `None`: it does not, or nothing is known of what was.
    pub fn difference(&self, now: &Self) -> Option<String> {
        if self.is_unknown() {
            return None;
        }
        let gone = self.0.iter().filter(|(name, _)| !now.0.contains_key(*name)).map(|(name, _)| format!("{name} was set then"));
        let new = now.0.iter().filter_map(|(name, mark)| match self.0.get(name) {
            None => Some(format!("{name} was not set then")),
            Some(then) if then != mark => Some(format!("{name} had another value then")),
            Some(_) => None,
        });
        let mut all: Vec<String> = gone.chain(new).collect();
        let more = all.len().saturating_sub(TOLD);
        all.truncate(TOLD);
        if more > 0 {
            all.push(format!("{more} more differ"));
        }
        (!all.is_empty()).then(|| all.join(", "))
    }
}

fn mark(value: &OsStr) -> u16 {
    let Fnv(hash) = Fnv::EMPTY.with(value.as_bytes());
    (hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Surroundings {
        Surroundings::of(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())))
    }

    #[test]
    fn what_differs_is_told_by_name() {
        let then = of(&[("THREADS", "4"), ("HOME", "/root"), ("MODE", "fast"), ("PWD", "/a")]);
        assert_eq!(then.difference(&of(&[("THREADS", "4"), ("HOME", "/root"), ("MODE", "fast"), ("PWD", "/b")])), None);
        let now = of(&[("HOME", "/root"), ("MODE", "slow"), ("SEED", "1")]);
        let words = "THREADS was set then, MODE had another value then, SEED was not set then";
        assert_eq!(then.difference(&now).as_deref(), Some(words));
        assert_eq!(Surroundings::default().difference(&now), None);
    }

    #[test]
    fn no_value_is_in_the_file() {
        let text = serde_json::to_string(&of(&[("TOKEN", "swordfish")])).unwrap();
        assert!(text.contains("TOKEN") && !text.contains("swordfish"), "{text}");
    }
}
