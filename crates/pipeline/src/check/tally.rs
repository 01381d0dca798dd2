//! What is counted while recordings are analysed and findings forced, and the notes about it.

use crate::analyse::modules::{Unseen, asks_processor};
use crate::check::leads::{MOST_OF_ONE_RECORDING, ended_blocked};
use crate::progress::{Observer, Progress};
use rashomon_event::{EventIndex, EventKind, EventSet, FindingId, ProcessPath, counted};
use rashomon_report::Unexamined;
use rashomon_report::summary::NOTHING_PREDICTED;
use rashomon_trace::{LoadedTrace, Shortcoming};
use std::collections::BTreeSet;

/// Numbers that end up in the summary.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub events: u64,
    pub threads: u64,
    pub executions: u64,
    pub untried: u64,
    /// Suspicions for which there was no time to look for another schedule.
    pub out_of_time: u64,
    /// Suspicions of a recording beyond [`MOST_OF_ONE_RECORDING`]; of the recording with the most.
    pub set_aside: u64,
    /// Those that are like others: of the same bytes, functions and locks.
    pub alike: BTreeSet<FindingId>,
    /// Pairs of critical sections that were not interleaved.
    pub not_interleaved: u64,
    /// Processes of recordings that there was no time to load, and those of which not all was looked at.
    pub not_analysed: u64,
    pub cut_short: u64,
    /// Those of whose end events are missing.
    pub not_whole: u64,
    /// Something in a recording may have ordered more, or less, than is known: prediction keeps to what was recorded.
    pub keeps_to_recorded: bool,
    pub notes: Vec<String>,
    /// Those of them that say what there was no time for so far.
    pub late: Vec<String>,
}

/// How much of an execution a recording is meant to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// Up to where the program stood when it was asked to end.
    UntilAsked,
    /// Few places, or what fitted into a time.
    Excerpt,
}

impl Tally {
    /// What there was no time for, in numbers.
    pub const fn unexamined(&self) -> Unexamined {
        Unexamined {
            suspicions: self.out_of_time + self.set_aside,
            pairs: self.not_interleaved,
            recordings: self.not_analysed + self.cut_short + self.not_whole,
        }
    }

    /// What there was no time for.
    pub(crate) fn tell_out_of_time(&mut self, observer: &mut dyn Observer) {
        let mut notes = Vec::new();
        if self.out_of_time > 0 {
            notes.push(out_of_time(self.out_of_time));
        }
        if self.set_aside > 0 {
            notes.push(format!(
                "not looked at: {}; of a recording {MOST_OF_ONE_RECORDING} are: mend what is reported and check again",
                counted(self.set_aside, "more suspicion")
            ));
        }
        if self.cut_short > 0 {
            notes.push(format!(
                "there was no time to look at all of {}: --budget or --predict-within gives more",
                recorded(self.cut_short)
            ));
        }
        if self.not_analysed > 0 {
            notes.push(format!(
                "there was no time to load {}: --budget or --predict-within gives more",
                recorded(self.not_analysed)
            ));
        }
        // Told before, with what was known then.
        self.notes.retain(|note| !self.late.contains(note));
        for note in notes.iter().filter(|note| !self.late.contains(note)) {
            observer.progress(Progress::Note(note));
        }
        self.notes.extend(notes.iter().cloned());
        self.late = notes;
    }

    /// What was not gone after because others like it were.
    /// `reported`: what one recording set aside and another brought.
    pub(super) fn tell_alike(&mut self, reported: &BTreeSet<FindingId>, observer: &mut dyn Observer) {
        self.alike.retain(|id| !reported.contains(id));
        if self.alike.is_empty() {
            return;
        }
        let note = format!(
            "set aside: {}, of the same bytes, functions and locks as others here; mend what is reported and check again",
            counted(self.alike.len() as u64, "more suspicion")
        );
        self.note(note, observer);
    }

    /// For whoever watches, and for the report.
    pub(crate) fn note(&mut self, note: String, observer: &mut dyn Observer) {
        observer.progress(Progress::Note(&note));
        self.notes.push(note);
    }

    /// Counts a recording, and notes what is wrong with it.
    pub(crate) fn count(
        &mut self,
        loaded: &LoadedTrace,
        process: &ProcessPath,
        trusted: &[String],
        extent: Extent,
        observer: &mut dyn Observer,
    ) {
        self.events += loaded.trace.events.len() as u64;
        self.threads = self.threads.max(loaded.trace.threads.len() as u64);
        let lacks =
            |one: &Shortcoming| matches!(one, Shortcoming::Unwritten | Shortcoming::Damaged { .. } | Shortcoming::Lost { .. });
        self.not_whole += u64::from(loaded.shortcomings.iter().any(lacks));
        let mut notes: Vec<String> = Vec::new();
        if !ended_blocked(loaded) {
            // Of a program that died the streams end where they are, and are whole up to there.
            let died = loaded.shortcomings.contains(&Shortcoming::Crashed);
            let is_meant = |one: &&Shortcoming| match one {
                Shortcoming::Unfinished { .. } => died || extent != Extent::Whole,
                Shortcoming::NotEnded => extent != Extent::Whole,
                Shortcoming::Truncated { .. } => extent == Extent::Excerpt,
                _ => false,
            };
            let told = loaded.shortcomings.iter().filter(|one| !is_meant(one));
            notes.extend(told.map(|shortcoming| format!("the trace is not complete: {shortcoming}")));
        }
        if !process.is_initial() {
            notes.iter_mut().for_each(|note| *note = format!("process {process}: {note}"));
        }
        if loaded.trace.mode == rashomon_event::Mode::Free {
            notes.push("recorded with threads in parallel: nothing is predicted, only suspected and proven".into());
        }
        let unseen = Unseen::of(loaded, trusted);
        let takes = |event: EventIndex| matches!(loaded.trace.kind(event), EventKind::Take { .. });
        let mut others = EventSet::union([loaded.trace.events.besides_accesses()]);
        self.keeps_to_recorded |= !unseen.is_empty() || others.any(takes);
        let unknown: Vec<&str> = unseen.libraries.iter().chain(&unseen.standard).map(String::as_str).collect();
        if !unknown.is_empty() {
            notes.push(format!("not instrumented, {NOTHING_PREDICTED}, only suspected and proven: {}", unknown.join(", ")));
        }
        if !unseen.functions.is_empty() {
            notes.push(format!("not seen by the runtime, {NOTHING_PREDICTED}: {}", unseen.functions.join(", ")));
        }
        if !unseen.assembly.is_empty() {
            notes.push(format!(
                "not seen by any instrumentation, {NOTHING_PREDICTED}, only suspected and proven: {} (`--trust-library` with a \
                 file's name says that its assembly orders nothing)",
                unseen.assembly.join("; ")
            ));
        }
        if let Some(functions) = asks_processor(&loaded.trace) {
            notes.push(format!(
                "asks the processor for its time stamp counter or random numbers, in {functions}: a re-execution sees others, \
                 and the counter does not go with virtual time, so that a failure may be of our making"
            ));
        }
        for note in notes {
            if !self.notes.contains(&note) {
                observer.progress(Progress::Note(&note));
                self.notes.push(note);
            }
        }
    }
}

pub(crate) fn out_of_time(suspicions: u64) -> String {
    let suspicions = counted(suspicions, "more suspicion");
    format!("there was no time to look for schedules that show {suspicions}: --predict-within gives more")
}

pub(super) fn recorded(processes: u64) -> String {
    if processes == 1 { "one recording".into() } else { format!("{processes} recordings") }
}
