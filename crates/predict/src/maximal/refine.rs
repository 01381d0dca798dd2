//! Runs the order of a model, and says what it disregards.
//!
//! Two rules are not said from the start, for they are about pairs and triples of events: that sections of a lock exclude each
//! other, and that a read sees no other write than those it may see. Each round adds at least one clause that the model does not
//! satisfy, and there are finitely many.

use super::encode::{Choice, Encoding, Number};
use crate::index::Effect;
use rashomon_sat::Model;

/// Adds what the model disregards. None: its order is a reordering of the trace.
pub fn refine(encoding: &mut Encoding<'_, '_, '_>, model: &Model) -> usize {
    let index = encoding.facts.index;
    let order: Vec<Number> =
        model.order.iter().map(|node| node.index()).filter(|&number| model.holds(encoding.steps[number].runs)).collect();
    let mut last: Vec<Option<Number>> = vec![None; encoding.cells];
    let mut open: Vec<Vec<u32>> = vec![Vec::new(); index.locks];
    for (thread, &count) in encoding.part.prefix.iter().enumerate().filter(|(_, count)| **count > 0) {
        index.open_at(thread, count).for_each(|section| open[index.sections[section as usize].lock as usize].push(section));
    }
    let (mut overlaps, mut interferences) = (Vec::new(), Vec::new());
    for &number in &order {
        let step = &encoding.steps[number];
        match step.effect {
            Effect::None => {}
            Effect::Acquire(section) => {
                let begins = &index.sections[section as usize];
                let held = &mut open[begins.lock as usize];
                let others = held.iter().filter(|&&other| {
                    let other = &index.sections[other as usize];
                    other.thread != begins.thread && other.conflicts(begins)
                });
                overlaps.extend(others.map(|&other| (other.min(section), other.max(section))));
                held.push(section);
            }
            Effect::Release(section) => open[index.sections[section as usize].lock as usize].retain(|&other| other != section),
        }
        for obligation in step.reads.iter().filter(|obligation| model.holds(obligation.kept)) {
            let seen = last[obligation.cell];
            let may_see = |choice: &Choice| choice.writer == seen && choice.needs.iter().all(|&kept| model.holds(kept));
            if obligation.choices.iter().any(may_see) {
                continue;
            }
            let chosen = obligation.choices.iter().find(|choice| model.holds(choice.literal));
            if let (Some(choice), Some(seen)) = (chosen, seen) {
                interferences.push((number, choice.clone(), seen));
            }
        }
        step.writes.iter().for_each(|&cell| last[cell] = Some(number));
    }
    overlaps.iter().for_each(|&(one, other)| encoding.exclude(one, other));
    interferences.iter().for_each(|(reader, choice, other)| keep_out(encoding, *reader, choice, *other));
    overlaps.len() + interferences.len()
}

/// If a read is to see this choice, another write that runs comes before what is seen or after the read.
fn keep_out(encoding: &mut Encoding<'_, '_, '_>, reader: Number, choice: &Choice, other: Number) {
    let mut clause = vec![!choice.literal, !encoding.steps[other].runs, encoding.before(reader, other)];
    if let Some(writer) = choice.writer {
        clause.push(encoding.before(other, writer));
    }
    encoding.problem().clause(&clause);
}
