//! Which two places of a program's own sources race: as ThreadSanitizer prints it, and as our report says it.

use crate::common::races;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

/// The innermost frame of a side that lies in the program's own sources.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// Relative to the folder of programs.
    pub file: String,
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}:{}", self.file, self.line)
    }
}

/// Two places, the smaller first.
pub type Pair = (Place, Place);

fn pair(one: Place, other: Place) -> Pair {
    if one <= other { (one, other) } else { (other, one) }
}

/// The races that ThreadSanitizer reports between two places in `folder`.
pub fn reported(text: &str, folder: &Path) -> BTreeSet<Pair> {
    let of_warning = |warning: races::Printed<'_>| {
        let is_race = warning.kind.starts_with("data race") || warning.kind.starts_with("heap-use-after-free");
        let [one, other, ..] = warning.sides.as_slice() else { return None };
        let of_side = |side: &races::PrintedSide<'_>| side.frames.iter().find_map(|frame| place_of_frame(frame, folder));
        Some(pair(of_side(one)?, of_side(other)?)).filter(|_| is_race && (one.writes || other.writes))
    };
    races::printed(text).into_iter().filter_map(of_warning).collect()
}

/// `#1 task(int) /some/where/x.c:3:33 (a.out+0xdd) (BuildId: 12)`
fn place_of_frame(frame: &str, folder: &Path) -> Option<Place> {
    let folder = format!("{}/", folder.display());
    let rest = &frame[frame.find(&folder)? + folder.len()..];
    let end = rest.match_indices(':').find(|(at, _)| rest[at + 1..].starts_with(|c: char| c.is_ascii_digit()))?.0;
    let digits: String = rest[end + 1..].chars().take_while(char::is_ascii_digit).collect();
    Some(Place { file: rest[..end].to_owned(), line: digits.parse().ok()? })
}

/// A finding of a report, as far as it is of interest here.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub kind: String,
    pub status: String,
    pub pair: Option<Pair>,
    pub subject: String,
}

/// The findings of a report of ours in JSON.
pub fn findings(report: &serde_json::Value, folder: &Path) -> Vec<Finding> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let of_side = |side: &serde_json::Value| {
        let frames = side["stack"].as_array()?;
        frames.iter().find_map(|frame| {
            let file = Path::new(frame["file"].as_str()?).strip_prefix(folder).ok()?;
            Some(Place { file: file.display().to_string(), line: frame["line"].as_u64()? })
        })
    };
    let of_finding = |finding: &serde_json::Value| {
        let sides: Vec<Option<Place>> = finding["sides"].as_array().into_iter().flatten().map(of_side).collect();
        let pair = match sides.as_slice() {
            [Some(one), Some(other)] => Some(pair(one.clone(), other.clone())),
            _ => None,
        };
        Finding { kind: text(&finding["kind"]), status: text(&finding["verdict"]), pair, subject: text(&finding["subject"]) }
    };
    report["findings"].as_array().into_iter().flatten().map(of_finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "WARNING: ThreadSanitizer: data race (pid=21)
  Write of size 4 at 0x55d0 by thread T1:
    #0 memset <null> (a.out+0x5)
    #1 task(int, char*) /some/where/b/x.c:30:33 (a.out+0xdd) (BuildId: 12)
    #2 other /some/where/x.c:9:1 (a.out+0xdd)

  Previous read of size 4 at 0x55d0 by main thread:
    #0 std::vector<int>::size() /usr/include/c++/12/vector:2 (a.out+0x1)
    #1 main /some/where/b/x.c:4 (a.out+0x1)

SUMMARY: ThreadSanitizer: data race /some/where/x.c:3:33 in task
";

    fn place(line: u64) -> Place {
        Place { file: "b/x.c".into(), line }
    }

    #[test]
    fn sides_are_the_first_frames_in_the_folder() {
        let folder = Path::new("/some/where");
        assert_eq!(reported(TEXT, folder).into_iter().collect::<Vec<_>>(), [(place(4), place(30))]);
        assert!(reported(TEXT, Path::new("/else/where")).is_empty());
        assert!(reported(&TEXT.replace("Write of", "Read of"), folder).is_empty(), "two reads are no race");
        assert!(reported(&TEXT.replace("data race", "thread leak"), folder).is_empty());
    }

    #[test]
    fn a_report_of_ours_says_the_same() {
        let frame = |file: &str, line: u32| serde_json::json!({ "function": "f", "file": file, "line": line });
        let report = serde_json::json!({ "findings": [{
            "kind": "data-race", "verdict": "proven", "subject": "x",
            "sides": [
                { "stack": [frame("/usr/include/vector", 1), frame("/some/where/b/x.c", 30)] },
                { "stack": [frame("/some/where/b/x.c", 4)] },
            ],
        }] });
        let found = findings(&report, Path::new("/some/where"));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].status.as_str(), found[0].pair.clone()), ("proven", Some((place(4), place(30)))));
    }
}
