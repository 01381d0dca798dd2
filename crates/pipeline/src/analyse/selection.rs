//! Which code the accesses of a model are of: lists of functions and files, and lists of another tool.
//!
//! L. M. Carril, W. F. Tichy, "Interleaving Generation for Data Race and Deadlock Reproduction", SEPS 2015, §5: the model needs
//! to know only what each segment touches, so that plain accesses may be left out of it at no cost for the others.
//! Synchronisation stays whole, atomic accesses included.

use crate::findings::symbols::Symbols;
use rashomon_abi::pattern::matches;
use rashomon_event::{EventKind, Frame, OtherOp, Site, Trace};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Lines of a list.
const LINES: usize = 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected `FILE:LINE`, `fun:PATTERN` or `src:PATTERN`, found `{found}`")]
pub struct ListError {
    pub line: usize,
    pub found: String,
}

/// Patterns match parts of names, as those of suppressions do.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Functions and files whose accesses are looked at; empty: all.
    pub include: Vec<String>,
    /// Those whose accesses are not.
    pub exclude: Vec<String>,
    /// `None`: there is no list.
    pub listed: Option<Listed>,
}

/// Places that another analysis names, such as a static one.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    functions: Vec<String>,
    files: Vec<String>,
    /// By the last part of the file's name: whole names, as they are listed, and lines.
    lines: BTreeMap<String, BTreeSet<(String, u32)>>,
}

impl Listed {
    /// One place on a line; empty lines, and what follows `#` at the beginning of one, say nothing.
    pub fn read(text: &str) -> Result<Self, ListError> {
        let mut listed = Self::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            let wrong = || ListError { line: number + 1, found: line.chars().take(100).collect() };
            if number >= LINES {
                return Err(ListError { line: number + 1, found: format!("more than {LINES} lines") });
            }
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line.rsplit_once(':') {
                Some(("fun", pattern)) if !pattern.is_empty() => listed.functions.push(pattern.to_owned()),
                Some(("src", pattern)) if !pattern.is_empty() => listed.files.push(pattern.to_owned()),
                Some((file, line)) if !file.is_empty() => {
                    let line = line.parse().map_err(|_| wrong())?;
                    listed.lines.entry(last_part(file).to_owned()).or_default().insert((file.to_owned(), line));
                }
                _ => return Err(wrong()),
            }
        }
        Ok(listed)
    }

    fn names(&self, frame: &Frame) -> bool {
        let function = frame.function.as_deref().unwrap_or_default();
        let Some(file) = frame.file.as_deref() else { return any(&self.functions, function) };
        let of_file = self.lines.get(last_part(file)).into_iter().flatten();
        any(&self.functions, function)
            || any(&self.files, file)
            || frame.line.is_some_and(|line| of_file.into_iter().any(|(listed, at)| *at == line && same_file(file, listed)))
    }
}

fn last_part(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// Whether a listed name, from the root or from some folder, is that of the file.
fn same_file(file: &str, listed: &str) -> bool {
    file.strip_suffix(listed.trim_start_matches("./")).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

fn any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern.as_bytes(), name.as_bytes()))
}

impl Selection {
    fn is_everything(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty() && self.listed.is_none()
    }

    /// Of code that is inlined, the function that it was written in and those that it is part of now.
    fn selects(&self, frames: &[Frame]) -> bool {
        let named = |patterns: &[String]| {
            let names = frames.iter().flat_map(|frame| [&frame.function, &frame.file]).flatten();
            names.into_iter().any(|name| any(patterns, name))
        };
        (self.include.is_empty() || named(&self.include))
            && !named(&self.exclude)
            && self.listed.as_ref().is_none_or(|listed| frames.iter().any(|frame| listed.names(frame)))
    }

    /// The trace with the accesses that are looked at alone, and how many were left out.
    pub fn of<'t, S: Symbols + ?Sized>(&self, trace: &'t Trace, symbols: &S) -> (Cow<'t, Trace>, usize) {
        if self.is_everything() {
            return (Cow::Borrowed(trace), 0);
        }
        let frames = |site: &Site| match site.module.and_then(|module| trace.modules.get(module as usize)) {
            Some(module) => symbols.frames(module, site.offset.saturating_sub(1)),
            None => Vec::new(),
        };
        let selected: Vec<bool> = trace.sites.iter().map(|site| self.selects(&frames(site))).collect();
        let mut left = trace.clone();
        let mut out = 0;
        for (place, event) in trace.events.iter().enumerate() {
            if matches!(event.kind, EventKind::Access(_)) && !selected.get(event.site.index()).is_some_and(|selected| *selected) {
                left.events.set_kind(place, EventKind::Other(OtherOp::Unknown));
                out += 1;
            }
        }
        (Cow::Owned(left), out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, file: &str, line: u32) -> Frame {
        Frame { function: Some(function.to_owned()), file: Some(file.to_owned()), line: Some(line), ..Frame::default() }
    }

    #[test]
    fn lists_name_functions_files_and_lines() {
        let listed = Listed::read("# of a static analysis\n\nfun:^push$\nsrc:queue.c\nlib/table.c:12\n").unwrap();
        let selection = Selection { listed: Some(listed), ..Selection::default() };
        let selects = |function, file, line| selection.selects(&[frame(function, file, line)]);
        assert!(selects("push", "other.c", 1) && !selects("push_all", "other.c", 1));
        assert!(selects("any", "src/queue.c", 7));
        assert!(selects("any", "src/lib/table.c", 12) && selects("any", "lib/table.c", 12));
        assert!(!selects("any", "src/lib/table.c", 13) && !selects("any", "stable.c", 12) && !selects("any", "table.c", 12));
    }

    #[test]
    fn exclusion_outweighs_inclusion() {
        let selection =
            Selection { include: vec![String::from("queue")], exclude: vec![String::from("^queue_size$")], listed: None };
        assert!(selection.selects(&[frame("queue_push", "a.c", 1)]) && selection.selects(&[frame("f", "queue.c", 1)]));
        assert!(!selection.selects(&[frame("queue_size", "queue.c", 1)]) && !selection.selects(&[frame("f", "a.c", 1)]));
    }

    #[test]
    fn wrong_lists_have_a_place() {
        for (text, line) in [("a.c:1\nb.c", 2), ("a.c:x", 1), ("fun:", 1), (":7", 1)] {
            let error = Listed::read(text).unwrap_err();
            assert_eq!(error.line, line, "{error}");
        }
    }
}
