//! Which findings are shown, and in which order: the surest first, of these what harms most, then by id.

use rashomon_event::{Finding, Grade, Harm};

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

/// How bad it is for the program: what is proven is known to do that.
fn rank(finding: &Finding) -> u8 {
    match (finding.verdict.grade(), finding.harm) {
        (Some(Grade::Crashed), _) | (_, Some(Harm::Crash)) => 0,
        (Some(Grade::Deadlocked | Grade::Stuck | Grade::Endless), _) | (_, Some(Harm::Hang)) => 1,
        (Some(Grade::WrongExit | Grade::Violated | Grade::Freed), _) | (_, Some(Harm::Result)) => 2,
        (_, Some(Harm::NoneSeen)) => 4,
        _ => 3,
    }
}

/// The findings to show, in the order in which every renderer shows them.
pub fn by_importance(findings: &[Finding], shown: Shown) -> Vec<&Finding> {
    let last = match shown {
        Shown::Claims => 1,
        Shown::Suspicions => 3,
        Shown::Everything => 4,
    };
    let mut kept: Vec<&Finding> = findings.iter().filter(|finding| finding.verdict.rank() <= last).collect();
    let key = |finding: &Finding| (finding.verdict.rank(), rank(finding), finding.kind);
    kept.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.id.cmp(&b.id)));
    kept
}
