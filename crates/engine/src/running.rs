//! Which analyses there are, and one of them at work.

use crate::analysis::Analysis;
use crate::detector::{Detector, Wanted};
use crate::hybrid::Hybrid;
use crate::race::Races;
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
}

impl Kind {
    pub const ALL: [Self; 5] = [Self::Hb, Self::Shb, Self::LockSet, Self::Hybrid, Self::Wcp];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Hb => "hb",
            Self::Shb => "shb",
            Self::LockSet => "lockset",
            Self::Hybrid => "hybrid",
            Self::Wcp => "wcp",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// What a line of its report says.
    pub const fn claim(self) -> &'static str {
        match self {
            Self::Hb => "races under happens-before; each variable's first is real",
            Self::Shb => "schedulable races; each is real in some reordering",
            Self::LockSet => "variables that no lock protects; suspicions",
            Self::Hybrid => "pairs that only values could order; suspicions",
            Self::Wcp => "races under weak causal precedence; the first is a race or a deadlock",
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
}

impl Task {
    pub fn of(kinds: &[Kind]) -> Vec<Self> {
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
        }
    }
}

/// An analysis at work.
#[derive(Debug)]
pub enum Running {
    Detector(Box<Detector>),
    Hybrid(Box<Hybrid>),
    Wcp(Box<Wcp>),
}

impl Running {
    fn analysis(&mut self) -> &mut dyn Analysis {
        match self {
            Self::Detector(detector) => &mut **detector,
            Self::Hybrid(hybrid) => &mut **hybrid,
            Self::Wcp(wcp) => &mut **wcp,
        }
    }

    /// Of what is stopped only the findings stay.
    pub fn without_tables(self) -> Self {
        match self {
            Self::Detector(detector) => Self::Detector(Box::new(detector.without_tables())),
            Self::Hybrid(_) => Self::Hybrid(Box::default()),
            Self::Wcp(wcp) => Self::Wcp(Box::new(wcp.without_tables())),
        }
    }

    /// What each of its kinds found.
    pub fn found(self) -> Vec<(Kind, Races)> {
        match self {
            Self::Detector(detector) => {
                let found = detector.found();
                let shb = found.shb.map(|races| (Kind::Shb, races));
                let lock_sets = found.lock_sets.map(|races| (Kind::LockSet, races));
                [Some((Kind::Hb, found.hb)), shb, lock_sets].into_iter().flatten().collect()
            }
            Self::Hybrid(hybrid) => vec![(Kind::Hybrid, hybrid.found())],
            Self::Wcp(wcp) => vec![(Kind::Wcp, wcp.found())],
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
        match self {
            Self::Detector(detector) => detector.bytes(),
            Self::Hybrid(hybrid) => hybrid.bytes(),
            Self::Wcp(wcp) => wcp.bytes(),
        }
    }

    fn slots(&self) -> usize {
        match self {
            Self::Detector(detector) => detector.slots(),
            Self::Hybrid(hybrid) => hybrid.slots(),
            Self::Wcp(wcp) => wcp.slots(),
        }
    }
}
