//! Executions of a store for reports that show timelines.

use rashomon_event::{Deadline, Finding};
use rashomon_pipeline::findings::compose::Composer;
use rashomon_pipeline::timeline::Drawing;
use rashomon_pipeline::trace::{LoadedTrace, Recording, processes};
use rashomon_pipeline::{Binaries, Store};
use rashomon_report::timeline::{DRAWN, Timelines};
use rashomon_report::{Format, Options, Report, by_importance};
use std::path::Path;
use std::time::Duration;

/// Recordings of a store in which accesses are looked for.
const RECORDINGS: u32 = 4;
/// What is not read in this time is not shown.
const TIME: Duration = Duration::from_secs(20);

/// The look with the timelines that the format shows. What cannot be read is not shown.
pub fn with_timelines(format: &dyn Format, report: Report<'_>, look: Options) -> Options {
    if !format.shows_timelines() || report.run.store.is_empty() {
        return look;
    }
    let Ok(store) = Store::open(Path::new(&report.run.store)) else { return look };
    let findings: Vec<&Finding> = by_importance(report.findings, look.shown).into_iter().take(DRAWN).collect();
    let timelines = timelines(&store, &findings, report.run.recordings, Deadline::within(TIME));
    Options { timelines, ..look }
}

fn timelines(store: &Store, findings: &[&Finding], recordings: u32, deadline: Deadline) -> Timelines {
    let (symbols, mut timelines) = (Binaries::new(), Timelines::default());
    for number in 0..recordings.min(RECORDINGS) {
        let left: Vec<&Finding> =
            findings.iter().copied().filter(|finding| !timelines.recorded.contains_key(&finding.id)).collect();
        if left.is_empty() && number > 0 {
            break;
        }
        let Some(loaded) = loaded(&store.recording(number), deadline) else { continue };
        // Nothing is planned, so the quantum does not matter.
        let composer = Composer::new(&loaded, &symbols, 0);
        let drawing = Drawing::of(&composer);
        for finding in left.into_iter().take_while(|_| !deadline.is_over()) {
            if let Some(timeline) = drawing.around(finding) {
                timelines.recorded.insert(finding.id.clone(), timeline);
            }
        }
        if number == 0 && !deadline.is_over() {
            let all: Vec<Finding> = findings.iter().copied().cloned().collect();
            timelines.whole = Some(drawing.whole(&all));
        }
    }
    timelines
}

/// The recording of a session of one process, if it can be read in time.
fn loaded(session: &Path, deadline: Deadline) -> Option<LoadedTrace> {
    let all = processes(session).ok()?;
    let [process] = &all[..] else { return None };
    Recording::open(&process.folder).ok()?.load_until(deadline).ok()
}
