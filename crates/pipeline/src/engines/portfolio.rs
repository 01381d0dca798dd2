//! Who has the next turn: one queue of units, the best expected yield per second first.
//!
//! Engines that see (recording, analysis of what is recorded) have their turns before all others, one after the other: what the
//! others offer is about what they saw. Then whoever's next unit is worth most per second has a turn, and is asked again, until
//! nobody has anything to offer or the budget is over. The first in the list is first where two offers are equal. Who looks at
//! what all others have found comes last, and a little of the budget is kept for that; what of it is not needed the others get.
//! Whoever has a part of the budget begins with half of what is left at most, and goes on when nobody else has anything to offer;
//! if it has had no turn until only that part is left, it is next.
//!
//! Searching engines measure a unit by its executions ([`Case::takes`]) and not by the clock, so that which unit comes next
//! follows from the seed and from what executions showed. Only the end of the budget, or of a share, depends on the machine.

use crate::check::leads::{is_proven, told_by_forcing, told_by_worse};
use crate::engines::case::Case;
use crate::engines::engine::{Engine, Registered, Share, Turn};
use crate::error::PipelineError;
use crate::findings::symbols::Symbols;
use crate::progress::Progress;
use rashomon_event::{Deadline, Verdict};
use rashomon_report::summary::{NOT_TRIED, TRIED};
use std::time::{Duration, Instant};

/// An engine with what it has had of its share.
struct Queued<'a, S: ?Sized> {
    one: Registered<'a, S>,
    /// Less than the share, while others may want the time, too.
    most: Option<Duration>,
    had: Duration,
    has_begun: bool,
}

impl<S: Symbols + ?Sized> Queued<'_, S> {
    /// When the next turn has to be over. `None`: the share is used up.
    fn until(&self, case: &Case<'_, '_, S>) -> Option<Deadline> {
        match self.one.share {
            Share::Whole => Some(case.deadlines.total),
            Share::AtMost(most) => {
                let most = self.most.map_or(most, |less| less.min(most));
                Share::AtMost(most.saturating_sub(self.had)).begin(&case.deadlines)
            }
        }
    }

    /// Its part of the budget, if it has had nothing of it and that is enough for some executions.
    fn kept(&self, case: &Case<'_, '_, S>) -> Duration {
        match self.one.share {
            Share::AtMost(most) if !self.has_begun && case.takes(LEAST_EXECUTIONS) <= most => most,
            _ => Duration::ZERO,
        }
    }

    fn step(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<(), PipelineError> {
        let begin = Instant::now();
        self.has_begun = true;
        let done = self.one.engine.step(case, until);
        let has_proven = done.as_ref().is_ok_and(|made| made.proven > 0);
        self.had += if has_proven { begin.elapsed() / FRUITFUL } else { begin.elapsed() };
        done.map(drop)
    }
}

/// Engines until none has anything more to offer; the report says what was tried.
pub fn run_portfolio<S: Symbols + ?Sized>(
    engines: Vec<Registered<'_, S>>,
    case: &mut Case<'_, '_, S>,
) -> Result<(), PipelineError> {
    let (seeing, searching): (Vec<_>, Vec<_>) = engines.into_iter().partition(|one| one.turn == Turn::First);
    let queued = |one| Queued { one, most: None, had: Duration::ZERO, has_begun: false };
    for mut one in seeing {
        if case.stopped.is_some() {
            break;
        }
        if let Some(until) = one.share.begin(&case.deadlines) {
            run(one.engine.as_mut(), case, until)?;
        }
    }
    let mut all: Vec<Queued<'_, S>> = searching.into_iter().map(queued).collect();
    let kept = kept_for_the_last(&mut all, case);
    let total = case.deadlines.total;
    case.deadlines.total = total.less(kept);
    // Shares are parts of the whole budget, of which little may be left by now.
    let half = case.deadlines.total.left().map(|left| left / 2);
    all.iter_mut().filter(|one| one.one.turn == Turn::ByOffer).for_each(|one| one.most = half);
    by_offer(&mut all, case, true);
    all.iter_mut().for_each(|one| one.most = None);
    case.deadlines.total = total;
    for one in all.iter_mut().filter(|one| one.one.turn == Turn::Last) {
        while case.stopped.is_none()
            && let Some(until) = one.until(case)
            && one.one.engine.offer(case).is_some()
        {
            if let Err(error) = one.step(case, until) {
                case.stop(error);
            }
        }
    }
    by_offer(&mut all, case, false);
    for one in &mut all {
        if one.has_begun || one.one.share == Share::Whole {
            one.one.engine.finish(case)?;
        }
    }
    case.leave_whole();
    let findings = case.job.store.findings()?;
    for id in told_by_worse(&findings).into_iter().chain(told_by_forcing(&findings)) {
        case.job.store.remove_finding(&id)?;
        case.observer.progress(Progress::Replaced(&id));
    }
    tell(&all, case)
}

/// The best offer first, until there is none. `breaks_off`: or until the time is over; else whoever has something left says then
/// that it is left.
fn by_offer<S: Symbols + ?Sized>(all: &mut [Queued<'_, S>], case: &mut Case<'_, '_, S>, breaks_off: bool) {
    while case.stopped.is_none() && !(breaks_off && case.deadlines.total.is_over()) {
        let mut best: Option<(f64, usize, Deadline)> = None;
        let left = case.deadlines.total.left().filter(|_| breaks_off);
        let mut kept = Duration::ZERO;
        for (number, one) in all.iter_mut().enumerate().filter(|(_, one)| one.one.turn == Turn::ByOffer) {
            let Some(until) = one.until(case) else { continue };
            let Some(offer) = one.one.engine.offer(case) else { continue };
            let own = one.kept(case);
            let is_due = !own.is_zero() && left.is_some_and(|left| left <= own);
            let worth = if is_due { f64::INFINITY } else { offer.per_second() };
            kept = kept.max(own);
            if best.is_none_or(|(most, ..)| worth > most) {
                best = Some((worth, number, until));
            }
        }
        let Some((worth, number, until)) = best else { break };
        let until = if worth.is_finite() && breaks_off { until.or(case.deadlines.total.less(kept)) } else { until };
        if let Err(error) = all[number].step(case, until) {
            // What was decided before stands.
            case.stop(error);
        }
    }
}

/// Time that has proven something counts as one part in so many of an engine's share.
const FRUITFUL: u32 = 4;

/// What a part of the budget is kept for, at least.
const LEAST_EXECUTIONS: u64 = 8;

/// Units of each engine that comes last for which time is kept, half of its share at most.
const KEPT_UNITS: u32 = 8;

/// All that is kept.
fn kept_for_the_last<S: Symbols + ?Sized>(all: &mut [Queued<'_, S>], case: &Case<'_, '_, S>) -> Duration {
    let last = all.iter_mut().filter(|one| one.one.turn == Turn::Last);
    let kept = last.filter_map(|one| {
        let Share::AtMost(most) = one.one.share else { return None };
        Some((most / 2).min(one.one.engine.offer(case)?.takes * KEPT_UNITS))
    });
    kept.sum()
}

/// One engine until it has nothing more to offer.
pub fn run<S: Symbols + ?Sized>(
    engine: &mut (dyn Engine<S> + '_),
    case: &mut Case<'_, '_, S>,
    until: Deadline,
) -> Result<(), PipelineError> {
    while case.stopped.is_none() && engine.offer(case).is_some() {
        engine.step(case, until)?;
    }
    engine.finish(case)
}

/// What was tried, and what was not: a line each.
fn tell<S: Symbols + ?Sized>(engines: &[Queued<'_, S>], case: &mut Case<'_, '_, S>) -> Result<(), PipelineError> {
    if engines.is_empty() || case.run.recordings.is_empty() {
        return Ok(());
    }
    let recordings = case.run.recordings.len() as u64;
    let mut tried = vec![format!("{} analysed", count(recordings, "recording"))];
    let mut left = Vec::new();
    for one in engines {
        let account = one.one.engine.account();
        tried.extend(account.tried);
        left.extend(account.left);
        case.tally.not_interleaved += account.pairs;
    }
    let findings = case.job.store.findings()?;
    let open = findings.iter().filter(|finding| !is_proven(finding) && finding.verdict != Verdict::Refuted);
    let (of_library, open): (Vec<_>, Vec<_>) = open.partition(|finding| finding.is_of_library());
    if !open.is_empty() {
        left.push(format!("{} not decided", count(open.len() as u64, "suspicion")));
    }
    if !of_library.is_empty() {
        left.push(format!(
            "{} of what the language's library does with its own data",
            count(of_library.len() as u64, "suspicion")
        ));
    }
    left.push("code that no execution reached".into());
    case.tally.notes.push(format!("{TRIED}{}", tried.join("; ")));
    case.tally.notes.push(format!("{NOT_TRIED}{}", left.join("; ")));
    Ok(())
}

/// Such as "1 recording" and "2 recordings".
pub(super) fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
