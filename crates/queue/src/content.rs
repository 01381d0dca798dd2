//! Contents, named by their hashes.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// SHA-256, in hexadecimal digits. Safe as the name of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Hash(String);

impl Hash {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Hash {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if digits && text.len() == 64 { Ok(Self(text)) } else { Err("no hash: it has not 64 hexadecimal digits") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_names_of_files() {
        assert!(Hash::of(b"").as_str().starts_with("e3b0c442"));
        for text in ["", "../x", &"A".repeat(64), &"a".repeat(65)] {
            assert!(Hash::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
