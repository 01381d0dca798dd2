//! Prediction from traces that others recorded: no binary, no machine, nothing to force.
//!
//! A causal witness that the checker accepts is `predicted`; one of the synchronisation level, or none, `suspected`; a candidate
//! of which no correct reordering exists, and no other witness, `refuted`. Events are named by their number in the trace, from 0.

use crate::analyse::timed::End;
use crate::analyse::{Analysed, Engine, analyse};
use crate::check::tally::out_of_time;
use crate::error::PipelineError;
use crate::findings::identity::finding_id;
use rashomon_event::finding::{HeldLock, Step};
use rashomon_event::{
    Access, AccessClass, Address, CandidateKind, Deadline, EventIndex, EventKind, Finding, FindingKind, Frame, LockMode,
    ThreadId, Verdict, Witness, WitnessLevel,
};
use rashomon_order::held_at;
use rashomon_packed::checked::{CheckOptions, Checked};
use rashomon_packed::{Imported, Names, OpenOptions, Source, Space, open, to_trace};
use std::path::Path;
use std::time::Duration;

/// Longest witness that is told step by step.
const MAX_STEPS: usize = 24;

/// What prediction says about one file.
pub struct Predicted {
    pub findings: Vec<Finding>,
    pub events: u64,
    pub threads: u64,
    /// What was noticed while reading, and witnesses that were dropped.
    pub notes: Vec<String>,
}

/// Reads a trace of any format and predicts from it, for so long, or without limit if that is zero.
pub fn predict_file(
    path: &Path,
    (engine, within): (Engine, Duration),
    options: &OpenOptions,
    checks: CheckOptions,
) -> Result<Predicted, PipelineError> {
    let deadline = Deadline::within_if_any(within);
    // A beginning of a trace is a trace: what is predicted from it holds. Half of the time is kept for that.
    let end = End::new(Deadline::within_if_any(within / 2));
    let options = OpenOptions { until: deadline, ..*options };
    let mut source = end.bound(Box::new(Checked::new(open(path, &options)?, checks)));
    let imported = to_trace(&mut *source)?;
    let notes = source.notices().iter().cloned().chain(end.words("--predict-within")).collect();
    let describer = Describer {
        imported: &imported,
        names: source.names(),
        file: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    };
    let mut predicted = Predicted {
        findings: Vec::new(),
        events: imported.trace.events.len() as u64,
        threads: imported.trace.threads.len() as u64,
        notes,
    };
    let statistics = analyse(&imported.trace, engine, deadline, |analysed| {
        if let Some(reason) = &analysed.rejected {
            predicted.notes.push(format!("a witness was dropped: {reason}"));
        }
        predicted.findings.push(describer.finding(analysed));
    });
    if statistics.out_of_time > 0 {
        predicted.notes.push(out_of_time(statistics.out_of_time as u64));
    }
    Ok(predicted)
}

/// Words for what a trace's numbers stand for.
struct Describer<'a> {
    imported: &'a Imported,
    names: &'a Names,
    file: String,
}

impl Describer<'_> {
    fn finding(&self, analysed: Analysed) -> Finding {
        let Analysed { candidate, witness, refuted, .. } = analysed;
        let goals = candidate.kind.goals();
        let level = witness.as_ref().map(|witness| witness.level);
        let verdict = match level {
            Some(WitnessLevel::Causal) => Verdict::Predicted,
            None if refuted => Verdict::Refuted,
            _ => Verdict::Suspected,
        };
        let mut notes = Vec::new();
        if refuted {
            notes.push("no reordering in which every read sees the write that it saw shows it".to_owned());
        }
        let (kind, subject) = match &candidate.kind {
            CandidateKind::Race { first, .. } => {
                let access = self.imported.trace.access(*first);
                (
                    FindingKind::DataRace,
                    access.map_or_else(String::new, |access| format!("variable {}", self.target(access.address))),
                )
            }
            CandidateKind::Deadlock { locks, .. } => {
                let locks: Vec<String> = locks.iter().flatten().map(|&lock| self.target(lock)).collect();
                (FindingKind::Deadlock, format!("locks {}", locks.join(", ")))
            }
        };
        let mut places: Vec<String> = goals.iter().map(|&goal| self.place(goal)).collect();
        places.push(subject.clone());
        Finding {
            verdict,
            witness_level: level,
            subject,
            sides: goals.iter().map(|&goal| self.side(goal, matches!(kind, FindingKind::Deadlock))).collect(),
            steps: witness.map_or_else(Vec::new, |witness| self.steps(&witness, &mut notes)),
            notes,
            occurrences: candidate.occurrences,
            ..Finding::suspected(kind, candidate.evidence, finding_id(kind, places))
        }
    }

    fn thread(&self, thread: ThreadId) -> String {
        self.names.get(Space::Thread, thread.0).into_owned()
    }

    fn target(&self, address: Address) -> String {
        self.imported
            .target(address)
            .map_or_else(|| address.to_string(), |(space, number)| self.names.get(space, number).into_owned())
    }

    /// The location's name, or the thread and what it did.
    fn place(&self, event: EventIndex) -> String {
        match self.location(event) {
            Some(location) => location,
            None => format!("{} {}", self.thread(self.imported.trace.event(event).thread), self.action(event, false)),
        }
    }

    fn location(&self, event: EventIndex) -> Option<String> {
        let site = self.imported.trace.event(event).site;
        let location = *self.imported.locations.get(site.index())?;
        (location != 0).then(|| self.names.get(Space::Location, location).into_owned())
    }

    fn frame(&self, event: EventIndex) -> Frame {
        let mut frame =
            Frame { function: Some(format!("event {event}", event = event.0)), module: self.file.clone(), ..Frame::default() };
        if let Some(location) = self.location(event) {
            match source_line(&location) {
                Some((file, line, column)) => {
                    (frame.file, frame.line, frame.column) = (Some(file.to_owned()), Some(line), column);
                }
                None => frame.function = Some(format!("event {} at location {location}", event.0)),
            }
        }
        frame.offset = u64::from(event.0);
        frame
    }

    fn action(&self, event: EventIndex, waits: bool) -> String {
        let target = |address: Address| self.target(address);
        let thread = |thread: ThreadId| self.thread(thread);
        match self.imported.trace.kind(event) {
            EventKind::Access(access) => format!("{} {}", access_words(&access), target(access.address)),
            EventKind::Atomic { access, .. } => format!("atomic {} {}", access_words(&access), target(access.address)),
            EventKind::Acquire { lock, .. } | EventKind::Request { lock, .. } if waits => format!("waits for {}", target(lock)),
            EventKind::Acquire { lock, .. } => format!("acquires {}", target(lock)),
            EventKind::Request { lock, .. } => format!("requests {}", target(lock)),
            EventKind::Release { lock, .. } => format!("releases {}", target(lock)),
            EventKind::Fork { child } => format!("forks {}", thread(child)),
            EventKind::Join { child, .. } if waits => format!("waits for {} to end", thread(child)),
            EventKind::Join { child, .. } => format!("joins {}", thread(child)),
            EventKind::BarrierExit { barrier, .. } if waits => format!("waits at {}", target(barrier)),
            EventKind::ReleaseObject { object } => format!("releases to {}", target(object)),
            EventKind::AcquireObject { object } => format!("acquires from {}", target(object)),
            EventKind::BarrierEnter { barrier, .. } => format!("enters {}", target(barrier)),
            EventKind::BarrierExit { barrier, .. } => format!("leaves {}", target(barrier)),
            EventKind::Fence { .. } => "fence".into(),
            _ => "other".into(),
        }
    }

    fn side(&self, goal: EventIndex, waits: bool) -> rashomon_event::Side {
        let trace = &self.imported.trace;
        let thread = trace.event(goal).thread;
        let held = held_at(trace, goal).into_iter().map(|held| HeldLock {
            name: format!("lock {}", self.target(held.lock)),
            acquired_at: vec![self.frame(held.acquired)],
            shared: held.mode == LockMode::Shared,
        });
        let fork = trace.indices().find(|&event| trace.kind(event) == EventKind::Fork { child: thread });
        rashomon_event::Side {
            thread: self.thread(thread),
            action: self.action(goal, waits),
            stack: vec![self.frame(goal)],
            held: held.collect(),
            created_at: fork.map(|fork| self.frame(fork)).into_iter().collect(),
        }
    }

    /// The witness as turns: who runs up to which event.
    fn steps(&self, witness: &Witness, notes: &mut Vec<String>) -> Vec<Step> {
        let trace = &self.imported.trace;
        let mut turns: Vec<EventIndex> = Vec::new();
        for &event in &witness.order {
            match turns.last_mut() {
                Some(last) if trace.event(*last).thread == trace.event(event).thread => *last = event,
                _ => turns.push(event),
            }
        }
        if turns.len() > MAX_STEPS {
            notes.push(format!("the witness has {} turns, of which the first {MAX_STEPS} are shown", turns.len()));
        }
        let step = |&last: &EventIndex| Step {
            thread: self.thread(trace.event(last).thread),
            until: format!("runs until it {}", self.action(last, false)),
            place: Some(self.frame(last)),
        };
        turns.iter().take(MAX_STEPS).map(step).collect()
    }
}

const fn access_words(access: &Access) -> &'static str {
    match access.class {
        AccessClass::Read => "reads",
        AccessClass::Write => "writes",
        AccessClass::ReadWrite => "updates",
        AccessClass::End => "ends",
    }
}

/// `file:line` or `file:line:column`.
fn source_line(location: &str) -> Option<(&str, u32, Option<u32>)> {
    let (rest, last) = location.rsplit_once(':')?;
    let last: u32 = last.parse().ok()?;
    match rest.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?))) {
        Some((file, line)) => Some((file, line, Some(last))),
        None => Some((rest, last, None)),
    }
}
