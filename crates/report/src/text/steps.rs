//! The schedule in a short form: the turns that matter.

use super::{Look, Tint, clean, plural, thread_words};
use rashomon_event::finding::{Origin, Step};
use rashomon_event::{Finding, Frame, Verdict};
use std::fmt::Write as _;

/// Steps up to this many are all shown, unless many threads take part.
const FEW: usize = 5;
/// Of more, so many of those that matter.
const LAST: usize = 4;

impl Look<'_> {
    pub fn steps(&self, out: &mut String, finding: &Finding) {
        if finding.steps.is_empty() {
            return;
        }
        let _ = writeln!(out, "  {}", self.painter.paint(Tint::Strong, head(&finding.verdict)));
        let is_long = finding.steps.len() + finding.earlier_steps > FEW || finding.sides.len() > 2;
        let folds = !self.full_schedule && is_long;
        let mut folded = finding.earlier_steps;
        let all = finding.steps.iter().filter(|step| matters(finding, step)).count();
        let mut before_the_last = all.saturating_sub(LAST);
        for (number, step) in (finding.earlier_steps + 1..).zip(&finding.steps) {
            let is_early = folds && matters(finding, step) && before_the_last > 0;
            before_the_last -= usize::from(is_early);
            if is_early || folds && !matters(finding, step) {
                folded += 1;
                continue;
            }
            fold(out, std::mem::take(&mut folded));
            let place = step.place.as_ref().map(|frame| format!(" at {}", self.place(frame))).unwrap_or_default();
            self.line(out, "    ", &format!("{number}. {} {}{place}", thread_words(&step.thread), clean(&step.until)));
        }
        fold(out, folded);
    }
}

/// What the schedule is: only what came about was shown by it.
const fn head(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Proven(_) => "schedule that shows it:",
        Verdict::Diverged { .. } => "schedule that was tried:",
        Verdict::Predicted | Verdict::Suspected | Verdict::Refuted => "schedule that would show it:",
    }
}

fn fold(out: &mut String, steps: usize) {
    if steps > 0 {
        let _ = writeln!(out, "    … {}", plural(steps as u64, "turn"));
    }
}

/// Whether the step is one of a thread that takes part, and in the program's own code; each such thread's last one always is.
fn matters(finding: &Finding, step: &Step) -> bool {
    let takes_part = |thread: &str| finding.sides.iter().any(|side| side.thread == thread);
    let last = finding.steps.iter().rev().find(|later| later.thread == step.thread);
    takes_part(&step.thread)
        && (last.is_some_and(|last| std::ptr::eq(last, step)) || step.place.as_ref().map(Frame::origin) == Some(Origin::Program))
}
