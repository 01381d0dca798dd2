//! The caveats of BarrierPairs, each left out in turn: which false alarms that raises on the recordings of the programs.
//!
//! What is fair. The orders that calls may have made are computed anew here, from their definition (thesis, §4.3), for all pairs
//! of events; leaving a caveat out takes those away that it asks for, and nothing else. What has to be ordered is said by the
//! programs (`// ordered:`). The fifth caveat is left out of the recording: nothing of the library's static data counts there.

use super::programs::{Subject, offset_of};
use crate::common::table::Table;
use anyhow::Result;
use rashomon_event::{CandidateKind, EventIndex, EventKind, Gap, ThreadId, Trace};
use rashomon_pipeline::analyse::gaps::heeded;
use rashomon_trace::Recording;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caveat {
    Overlapping,
    Inside,
    Ordinary,
    PassingOn,
}

/// Those that are left out of the orders, and the last one, which is left out of the recording; none comes first.
pub const NAMES: [&str; 6] =
    ["none", "1 overlapping calls", "2 events inside", "3 ordinary events", "4 passing on", "5 static data"];
const LEFT_OUT: [Option<Caveat>; 5] =
    [None, Some(Caveat::Overlapping), Some(Caveat::Inside), Some(Caveat::Ordinary), Some(Caveat::PassingOn)];
/// Longer traces are not looked at: all pairs of their events are too many.
const MOST_EVENTS: usize = 4000;

/// A trace's calls, by event.
struct Calls<'t> {
    trace: &'t Trace,
    gaps: Vec<Gap>,
    /// Per event, the calls that it is part of, and those that reach what it accesses.
    within: Vec<Vec<usize>>,
    touched: Vec<Vec<usize>>,
    /// Per call, those that reach something in common.
    common: Vec<Vec<bool>>,
}

impl<'t> Calls<'t> {
    fn new(trace: &'t Trace, gaps: Vec<Gap>) -> Self {
        let meet =
            |one: (u64, u64), other: (u64, u64)| one.0 < other.0.saturating_add(other.1) && other.0 < one.0.saturating_add(one.1);
        let reaches = |gap: &Gap, range: (u64, u64)| gap.reach.iter().any(|&(start, bytes)| meet(range, (start.0, bytes)));
        let common = |one: &Gap, other: &Gap| {
            let memory = other.reach.iter().any(|&(start, bytes)| reaches(one, (start.0, bytes)));
            memory || one.threads.iter().any(|thread| other.threads.contains(thread))
        };
        let touches = |gap: &Gap, event: EventIndex| {
            let event = trace.event(event);
            let is_of_handle = matches!(event.kind, EventKind::Start | EventKind::End) && gap.threads.contains(&event.thread);
            is_of_handle || event.access().is_some_and(|access| reaches(gap, (access.address.0, u64::from(access.size))))
        };
        let is_within = |gap: &Gap, event: EventIndex| {
            let own = trace.event(event).thread == gap.thread;
            own && gap.begin <= event && gap.end.is_none_or(|end| event <= end)
        };
        let by_event = |holds: &dyn Fn(&Gap, EventIndex) -> bool| {
            let of = |event| (0..gaps.len()).filter(|&gap| holds(&gaps[gap], event)).collect();
            trace.indices().map(of).collect()
        };
        let (within, touched) = (by_event(&is_within), by_event(&touches));
        let common = gaps.iter().map(|one| gaps.iter().map(|other| common(one, other)).collect()).collect();
        Self { trace, gaps, within, touched, common }
    }

    /// Neither has ended when the other begins.
    fn overlap(&self, one: usize, other: usize) -> bool {
        let [one, other] = [one, other].map(|gap| &self.gaps[gap]);
        let goes_on = |gap: &Gap, at: EventIndex| gap.end.is_none_or(|end| at < end);
        goes_on(one, other.begin) && goes_on(other, one.begin)
    }

    fn is_inside(&self, gap: usize, event: EventIndex) -> bool {
        self.gaps[gap].begin != event && self.gaps[gap].end != Some(event)
    }

    fn may_be_ordered(&self, before: EventIndex, after: EventIndex, without: Option<Caveat>) -> bool {
        let counts = |gap: &&usize, event| without != Some(Caveat::Inside) || !self.is_inside(**gap, event);
        let of = |event: EventIndex| self.within[event.index()].iter().filter(move |gap| counts(gap, event));
        let by_both = of(before).any(|&one| {
            let others = of(after).filter(|&&other| self.common[one][other]);
            others.into_iter().any(|&other| without != Some(Caveat::Overlapping) || !self.overlap(one, other))
        });
        let by_one = |call: EventIndex, access: EventIndex| of(call).any(|gap| self.touched[access.index()].contains(gap));
        by_both || without != Some(Caveat::Ordinary) && (by_one(before, after) || by_one(after, before))
    }

    /// Only between these threads, where they are said.
    fn kept(&self, without: Option<Caveat>, between: Option<[ThreadId; 2]>) -> Vec<(EventIndex, EventIndex)> {
        let is_meant = |event: EventIndex| between.is_none_or(|threads| threads.contains(&self.trace.event(event).thread));
        let mut kept = Vec::new();
        for after in self.trace.indices().filter(|&event| is_meant(event)) {
            let others = self.trace.indices().take(after.index()).filter(|&event| is_meant(event));
            let others = others.filter(|&before| self.trace.event(before).thread != self.trace.event(after).thread);
            kept.extend(others.filter(|&before| self.may_be_ordered(before, after, without)).map(|before| (before, after)));
        }
        kept
    }
}

/// For each caveat that is left out of the orders, offsets of the races that a recording predicts then: two each.
pub fn predicted(recording: &Path, trusted: &[String]) -> Result<Vec<Vec<u64>>> {
    let loaded = Recording::open(recording)?.load()?;
    if loaded.trace.events.len() > MOST_EVENTS {
        return Ok(vec![Vec::new(); LEFT_OUT.len()]);
    }
    let calls = Calls::new(&loaded.trace, heeded(&loaded, trusted).into_iter().map(|(_, gap)| gap).collect());
    let threads = || (0..loaded.trace.threads.len() as u32).map(ThreadId);
    let of = |without: &Option<Caveat>| {
        if *without != Some(Caveat::PassingOn) {
            return races(&loaded.trace, calls.kept(*without, None), None);
        }
        let pairs = threads().flat_map(|one| threads().take(one.index()).map(move |other| [one, other]));
        pairs.flat_map(|pair| races(&loaded.trace, calls.kept(*without, Some(pair)), Some(pair))).collect()
    };
    Ok(LEFT_OUT.iter().map(of).collect())
}

fn races(trace: &Trace, kept: Vec<(EventIndex, EventIndex)>, between: Option<[ThreadId; 2]>) -> Vec<u64> {
    let mut trace = trace.clone();
    trace.kept = kept;
    let mut offsets = Vec::new();
    for prediction in rashomon_predict::predict(&trace, &rashomon_predict::Options::default()).findings {
        let CandidateKind::Race { first, second } = prediction.candidate.kind else { continue };
        let is_meant = |event| between.is_none_or(|threads| threads.contains(&trace.event(event).thread));
        if prediction.witness.is_some() && is_meant(first) && is_meant(second) {
            offsets.extend([first, second].map(|event| offset_of(&trace, trace.event(event).site)));
        }
    }
    offsets
}

/// Of each caveat, how many pairs that a library orders are reported without it.
pub fn false_alarms(subject: &Subject, predicted: &[std::collections::BTreeSet<(u32, u32)>]) -> Vec<usize> {
    predicted.iter().map(|pairs| pairs.intersection(&subject.ordered).count()).collect()
}

pub fn print(alarms: &[(&str, &[usize])]) {
    println!("False alarms among the pairs that libraries order, where a caveat is left out\n");
    let mut table = Table::new(&["without", "false alarms", "programs"]);
    for (place, name) in NAMES.iter().enumerate() {
        let loud: Vec<&str> = alarms.iter().filter(|(_, counts)| counts[place] > 0).map(|(program, _)| *program).collect();
        let sum: usize = alarms.iter().map(|(_, counts)| counts[place]).sum();
        table.row(vec![(*name).to_owned(), sum.to_string(), loud.join(" ")]);
    }
    table.print();
    println!();
}
