//! Scripts from terms, with all parentheses.

use crate::refine::Model;
use crate::script::{Assertion, Claim};
use crate::term::{Event, Events, Processes, Term, TermId};
use rustc_hash::FxHashSet;
use std::fmt::Write as _;

/// Names that are taken, or mean something else.
const TAKEN: [&str; 12] = ["if", "then", "else", "let", "within", "not", "and", "or", "STOP", "SKIP", "channel", "assert"];

pub struct Writer<'p> {
    processes: &'p Processes,
    events: Vec<String>,
    names: Vec<String>,
}

/// Names that scripts may use: `c.1` is `c_1`, or `c_1'` where another is called so.
fn identifiers<'n>(names: impl Iterator<Item = &'n str>, taken: &mut FxHashSet<String>) -> Vec<String> {
    let mut all = Vec::new();
    for name in names {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '\'';
        let mut name: String = name.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect();
        if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
            name.insert(0, 'n');
        }
        while !taken.insert(name.clone()) {
            name.push('\'');
        }
        all.push(name);
    }
    all
}

impl<'p> Writer<'p> {
    pub fn new(processes: &'p Processes) -> Self {
        let mut taken: FxHashSet<String> = TAKEN.iter().map(|&name| String::from(name)).collect();
        let events = identifiers(processes.events.iter().map(String::as_str), &mut taken);
        let names = identifiers(processes.definitions.iter().map(|definition| definition.0.as_str()), &mut taken);
        Self { processes, events, names }
    }

    pub fn script(&self, assertions: &[Assertion]) -> String {
        let mut text = String::new();
        if !self.events.is_empty() {
            let _ = writeln!(text, "channel {}", self.events.join(", "));
        }
        for (number, (name, definition)) in (0..).zip(self.names.iter().zip(&self.processes.definitions)) {
            if !self.processes.is_pending(crate::term::Name(number)) {
                let _ = writeln!(text, "{name} = {}", self.term(definition.1));
            }
        }
        for assertion in assertions {
            let _ = writeln!(text, "assert {}", self.assertion(assertion.negated, assertion.claim));
        }
        text
    }

    pub fn assertion(&self, negated: bool, claim: Claim) -> String {
        let of = |process| self.term(process);
        let claim = match claim {
            Claim::Refines(Model::Traces, left, right) => format!("{} [T= {}", of(left), of(right)),
            Claim::Refines(Model::StableFailures, left, right) => format!("{} [F= {}", of(left), of(right)),
            Claim::Refines(Model::FailuresDivergences, left, right) => format!("{} [FD= {}", of(left), of(right)),
            Claim::DivergenceFree(process) => format!("{} :[divergence free]", of(process)),
            Claim::Free(process) => format!("{} :[deadlock free [FD]]", of(process)),
            Claim::DeadlockFree(process) => format!("{} :[deadlock free]", of(process)),
            Claim::Deterministic(true, process) => format!("{} :[deterministic [FD]]", of(process)),
            Claim::Deterministic(false, process) => format!("{} :[deterministic [F]]", of(process)),
        };
        if negated { format!("not {claim}") } else { claim }
    }

    fn event(&self, event: Event) -> &str {
        &self.events[event.0 as usize]
    }

    fn set(&self, events: &Events) -> String {
        let names: Vec<_> = events.iter().map(|&event| self.event(event)).collect();
        format!("{{{}}}", names.join(", "))
    }

    fn term(&self, id: TermId) -> String {
        let of = |id: TermId| self.term(id);
        match self.processes.term(id) {
            Term::Stop => String::from("STOP"),
            Term::Skip | Term::Done => String::from("SKIP"),
            Term::Prefix(event, next) => format!("({} -> {})", self.event(*event), of(*next)),
            Term::External(one, other) => format!("({} [] {})", of(*one), of(*other)),
            Term::Internal(one, other) => format!("({} |~| {})", of(*one), of(*other)),
            Term::Parallel(one, shared, other) if shared.is_empty() => format!("({} ||| {})", of(*one), of(*other)),
            Term::Parallel(one, shared, other) => format!("({} [| {} |] {})", of(*one), self.set(shared), of(*other)),
            Term::Hide(inner, hidden) => format!("({} \\ {})", of(*inner), self.set(hidden)),
            Term::Rename(inner, renaming) => {
                let pairs = renaming.0.iter().flat_map(|(from, to)| to.iter().map(move |to| (*from, *to)));
                let pairs: Vec<_> = pairs.map(|(from, to)| format!("{} <- {}", self.event(from), self.event(to))).collect();
                if pairs.is_empty() { of(*inner) } else { format!("{}[[{}]]", of(*inner), pairs.join(", ")) }
            }
            Term::Interrupt(inner, by) => format!("({} /\\ {})", of(*inner), of(*by)),
            Term::Sequence(first, then) => format!("({} ; {})", of(*first), of(*then)),
            Term::Call(name) => self.names[name.0 as usize].clone(),
        }
    }
}
