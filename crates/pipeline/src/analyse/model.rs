//! The CSP models of traces as scripts, for other checkers of refinement.

use rashomon_event::Trace;
use rashomon_refinement::filter::suspicious;
use rashomon_refinement::objects::Objects;
use rashomon_refinement::terms::{About, Form, script};
use std::fmt::Write as _;

/// A script, and what it leaves out.
pub struct Exported {
    pub text: String,
    /// Shared objects that are worth a model.
    pub suspicious: usize,
    /// Of these, those beyond the limit.
    pub left_out: usize,
}

/// A model for each shared object that the hybrid filter leaves, no more than so many, and one for deadlocks.
pub fn exported(trace: &Trace, most: usize) -> Exported {
    let objects = Objects::new(trace);
    let suspicious = suspicious(trace, &objects);
    let asked = &suspicious[..suspicious.len().min(most)];
    let questions: Vec<About> = asked.iter().copied().map(About::Race).chain([About::Deadlock]).collect();
    let mut text = String::from(
        "-- The model of a trace: Carril, Tichy, Interleaving Generation for Data Race and Deadlock Reproduction, SEPS 2015.\n\
         -- An assertion about NO_RACE fails if two threads can touch the object at the same time; its counterexample is the\n\
         -- schedule.\n",
    );
    for &object in asked {
        let place = objects.all[object];
        let _ = writeln!(text, "-- v{}: bytes {:#x} to {:#x}", object + 1, place.from, place.to - 1);
    }
    text.push_str(&script(trace, &objects, &questions, &[Form::Schedule]).written());
    Exported { text, suspicious: suspicious.len(), left_out: suspicious.len() - asked.len() }
}
