//! What forcing left undecided, a line each, with what to do next: neither claims nor an all-clear.

use super::{Look, clean, kind_name};
use rashomon_event::{Finding, Frame, Side, Verdict, pasted};
use std::fmt::Write as _;

/// Lines that are shown; the others are counted.
const MOST: usize = 20;
/// Schedules that are advised at least, twice as many as there were else.
const LEAST_RECORDINGS: u32 = 10;

/// One line for each finding that diverged, and a next step; empty if there is none.
pub fn lines(look: &Look<'_>, findings: &[Finding], store: &str, recordings: u32) -> String {
    let diverged: Vec<&Finding> = findings.iter().filter(|finding| matches!(finding.verdict, Verdict::Diverged { .. })).collect();
    let mut out = String::new();
    if diverged.is_empty() {
        return out;
    }
    let head = "suspected, and not proven within the budget (which does not say that they cannot happen):";
    look.line(&mut out, "", head);
    for finding in diverged.iter().take(MOST) {
        let (kind, subject) = (kind_name(finding.kind), clean(&finding.subject));
        look.line(&mut out, "  ", &format!("{kind} [{}] {}: {subject}", clean(&finding.id), sides(finding)));
    }
    if diverged.len() > MOST {
        let _ = writeln!(out, "  and {} more", diverged.len() - MOST);
    }
    let next = format!(
        "next: `rashomon provoke {}` holds threads at these places without any schedule; `rashomon check --recordings {} …` \
         takes more schedules; `--show suspicions` says all that is known of them",
        pasted(store.as_ref()),
        recordings.saturating_mul(2).max(LEAST_RECORDINGS)
    );
    look.line(&mut out, "  ", &next);
    out
}

/// Both sides, each as file and line.
pub fn sides(finding: &Finding) -> String {
    let sides: Vec<String> = finding.sides.iter().map(side).collect();
    sides.join(" / ")
}

/// Where the program's own code is, at this side.
fn side(side: &Side) -> String {
    match Frame::best_known(&side.stack) {
        Some(Frame { file: Some(file), line: Some(line), .. }) => {
            format!("{}:{line}", clean(file.rsplit('/').next().unwrap_or(file)))
        }
        Some(frame) => {
            let module = frame.module.rsplit('/').next().unwrap_or(&frame.module);
            format!("{}+{:#x}", clean(module), frame.offset)
        }
        None => "an unknown place".into(),
    }
}
