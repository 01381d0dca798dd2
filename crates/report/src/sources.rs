//! Lines of sources around the places of findings. Formats read no files: who writes a report reads them, if the format shows
//! sources.

use rashomon_event::{Finding, Frame};
use std::collections::{BTreeMap, BTreeSet};

/// Lines in front of and behind a place.
const AROUND: u32 = 3;

/// Texts of source files, by the names that debug information has for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excerpts {
    files: BTreeMap<String, Vec<String>>,
}

impl Excerpts {
    /// The files that a report of these findings shows lines of.
    pub fn wanted(findings: &[Finding]) -> BTreeSet<&str> {
        let sides = findings.iter().flat_map(|finding| &finding.sides);
        let frames = sides.filter_map(|side| Frame::best_known(&side.stack)).filter(|frame| frame.line.is_some());
        frames.filter_map(|frame| frame.file.as_deref()).collect()
    }

    /// A file's text becomes known.
    pub fn add(&mut self, file: &str, text: &str) {
        self.files.insert(file.to_owned(), text.lines().map(str::to_owned).collect());
    }

    /// The lines around a place, and the number of the first. `None`: the file is not known, or has no such line.
    pub fn around(&self, frame: &Frame) -> Option<(u32, &[String])> {
        let (lines, line) = (self.files.get(frame.file.as_deref()?)?, frame.line?);
        let first = line.saturating_sub(AROUND).max(1);
        let (from, to) = (first as usize - 1, lines.len().min(line.saturating_add(AROUND) as usize));
        (line as usize <= lines.len() && line > 0).then(|| (first, &lines[from..to]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_at_the_ends_of_files() {
        let mut excerpts = Excerpts::default();
        excerpts.add("a.c", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
        let at = |line| {
            let frame = Frame { file: Some("a.c".into()), line: Some(line), ..Frame::default() };
            excerpts.around(&frame).map(|(first, lines)| (first, lines.concat()))
        };
        assert_eq!(at(1), Some((1, "1234".into())));
        assert_eq!(at(5), Some((2, "2345678".into())));
        assert_eq!(at(9), Some((6, "6789".into())));
        assert_eq!((at(0), at(10), at(u32::MAX)), (None, None, None));
        assert_eq!(excerpts.around(&Frame { file: Some("b.c".into()), line: Some(1), ..Frame::default() }), None);
    }
}
