//! What is wrong with scripts.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub line: usize,
    pub column: usize,
    /// The script itself, or the number of one that it includes.
    pub(crate) file: u16,
}

/// What is wrong with a script, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}line {}, column {}: expected {expected}, found {found}", in_file(file.as_deref()), place.line, place.column)]
pub struct ScriptError {
    /// An included script; `None` in the script itself.
    pub file: Option<String>,
    pub place: Place,
    pub expected: String,
    pub found: String,
}

fn in_file(file: Option<&str>) -> String {
    file.map(|file| format!("{file}: ")).unwrap_or_default()
}
