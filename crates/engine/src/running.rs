//! Which analyses there are, and one of them at work.

use crate::analysis::Analysis;
use crate::cp::{self, Cp};
use crate::detector::{Detector, Wanted};
use crate::hybrid::Hybrid;
use crate::race::Races;
use crate::serialisability::{Regions, Serialisability, Violations};
use crate::variables::Share;
use crate::wcp::Wcp;
use rashomon_packed::{Event, Space};

/// An analysis by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Hb,
    Shb,
    LockSet,
    Hybrid,
    Wcp,
    Cp,
    Serialisability,
}

impl Kind {
    pub const ALL: [Self; 7] = [Self::Hb, Self::Shb, Self::LockSet, Self::Hybrid, Self::Wcp, Self::Cp, Self::Serialisability];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Hb => "hb",
            Self::Shb => "shb",
            Self::LockSet => "lockset",
            Self::Hybrid => "hybrid",
            Self::Wcp => "wcp",
            Self::Cp => "cp",
            Self::Serialisability => "serialisability",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether what it finds is more than a suspicion.
    pub const fn is_sound(self) -> bool {
        matches!(self, Self::Hb | Self::Shb | Self::Serialisability)
    }

    /// What a line of its report says.
    pub const fn claim(self) -> &'static str {
        match self {
            Self::Hb => "races under happens-before; each variable's first is real",
            Self::Shb => "schedulable races; each is real in some reordering",
            Self::LockSet => "variables that no lock protects; suspicions",
            Self::Hybrid => "pairs that only values could order; suspicions",
            Self::Wcp => "races under weak causal precedence; the first is a race or a deadlock",
            Self::Cp => "races under causal precedence within windows; the first is a race or a deadlock",
            Self::Serialisability => "regions that lie on a cycle, not conflict-serialisable; each is real in this trace",
        }
    }
}

/// What an analysis found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Findings {
    Races(Races),
    Violations(Violations),
}

impl Findings {
    /// Those of other variables.
    pub(crate) fn merge(&mut self, other: Self) {
        match (self, other) {
            (Self::Races(one), Self::Races(other)) => one.merge(other),
            _ => unreachable!("regions are not shared out"),
        }
    }

    /// Calls threads by other names.
    pub(crate) fn rename_threads(&mut self, name: impl Fn(u16) -> u16) {
        match self {
            Self::Races(races) => races.rename_threads(name),
            Self::Violations(violations) => violations.rename_threads(name),
        }
    }

    pub fn races(&self) -> Option<&Races> {
        match self {
            Self::Races(races) => Some(races),
            Self::Violations(_) => None,
        }
    }

    /// Whether there is anything to report.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Races(races) => races.events() == 0,
            Self::Violations(violations) => violations.violating() == 0,
        }
    }
}

/// What a set of wanted kinds comes down to. Several kinds share a pass where they share state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// HB and lock sets, which can be shared out by variables.
    Detect {
        lock_sets: bool,
    },
    /// HB, SHB and lock sets.
    DetectSchedulable {
        lock_sets: bool,
    },
    Hybrid,
    Wcp,
    /// In windows of so many events.
    Cp(usize),
    Serialisability(Regions),
}

impl Task {
    pub fn of(kinds: &[Kind], regions: Regions, window: Option<u64>) -> Vec<Self> {
        let wants = |kind| kinds.contains(&kind);
        let lock_sets = wants(Kind::LockSet);
        let mut tasks = Vec::new();
        if wants(Kind::Shb) {
            tasks.push(Self::DetectSchedulable { lock_sets });
        } else if wants(Kind::Hb) || lock_sets {
            tasks.push(Self::Detect { lock_sets });
        }
        if wants(Kind::Hybrid) {
            tasks.push(Self::Hybrid);
        }
        if wants(Kind::Wcp) {
            tasks.push(Self::Wcp);
        }
        if wants(Kind::Cp) {
            let window = window.map_or(cp::WINDOW, |window| window.try_into().unwrap_or(usize::MAX));
            tasks.push(Self::Cp(window));
        }
        if wants(Kind::Serialisability) {
            tasks.push(Self::Serialisability(regions));
        }
        tasks
    }

    /// Whether variables can be looked at by different workers, or in different passes.
    pub fn can_be_shared(self) -> bool {
        matches!(self, Self::Detect { .. } | Self::Hybrid)
    }

    /// `share` is everything unless the task can be shared.
    pub fn start(self, share: Share) -> Running {
        match self {
            Self::Detect { lock_sets } => {
                Running::Detector(Box::new(Detector::of_share(Wanted { shb: false, lock_sets }, share)))
            }
            Self::DetectSchedulable { lock_sets } => {
                Running::Detector(Box::new(Detector::of_share(Wanted { shb: true, lock_sets }, share)))
            }
            Self::Hybrid => Running::Hybrid(Box::new(Hybrid::of_share(share))),
            Self::Wcp => Running::Wcp(Box::default()),
            Self::Cp(window) => Running::Cp(Box::new(Cp::new(window))),
            Self::Serialisability(regions) => Running::Serialisability(Box::new(Serialisability::new(regions))),
        }
    }
}

/// An analysis at work.
#[derive(Debug)]
pub enum Running {
    Detector(Box<Detector>),
    Hybrid(Box<Hybrid>),
    Wcp(Box<Wcp>),
    Cp(Box<Cp>),
    Serialisability(Box<Serialisability>),
}

impl Running {
    fn analysis(&mut self) -> &mut dyn Analysis {
        match self {
            Self::Detector(detector) => &mut **detector,
            Self::Hybrid(hybrid) => &mut **hybrid,
            Self::Wcp(wcp) => &mut **wcp,
            Self::Cp(cp) => &mut **cp,
            Self::Serialisability(regions) => &mut **regions,
        }
    }

    fn as_analysis(&self) -> &dyn Analysis {
        match self {
            Self::Detector(detector) => &**detector,
            Self::Hybrid(hybrid) => &**hybrid,
            Self::Wcp(wcp) => &**wcp,
            Self::Cp(cp) => &**cp,
            Self::Serialisability(regions) => &**regions,
        }
    }

    /// Of what is stopped only the findings stay.
    pub fn without_tables(self) -> Self {
        match self {
            Self::Detector(detector) => Self::Detector(Box::new(detector.without_tables())),
            Self::Hybrid(_) => Self::Hybrid(Box::default()),
            Self::Wcp(wcp) => Self::Wcp(Box::new(wcp.without_tables())),
            Self::Cp(cp) => Self::Cp(Box::new(cp.without_tables())),
            Self::Serialisability(regions) => Self::Serialisability(Box::new(regions.without_tables())),
        }
    }

    /// What each of its kinds found.
    pub fn found(self) -> Vec<(Kind, Findings)> {
        match self {
            Self::Detector(detector) => {
                let found = detector.found();
                let kinds = [(Kind::Hb, Some(found.hb)), (Kind::Shb, found.shb), (Kind::LockSet, found.lock_sets)];
                kinds.into_iter().filter_map(|(kind, races)| Some((kind, Findings::Races(races?)))).collect()
            }
            Self::Hybrid(hybrid) => vec![(Kind::Hybrid, Findings::Races(hybrid.found()))],
            Self::Wcp(wcp) => vec![(Kind::Wcp, Findings::Races(wcp.found()))],
            Self::Cp(cp) => vec![(Kind::Cp, Findings::Races(cp.found()))],
            Self::Serialisability(regions) => vec![(Kind::Serialisability, Findings::Violations(regions.found()))],
        }
    }
}

impl Analysis for Running {
    fn block(&mut self, first: u64, events: &[Event]) {
        self.analysis().block(first, events);
    }

    fn boundary(&mut self, first: u64) {
        self.analysis().boundary(first);
    }

    fn expect(&mut self, space: Space, numbers: u32) {
        self.analysis().expect(space, numbers);
    }

    fn bytes(&self) -> usize {
        self.as_analysis().bytes()
    }

    fn slots(&self) -> usize {
        self.as_analysis().slots()
    }
}
