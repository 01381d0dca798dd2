//! Scripts: definitions, and what they assert.

use crate::parse::{self, ParseError};
use crate::refine::{
    Counterexample, Limits, Model, Then, Verdict, deadlock_and_divergence_free, deadlock_free, divergence_free, refines,
};
use crate::term::{Processes, TermId};
use crate::transitions::Action;
use std::fmt::Write as _;

#[derive(Clone, Debug, Default)]
pub struct Script {
    pub processes: Processes,
    pub assertions: Vec<Assertion>,
}

#[derive(Clone, Debug)]
pub struct Assertion {
    pub line: usize,
    pub claim: Claim,
}

#[derive(Clone, Copy, Debug)]
pub enum Claim {
    /// Specification and implementation.
    Refines(Model, TermId, TermId),
    DeadlockFree(TermId),
    DivergenceFree(TermId),
    /// Of deadlocks and of divergence.
    Free(TermId),
}

impl Script {
    pub fn read(text: &str) -> Result<Self, ParseError> {
        parse::script(text)
    }

    pub fn check(&mut self, claim: Claim, limits: &Limits) -> Verdict {
        match claim {
            Claim::Refines(model, specification, implementation) => {
                refines(&mut self.processes, model, specification, implementation, limits)
            }
            Claim::DeadlockFree(process) => deadlock_free(&mut self.processes, process, limits),
            Claim::DivergenceFree(process) => divergence_free(&mut self.processes, process, limits),
            Claim::Free(process) => deadlock_and_divergence_free(&mut self.processes, process, limits),
        }
    }

    pub fn claim(&self, claim: Claim) -> String {
        let of = |process| parse::written(&self.processes, process);
        match claim {
            Claim::Refines(Model::Traces, left, right) => format!("{} [T= {}", of(left), of(right)),
            Claim::Refines(Model::StableFailures, left, right) => format!("{} [F= {}", of(left), of(right)),
            Claim::Refines(Model::FailuresDivergences, left, right) => format!("{} [FD= {}", of(left), of(right)),
            Claim::DivergenceFree(process) => format!("{} :[divergence free]", of(process)),
            Claim::Free(process) => format!("{} :[deadlock free [FD]]", of(process)),
            Claim::DeadlockFree(process) => format!("{} :[deadlock free]", of(process)),
        }
    }

    /// In one line.
    pub fn counterexample(&self, found: &Counterexample) -> String {
        let name = |action: &Action| match action {
            Action::Visible(event) => self.processes.events[event.0 as usize].clone(),
            Action::Tick => String::from("(terminates)"),
            Action::Tau => String::from("(internal)"),
        };
        let trace: Vec<_> = found.trace.iter().map(name).collect();
        let mut text = if trace.is_empty() { String::from("at once") } else { trace.join(", ") };
        if found.then == Then::Diverges {
            text.push_str("; then it may go on for ever by itself");
        }
        if let Then::Offers(offers) = &found.then {
            let offers: Vec<_> = offers.iter().map(name).collect();
            let offers = if offers.is_empty() { String::from("nothing") } else { format!("only {}", offers.join(", ")) };
            let _ = write!(text, "; then it offers {offers}");
        }
        text
    }

    /// The script in CSP_M again.
    pub fn written(&self) -> String {
        let mut text = String::new();
        if !self.processes.events.is_empty() {
            let _ = writeln!(text, "channel {}", self.processes.events.join(", "));
        }
        for (name, body) in &self.processes.definitions {
            let _ = writeln!(text, "{name} = {}", parse::written(&self.processes, *body));
        }
        for assertion in &self.assertions {
            let _ = writeln!(text, "assert {}", self.claim(assertion.claim));
        }
        text
    }
}
