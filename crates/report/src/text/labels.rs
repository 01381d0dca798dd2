//! Short names for locks: M0, M1, … in the order in which a finding comes to them, the same everywhere in it.
//!
//! A lock that is no global is called by the memory it lies in, which takes a line each time. With a label the line stands once.

use super::thread_words;
use rashomon_event::{Finding, FindingKind, Side};

/// Names up to this many characters stay where they are, such as `mutex table_lock`.
const SHORT: usize = 28;

/// Labels, with the names that they stand for.
pub struct Labels(Vec<(String, String)>);

impl Labels {
    /// The finding with labels, and what they mean.
    pub fn put_in(finding: &Finding) -> (Finding, Self) {
        if let Some(told) = of_one_name(finding) {
            return told;
        }
        let mut names: Vec<&str> = Vec::new();
        for held in finding.sides.iter().flat_map(|side| &side.held) {
            let name = held.name.as_str();
            let told = |text: &str| text.contains(name);
            let again = finding.sides.iter().filter(|side| told(&side.action)).count()
                + finding.steps.iter().filter(|step| told(&step.until)).count()
                + usize::from(told(&finding.subject));
            if name.chars().count() > SHORT && (again > 0 || member_of(name).is_some()) && !names.contains(&name) {
                names.push(name);
            }
        }
        let member = |name: &str| member_of(name).map(str::to_owned);
        let is_told_once = |label: &String| names.iter().filter(|other| member_of(other) == Some(label)).count() == 1;
        let label = |(number, name): (usize, &&str)| {
            (member(name).filter(is_told_once).unwrap_or_else(|| format!("M{number}")), (*name).to_owned())
        };
        let mut labels = Self(names.iter().enumerate().map(label).collect());
        // A name may be the beginning of another one.
        labels.0.sort_by_key(|(_, name)| std::cmp::Reverse(name.len()));
        let mut finding = finding.clone();
        labels.apply(&mut finding.subject);
        for side in &mut finding.sides {
            labels.apply(&mut side.action);
            side.held.iter_mut().for_each(|held| labels.apply(&mut held.name));
        }
        finding.steps.iter_mut().for_each(|step| labels.apply(&mut step.until));
        finding.notes.iter_mut().for_each(|note| labels.apply(note));
        // Which block it is was said above.
        if let Some((head, _)) = finding.subject.split_once(" in heap block of ") {
            let subject = &finding.subject;
            finding.steps.iter_mut().for_each(|step| step.until = step.until.replace(subject.as_str(), head));
        }
        labels.0.sort();
        (finding, labels)
    }

    fn apply(&self, text: &mut String) {
        for (label, name) in &self.0 {
            if text.contains(name) {
                *text = text.replace(name, label);
            }
        }
    }

    /// A line for each.
    pub fn legend(&self) -> impl Iterator<Item = String> {
        let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
        for (label, name) in &self.0 {
            let text = match name.split_once(&format!("{label} in ")) {
                // Where in the block it lies is said by the member.
                Some((kind, block)) => format!("{kind}in {}", without_offset(block)),
                None => name.clone(),
            };
            match lines.iter_mut().find(|(known, _)| *known == text) {
                Some((_, labels)) => labels.push(label),
                None => lines.push((text, vec![label])),
            }
        }
        lines.into_iter().map(|(text, labels)| format!("{}: {text}", labels.join(", ")))
    }
}

/// The block, without where in it something lies.
fn without_offset(block: &str) -> &str {
    block.rsplit_once(", ").filter(|(_, offset)| offset.ends_with(" into it")).map_or(block, |(block, _)| block)
}

/// The member in the name of a lock that lies in a block: `Stats::lock` of `mutex Stats::lock in heap block of …`.
fn member_of(name: &str) -> Option<&str> {
    let (what, _) = name.split_once(" in heap block of ")?;
    let kinds = ["mutex ", "rwlock ", "spin lock ", "lock "];
    kinds.iter().find_map(|kind| what.strip_prefix(kind)).filter(|member| member.contains("::"))
}

/// A deadlock of locks that have one name, such as two variables of one stack: who waits for whom tells them apart. `None`: it is
/// none, or does not tell.
fn of_one_name(finding: &Finding) -> Option<(Finding, Labels)> {
    let name = finding.sides.first()?.held.first()?.name.as_str();
    let holds_it_once = |side: &Side| side.held.iter().filter(|held| held.name == name).count() == 1;
    if finding.kind != FindingKind::Deadlock || finding.subject != name || !finding.sides.iter().all(holds_it_once) {
        return None;
    }
    // Whose lock each side waits for. A lock is called by the side that holds it.
    let holder = |side: &Side| {
        let rest = side.action.strip_prefix("waits for ")?.strip_prefix(name)?.strip_prefix(", held by ")?;
        finding.sides.iter().position(|other| thread_words(&other.thread) == rest)
    };
    let wanted: Vec<usize> = finding.sides.iter().map(holder).collect::<Option<_>>()?;
    let mut told = finding.clone();
    for (number, side) in told.sides.iter_mut().enumerate() {
        side.action = side.action.replacen(name, &format!("M{}", wanted[number]), 1);
        side.held.iter_mut().filter(|held| held.name == name).for_each(|held| held.name = format!("M{number}"));
        let mut steps: Vec<_> =
            told.steps.iter_mut().filter(|step| step.thread == side.thread && step.until.contains(name)).collect();
        if let Some(last) = steps.pop() {
            last.until = last.until.replace(name, &format!("M{}", wanted[number]));
        }
        steps.into_iter().for_each(|step| step.until = step.until.replace(name, &format!("M{number}")));
    }
    let labels: Vec<String> = (0..told.sides.len()).map(|number| format!("M{number}")).collect();
    told.subject = labels.join(", ");
    Some((told, Labels(labels.into_iter().map(|label| (label, name.to_owned())).collect())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_event::finding::{HeldLock, Side, Step};
    use rashomon_event::{Evidence, FindingId, FindingKind};

    #[test]
    fn a_name_that_begins_another_one_keeps_its_own_label() {
        let (block, inner) = ("mutex in heap block of 184 bytes", "mutex in heap block of 184 bytes, 88 bytes into it");
        let side = |wanted: &str, holds: &str| Side {
            thread: "0".into(),
            action: format!("waits for {wanted}, held by thread 1"),
            stack: Vec::new(),
            held: vec![HeldLock { name: holds.into(), acquired_at: Vec::new(), shared: false }],
            created_at: Vec::new(),
        };
        let finding = Finding {
            subject: format!("{block}, {inner}"),
            sides: vec![side(inner, block), side(block, inner)],
            ..Finding::suspected(FindingKind::Deadlock, Evidence::LockOrder, FindingId::new("deadlock-00000000").unwrap())
        };
        let (told, labels) = Labels::put_in(&finding);
        assert_eq!(labels.legend().collect::<Vec<_>>(), [format!("M0: {block}"), format!("M1: {inner}")]);
        assert_eq!(told.subject, "M0, M1");
        assert_eq!(told.sides[0].action, "waits for M1, held by thread 1");
        assert_eq!(told.sides[1].held[0].name, "M1");
    }

    #[test]
    fn locks_of_one_name_are_told_apart_by_who_holds_them() {
        let name = "mutex in the stack of the main thread";
        let side = |thread: &str, other: &str| Side {
            thread: thread.into(),
            action: format!("waits for {name}, held by thread {other}"),
            stack: Vec::new(),
            held: vec![HeldLock { name: name.into(), acquired_at: Vec::new(), shared: false }],
            created_at: Vec::new(),
        };
        let step = |thread: &str| Step { thread: thread.into(), until: format!("acquires {name}"), place: None };
        let finding = Finding {
            subject: name.into(),
            sides: vec![side("0", "1"), side("1", "0")],
            steps: vec![step("1"), step("0"), step("1")],
            ..Finding::suspected(FindingKind::Deadlock, Evidence::LockOrder, FindingId::new("deadlock-00000000").unwrap())
        };
        let (told, labels) = Labels::put_in(&finding);
        assert_eq!((told.subject.as_str(), labels.legend().count()), ("M0, M1", 1));
        assert_eq!(told.sides[0].action, "waits for M1, held by thread 1");
        assert_eq!(told.sides[0].held[0].name, "M0");
        assert_eq!(told.sides[1].action, "waits for M0, held by thread 0");
        let until: Vec<&str> = told.steps.iter().map(|step| step.until.as_str()).collect();
        assert_eq!(until, ["acquires M1", "acquires M1", "acquires M0"]);
    }

    #[test]
    fn members_are_their_own_labels_unless_two_have_one_name() {
        let block = "in heap block of 184 bytes allocated at make (stats.cpp:4)";
        let (first, second) = (format!("mutex Stats::lock {block}"), format!("mutex Stats::table {block}, 88 bytes into it"));
        let finding = |first: &str, second: &str| {
            let side = |wanted: &str, holds: &str| Side {
                thread: "0".into(),
                action: format!("waits for {wanted}"),
                stack: Vec::new(),
                held: vec![HeldLock { name: holds.into(), acquired_at: Vec::new(), shared: false }],
                created_at: Vec::new(),
            };
            Finding {
                subject: format!("{first}, {second}"),
                sides: vec![side(second, first), side(first, second)],
                ..Finding::suspected(FindingKind::Deadlock, Evidence::LockOrder, FindingId::new("deadlock-00000000").unwrap())
            }
        };
        let (told, labels) = Labels::put_in(&finding(&first, &second));
        assert_eq!(told.subject, "Stats::lock, Stats::table");
        assert_eq!(told.sides[0].action, "waits for Stats::table");
        assert_eq!(labels.legend().next(), Some(format!("Stats::lock, Stats::table: mutex {block}")));
        let other = first.replace(":4)", ":9)");
        let (told, _) = Labels::put_in(&finding(&first, &other));
        assert_eq!(told.subject, "M0, M1", "one member of two objects");
    }

    #[test]
    fn short_names_need_none() {
        let finding = Finding {
            subject: "mutex a, mutex b".into(),
            ..Finding::suspected(FindingKind::Deadlock, Evidence::LockOrder, FindingId::new("deadlock-00000000").unwrap())
        };
        let (told, labels) = Labels::put_in(&finding);
        assert_eq!((told, labels.legend().count()), (finding, 0));
    }
}
