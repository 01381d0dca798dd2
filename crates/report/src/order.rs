//! Which findings are shown, and in which order: the surest first, of these what harms most, then by id.

use rashomon_event::{Evidence, Finding, FindingKind, Grade, Harm, Verdict};

/// How much is shown. Each level contains the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shown {
    /// Proven and predicted; where nothing is proven, failures that were seen, too.
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

/// A failure of an execution that did not come about again: no proof, and no suspicion either.
pub fn has_failed_once(finding: &Finding) -> bool {
    let is_open = !finding.verdict.is_proven() && finding.verdict != Verdict::Refuted;
    finding.kind == FindingKind::Failure && finding.evidence == Evidence::Observed && is_open
}

/// Notes of what was seen and could not be replayed in time begin so.
pub const NOT_REPLAYED: &str = "the budget was over before its recorded schedule was replayed";

/// Whether nobody knows if it happens again.
pub fn was_not_replayed(finding: &Finding) -> bool {
    finding.notes.iter().any(|note| note == NOT_REPLAYED)
}

/// Notes of schedules that were executed and did not show it begin so.
pub const FORCED_IN_VAIN: &str = "forcing it ";

/// Whether a schedule of it was executed, without it.
pub fn was_forced_in_vain(finding: &Finding) -> bool {
    finding.notes.iter().any(|note| note.starts_with(FORCED_IN_VAIN))
}

/// The findings to show, in the order in which every renderer shows them.
pub fn by_importance(findings: &[Finding], shown: Shown) -> Vec<&Finding> {
    let last = match shown {
        Shown::Claims => 1,
        Shown::Suspicions => 3,
        Shown::Everything => 4,
    };
    // Beside a proof it is no news: what is proven may have caused it.
    let nothing_proven = findings.iter().all(|finding| !finding.verdict.is_proven());
    let is_kept = |finding: &&Finding| finding.verdict.rank() <= last || nothing_proven && has_failed_once(finding);
    let mut kept: Vec<&Finding> = findings.iter().filter(is_kept).collect();
    let key = |finding: &Finding| (finding.verdict.rank(), rank(finding), finding.kind);
    kept.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.id.cmp(&b.id)));
    kept
}
