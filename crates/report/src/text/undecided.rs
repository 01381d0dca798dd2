//! What forcing left undecided, a line each, and what was not forced at all, counted; with what to do next: neither claims nor an
//! all-clear.

use super::groups::object_of;
use super::{Look, clean, kind_name, plural};
use crate::RunSummary;
use crate::order::has_failed_once;
use rashomon_event::finding::Origin;
use rashomon_event::{Evidence, Finding, FindingKind, Frame, Side, Verdict, pasted};
use std::fmt::Write as _;

/// Lines that are shown; the others are counted.
const MOST: usize = 8;
/// Schedules that are advised at least, twice as many as there were else.
const LEAST_RECORDINGS: u32 = 10;

/// One line for each finding that diverged, or that the recorded execution itself shows unordered and that is open; and a next
/// step. Empty if there is none.
pub fn lines(look: &Look<'_>, findings: &[Finding], run: &RunSummary) -> String {
    let is_diverged = |finding: &&Finding| matches!(finding.verdict, Verdict::Diverged { .. }) && !has_failed_once(finding);
    // What a language's library does with its own data is nobody's who reads this: it is counted among what was not decided.
    let diverged: Vec<&Finding> = findings.iter().filter(is_diverged).filter(|finding| !finding.is_of_library()).collect();
    let is_open = |finding: &&Finding| {
        run.executions > 0
            && finding.verdict == Verdict::Suspected
            && (finding.kind, finding.evidence) == (FindingKind::DataRace, Evidence::HappensBefore)
            && !finding.is_of_library()
    };
    let open: Vec<&Finding> = findings.iter().filter(is_open).collect();
    let mut out = String::new();
    let head = "suspected: unordered in the recorded execution, and not made to happen:";
    by_lines(look, &mut out, head, &open);
    let head = "diverged: suspected, forced, and not made to happen (which does not say that they cannot):";
    by_lines(look, &mut out, head, &diverged);
    if out.is_empty() {
        return out;
    }
    // Of several checks together there is no one store.
    let next = match run.store.is_empty() {
        true => "next: `--show suspicions` says all that is known of them".to_owned(),
        false => format!(
            "next: `rashomon provoke {}` holds threads at these places without any schedule; \
             `rashomon check --recordings {} …` takes more schedules; `--show suspicions` says all that is known of them",
            pasted(run.store.as_ref()),
            run.recordings.saturating_mul(2).max(LEAST_RECORDINGS)
        ),
    };
    look.line(&mut out, "  ", &next);
    out
}

fn by_lines(look: &Look<'_>, out: &mut String, head: &str, findings: &[&Finding]) {
    if findings.is_empty() {
        return;
    }
    look.line(out, "", head);
    let groups = by_object(findings);
    for group in groups.iter().take(MOST) {
        let finding = group[0];
        let (kind, subject) = (kind_name(finding.kind), clean(&finding.subject));
        let others = match group.len() {
            1 => String::new(),
            2 => ", and once more at other places".to_owned(),
            count => format!(", and {} times more at other places", count - 1),
        };
        look.line(out, "  ", &format!("{kind} [{}] {}: {subject}{others}", clean(&finding.id), sides(finding)));
    }
    if groups.len() > MOST {
        let left: usize = groups[MOST..].iter().map(Vec::len).sum();
        let _ = writeln!(out, "  and {left} more, of other objects");
    }
}

/// Those of one object together; first what happens in the program's own code, and of that what was seen unordered.
fn by_object<'a>(diverged: &[&'a Finding]) -> Vec<Vec<&'a Finding>> {
    let of_program = |side: &Side| Frame::best_known(&side.stack).is_some_and(|frame| frame.origin() == Origin::Program);
    let mut sorted = diverged.to_vec();
    let is_unordered = |finding: &Finding| finding.evidence == Evidence::HappensBefore;
    sorted.sort_by_key(|finding| (!finding.sides.iter().all(of_program), !is_unordered(finding)));
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    for finding in sorted {
        let object = object_of(&finding.subject);
        let same = |group: &&mut Vec<&Finding>| {
            object.is_some() && group[0].kind == finding.kind && object_of(&group[0].subject) == object
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups
}

/// What was predicted and never forced, with a next step; empty if something was forced, or nothing can be.
pub fn unforced(look: &Look<'_>, findings: &[Finding], run: &RunSummary) -> String {
    let is_suspected = |finding: &&Finding| finding.verdict == Verdict::Suspected && !has_failed_once(finding);
    let count = findings.iter().filter(is_suspected).count() as u64;
    let mut out = String::new();
    if count > 0 && run.executions == 0 && !run.command.is_empty() {
        let next = format!(
            "{} not shown, as nothing was forced yet: `rashomon confirm {}` makes happen what can; \
             `--show suspicions` lists them",
            plural(count, "suspicion"),
            pasted(run.store.as_ref()),
        );
        look.line(&mut out, "next: ", &next);
    }
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
