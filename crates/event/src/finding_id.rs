//! Names of findings. They become file names, words of commands and lines of reports, so nothing else passes for one.

use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

/// Letters, digits and single hyphens between them: `race-3f2a91c4`. It can be joined to a path and needs no quotes in a shell.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FindingId(String);

/// Why a text is no [`FindingId`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoFindingId {
    text: String,
}

impl FindingId {
    /// No longer text is one.
    pub const LONGEST: usize = 64;

    pub fn new(text: impl Into<String>) -> Result<Self, NoFindingId> {
        let text = text.into();
        let word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        match text.len() <= Self::LONGEST && text.split('-').all(word) {
            true => Ok(Self(text)),
            false => Err(NoFindingId { text }),
        }
    }

    /// The kind's word and a hash.
    ///
    /// # Panics
    /// Where the word is not made of lower-case letters and hyphens between them.
    pub fn of(word: &'static str, hash: u32) -> Self {
        Self::new(format!("{word}-{hash:08x}")).expect("the words of kinds are letters and hyphens")
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NoFindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start: String = self.text.chars().take(FindingId::LONGEST).collect();
        write!(
            f,
            "`{}` is no id of a finding: only lower-case letters, digits and hyphens between them are",
            crate::harmless(&start)
        )
    }
}

impl std::error::Error for NoFindingId {}

impl TryFrom<String> for FindingId {
    type Error = NoFindingId;
    fn try_from(text: String) -> Result<Self, NoFindingId> {
        Self::new(text)
    }
}

impl From<FindingId> for String {
    fn from(id: FindingId) -> Self {
        id.0
    }
}

impl Deref for FindingId {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for FindingId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for FindingId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for FindingId {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for FindingId {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Display for FindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_words_are_ids() {
        for good in ["race-3f2a91c4", "double-lock-00000000", "race", "a-1"] {
            assert_eq!(FindingId::new(good).map(String::from), Ok(good.to_owned()));
        }
        let long = "a".repeat(FindingId::LONGEST + 1);
        let bad =
            ["", "-", "race-", "-race", "a--b", ".", "..", "../x", "/x", "a/b", "Race", "a b", "a\nb", "ä", "a\0", long.as_str()];
        for bad in bad {
            assert!(FindingId::new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(FindingId::of("race", 7), "race-00000007");
    }
}
