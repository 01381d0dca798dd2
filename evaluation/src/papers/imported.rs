//! Traces with known answers: where they are, every analysis and every decider on one of them.

use anyhow::{Context as _, Result, ensure};
use rashomon_engine::{Analysis as _, Detector, Hybrid, Races, Wanted, Wcp};
use rashomon_event::{CandidateKind, EventIndex, Trace, Witness, WitnessLevel};
use rashomon_order::SharedMemory;
use rashomon_packed::{Event, Imported, Names, OpenOptions, Slice, Source as _, open, to_trace};
use rashomon_predict::closure::Closures;
use rashomon_predict::exact::{self, Decision, Limits};
use rashomon_predict::index::Index;
use rashomon_predict::reversal::sync_reversal;
use rashomon_witness::Checker;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use xtask::workspace::root;

/// Columns of what each analysis and each decider finds.
pub const TITLES: [&str; 8] = ["HB", "SHB", "WCP", "lock sets", "hybrid", "sync-pres.", "reversal", "exact"];

/// Two events, the earlier one first.
pub type Pair = (EventIndex, EventIndex);

/// The folder of one corpus, in that which the user chose or in ours.
pub fn corpus(chosen: Option<&Path>, name: &str) -> Result<PathBuf> {
    let folder = chosen.map_or_else(|| root().join("tests/corpora"), Path::to_owned).join(name);
    ensure!(
        folder.is_dir(),
        "{} is no folder: say with --corpora where the traces are (see tests/corpora/README.md)",
        folder.display()
    );
    Ok(folder)
}

/// A trace in both forms.
pub struct Known {
    pub events: Vec<Event>,
    pub names: Names,
    pub imported: Imported,
}

impl Known {
    pub fn read(path: &Path) -> Result<Self> {
        // The fork of thread 12 is that of T12.
        let mut source = open(path, &OpenOptions { bare_threads: true, ..OpenOptions::default() })?;
        let (mut events, mut block) = (Vec::new(), Vec::new());
        loop {
            source.next(&mut block)?;
            if block.is_empty() {
                break;
            }
            events.extend_from_slice(&block);
        }
        let names = source.names().clone();
        let imported = to_trace(&mut Slice::new(&events)).with_context(|| path.display().to_string())?;
        Ok(Self { events, names, imported })
    }

    pub fn trace(&self) -> &Trace {
        &self.imported.trace
    }

    pub fn linear(&self) -> Linear {
        let mut detector = Detector::new(Wanted { shb: true, lock_sets: true }).keeping_all();
        let mut hybrid = Hybrid::default().keeping_all();
        let mut wcp = Wcp::default().keeping_all();
        detector.block(0, &self.events);
        hybrid.block(0, &self.events);
        wcp.block(0, &self.events);
        let found = detector.found();
        Linear {
            hb: Reports::new(&found.hb),
            shb: Reports::new(&found.shb.unwrap_or_default()),
            wcp: Reports::new(&wcp.found()),
            lock_sets: Reports::new(&found.lock_sets.unwrap_or_default()),
            hybrid: Reports::new(&hybrid.found()),
        }
    }
}

/// What one analysis reports.
#[derive(Default)]
pub struct Reports {
    pub pairs: BTreeSet<Pair>,
    /// Of all pairs, also those without an earlier event.
    pub later: BTreeSet<EventIndex>,
}

impl Reports {
    fn new(races: &Races) -> Self {
        let mut reports = Self::default();
        for race in races.all().unwrap_or_default() {
            let later = EventIndex(race.later.event as u32);
            reports.later.insert(later);
            reports.pairs.extend(race.earlier.map(|earlier| (EventIndex(earlier.event as u32), later)));
        }
        reports
    }
}

pub struct Linear {
    pub hb: Reports,
    pub shb: Reports,
    pub wcp: Reports,
    pub lock_sets: Reports,
    pub hybrid: Reports,
}

/// What the deciders say of one pair, each asked alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Decided {
    pub sync_preserving: bool,
    pub sync_reversal: bool,
    pub any: bool,
    pub refuted: bool,
    /// Witnesses that the checker did not accept as causal.
    pub rejected: u32,
}

/// What deciding pairs of one trace needs.
pub struct Deciders<'t> {
    trace: &'t Trace,
    memory: &'t SharedMemory,
    closures: Closures<'t, 't>,
    checker: Checker<'t>,
}

impl<'t> Deciders<'t> {
    pub fn new(index: &'t Index<'t>, memory: &'t SharedMemory) -> Self {
        Self { trace: index.trace, memory, closures: Closures::new(index), checker: Checker::new(index.trace) }
    }

    pub fn conflicting(&self) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for second in self.trace.indices() {
            for first in self.trace.indices().take(second.index()) {
                let (one, other) = (self.trace.event(first), self.trace.event(second));
                let conflict = one.access().zip(other.access()).is_some_and(|(one, other)| one.conflicts(&other));
                if conflict && one.thread != other.thread {
                    pairs.push((first, second));
                }
            }
        }
        pairs
    }

    pub fn decide(&self, (first, second): Pair) -> Decided {
        let goals = [first, second];
        let mut decided = Decided::default();
        let accepted = |order: Vec<EventIndex>| {
            let candidate = CandidateKind::Race { first, second };
            u32::from(self.checker.check(&Witness { candidate, order, level: WitnessLevel::Causal }) != Ok(WitnessLevel::Causal))
        };
        if let Ok(cut) = self.closures.sync_preserving(&goals) {
            decided.sync_preserving = true;
            let below = |event: &EventIndex| {
                let (thread, at) = self.closures.index.place(*event);
                at < cut[thread as usize]
            };
            decided.rejected += accepted(self.trace.indices().filter(below).collect());
        }
        if let Some(order) = sync_reversal(&self.closures, self.memory, &goals) {
            decided.sync_reversal = true;
            decided.rejected += accepted(order);
        }
        match exact::decide(&self.closures, self.memory, &goals, &Limits::default()) {
            Decision::Witness(order) => {
                decided.any = true;
                decided.rejected += accepted(order);
            }
            Decision::Refuted => decided.refuted = true,
            Decision::Undecided | Decision::Ordered => {}
        }
        decided
    }
}
