//! The JSON report while the tool is at work: written anew with each finding that is proven, and every now and then with others,
//! so that whatever ends us leaves the last state.
//!
//! It is written beside its place and renamed, so that a reader sees one whole report or another. What is no regular file (a
//! pipe, a terminal) gets the report once, at the end.

use anyhow::{Context as _, Result};
use rashomon_event::{Finding, FindingId};
use rashomon_pipeline::Progress;
use rashomon_report::{Format as _, Options, Report, RunSummary, Shown, json::Json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Between two reports that only tell of suspicions.
const EVERY: Duration = Duration::from_millis(500);

/// The report that an interruption has to complete.
static CURRENT: Mutex<Option<Arc<Live>>> = Mutex::new(None);

/// A report on its way.
pub struct Live {
    target: Target,
    shown: Shown,
    state: Mutex<State>,
}

enum Target {
    /// Standard output, or what cannot be replaced: once, at the end.
    Once(PathBuf),
    File(PathBuf),
}

#[derive(Default)]
struct State {
    summary: Option<RunSummary>,
    findings: BTreeMap<FindingId, Finding>,
    written: Option<Instant>,
    /// The last report is the whole one.
    finished: bool,
}

impl Live {
    /// From now on an interruption writes it, too.
    pub fn begin(path: &Path, shown: Shown) -> Arc<Self> {
        let target = if can_be_replaced(path) {
            Target::File(fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()))
        } else {
            Target::Once(path.to_path_buf())
        };
        let live = Arc::new(Self { target, shown, state: Mutex::default() });
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&live));
        live
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What cannot be written now is tried again at the end, which says so.
    pub fn progress(&self, progress: &Progress<'_>) {
        let mut state = self.state();
        match progress {
            Progress::Numbers(summary) => {
                let first = state.summary.is_none();
                state.summary = Some((*summary).clone());
                if !first {
                    return;
                }
            }
            Progress::Decided(finding) => {
                // The report does without schedules, which may be long.
                let told = Finding { schedule: None, provocation: None, ..(*finding).clone() };
                let proven = told.verdict.is_proven();
                // What was proven once stays so, as in the store.
                let known = state.findings.get(&told.id);
                if !proven && known.is_some_and(|known| known.verdict.is_proven() && known.reproduce.is_some()) {
                    return;
                }
                state.findings.insert(told.id.clone(), told);
                if !proven && state.written.is_some_and(|written| written.elapsed() < EVERY) {
                    return;
                }
            }
            Progress::Replaced(id) => {
                state.findings.remove(*id);
                if state.written.is_some_and(|written| written.elapsed() < EVERY) {
                    return;
                }
            }
            _ => return,
        }
        if let Target::File(path) = &self.target {
            let _ = self.write(&mut state, path);
        }
    }

    fn write(&self, state: &mut State, path: &Path) -> Result<()> {
        let Some(text) = self.render(state) else { return Ok(()) };
        replace(path, &text)?;
        state.written = Some(Instant::now());
        Ok(())
    }

    fn render(&self, state: &State) -> Option<String> {
        let summary = RunSummary { interrupted: true, ..state.summary.clone()? };
        let findings: Vec<Finding> = state.findings.values().cloned().collect();
        let look = Options { shown: self.shown, ..Options::default() };
        Some(Json.report(Report { findings: &findings, run: &summary }, &look))
    }

    /// The whole report is written: nothing is left for an interruption.
    fn finish(&self) {
        self.state().finished = true;
    }
}

/// Empties the report of an earlier command, if there is one: what stands there from now on is of this one.
pub fn forget(path: &Path) -> Result<()> {
    if can_be_replaced(path) && path.exists() {
        fs::write(path, "").with_context(|| format!("cannot replace {}", path.display()))?;
    }
    Ok(())
}

/// The last word of a report that is interrupted.
pub fn interrupted() {
    let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(live) = current else { return };
    let mut state = live.state();
    if state.finished {
        return;
    }
    let _ = match &live.target {
        Target::File(path) => live.write(&mut state, path),
        Target::Once(path) => match live.render(&state) {
            Some(text) if path == Path::new("-") => crate::terminal::print(&text),
            Some(text) => fs::write(path, text).map_err(Into::into),
            None => Ok(()),
        },
    };
}

/// The whole report, at the end. Not to standard output.
pub fn write_last(path: &Path, text: &str) -> Result<()> {
    let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    // Where nothing can be put beside it, it can perhaps be written all the same.
    if !can_be_replaced(path) || replace(&place, text).is_err() {
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(live) = current {
        live.finish();
    }
    Ok(())
}

/// For a report on standard output, which is about to be printed.
pub fn no_more() {
    if let Some(live) = CURRENT.lock().unwrap_or_else(PoisonError::into_inner).take() {
        live.finish();
    }
}

fn can_be_replaced(path: &Path) -> bool {
    path != Path::new("-")
        && fs::metadata(path).map_or_else(|_| fs::symlink_metadata(path).is_err(), |metadata| metadata.is_file())
}

/// The file appears under its name when it is whole. Its permissions stay.
fn replace(path: &Path, text: &str) -> Result<()> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.new", std::process::id()));
    let fresh = path.with_file_name(name);
    let written = fs::OpenOptions::new().write(true).create_new(true).open(&fresh).and_then(|mut file| {
        if let Ok(known) = fs::metadata(path) {
            file.set_permissions(known.permissions())?;
        }
        file.write_all(text.as_bytes())
    });
    let renamed = written.and_then(|()| fs::rename(&fresh, path));
    if renamed.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    renamed.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_replaced_as_a_whole_and_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        replace(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_files_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        assert!(can_be_replaced(&folder.path().join("new")));
        assert!(!can_be_replaced(Path::new("/dev/null")));
        assert!(!can_be_replaced(Path::new("-")));
        let dangling = folder.path().join("dangling");
        std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
        assert!(!can_be_replaced(&dangling));
    }
}
