//! Which findings are shown, and in which order: the surest first, then by id.

use rashomon_event::Finding;

/// How much is shown. Each level contains the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shown {
    /// Proven and predicted.
    #[default]
    Claims,
    /// Also what forcing could not decide: suspected, diverged.
    Suspicions,
    /// Also what was refuted.
    Everything,
}

/// The findings to show, in the order in which every renderer shows them.
pub fn by_importance(findings: &[Finding], shown: Shown) -> Vec<&Finding> {
    let last = match shown {
        Shown::Claims => 1,
        Shown::Suspicions => 3,
        Shown::Everything => 4,
    };
    let mut kept: Vec<&Finding> = findings.iter().filter(|finding| finding.verdict.rank() <= last).collect();
    kept.sort_by(|a, b| (a.verdict.rank(), a.kind, &a.id).cmp(&(b.verdict.rank(), b.kind, &b.id)));
    kept
}
