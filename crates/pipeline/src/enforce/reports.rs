//! What the detector reported of an execution under an order.

use crate::error::PipelineError;
use rashomon_event::Frame;
use rashomon_files::Links;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Bytes of the detector's reports that are read.
const LARGEST: u64 = 64 << 20;

pub type Places = BTreeSet<Vec<String>>;

/// Races and deadlocks of the detector's reports: lines `NAME.PID` with an object each.
pub fn reported(folder: &Path, reports: &Path) -> Result<(Places, Places), PipelineError> {
    let (mut races, mut deadlocks) = (Places::new(), Places::new());
    let name = reports.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let entries =
        std::fs::read_dir(folder).map_err(|source| PipelineError::Io { action: "read", path: folder.into(), source })?;
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        if !path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&name)) {
            continue;
        }
        let bytes = rashomon_files::read(&path, Links::Refused, LARGEST).map_err(|source| PipelineError::Io {
            action: "read",
            path: path.clone(),
            source,
        })?;
        for line in bytes.split(|&byte| byte == b'\n') {
            let Ok(report) = serde_json::from_slice::<Value>(line) else { continue };
            match report["kind"].as_str() {
                Some("data-race" | "vptr-race" | "use-after-free" | "vptr-use-after-free" | "external-race") => {
                    races.insert(places(report["accesses"].as_array().into_iter().flatten().map(|access| &access["stack"])));
                }
                Some("deadlocked" | "stuck") => {
                    deadlocks.insert(places(report["stacks"].as_array().into_iter().flatten()));
                }
                _ => {}
            }
        }
    }
    Ok((races, deadlocks))
}

/// The innermost source line.
pub(super) fn line_of(stack: &[Frame]) -> String {
    innermost(stack.iter().map(|frame| (frame.file.as_deref(), frame.line.map(u64::from))))
}

/// The innermost source line of each stack, sorted.
fn places<'a>(stacks: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let line = |stack: &Value| {
        let frames = stack.as_array().into_iter().flatten();
        innermost(frames.map(|frame| (frame["file"].as_str(), frame["line"].as_u64())))
    };
    let mut lines: Vec<String> = stacks.map(line).collect();
    lines.sort();
    lines
}

/// The first of these files and lines that is known.
fn innermost<'a>(mut frames: impl Iterator<Item = (Option<&'a str>, Option<u64>)>) -> String {
    let named = |(file, line): (Option<&str>, Option<u64>)| {
        let file = Path::new(file?).file_name()?.to_string_lossy().into_owned();
        Some(format!("{file}:{}", line?))
    };
    frames.find_map(named).unwrap_or_else(|| "??".to_owned())
}
