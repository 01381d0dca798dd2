//! Scripts: definitions, and what they assert.

pub use crate::error::{Place, ScriptError};
use crate::parse::{self, Include};
use crate::refine::{
    Counterexample, Limits, Model, Then, Verdict, deadlock_and_divergence_free, deadlock_free, deterministic, divergence_free,
    refines,
};
use crate::syntax::{Asked, Asserted};
use crate::term::{Processes, TermId};
use crate::transitions::Action;
use crate::{evaluate, scope, written};
use std::fmt::Write as _;

#[derive(Clone, Debug, Default)]
pub struct Script {
    pub processes: Processes,
    pub assertions: Vec<Assertion>,
}

#[derive(Clone, Debug)]
pub struct Assertion {
    pub line: usize,
    /// `assert not`: it holds if the claim does not.
    pub negated: bool,
    pub claim: Claim,
    /// As it stands in the script; empty if it was not read from one.
    pub text: String,
}

impl Assertion {
    /// What the verdict on its claim says of it; `None`: nothing.
    pub const fn holds(&self, verdict: &Verdict) -> Option<bool> {
        match verdict {
            Verdict::Holds { .. } => Some(!self.negated),
            Verdict::Fails { .. } => Some(self.negated),
            Verdict::Undecided { .. } => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Claim {
    /// Specification and implementation.
    Refines(Model, TermId, TermId),
    DeadlockFree(TermId),
    DivergenceFree(TermId),
    /// Of deadlocks and of divergence.
    Free(TermId),
    /// Whether divergence counts as well.
    Deterministic(bool, TermId),
}

impl Script {
    /// One that includes no others.
    pub fn read(text: &str) -> Result<Self, ScriptError> {
        Self::read_with(text, &mut |_| Err(String::from("one that is not allowed here")))
    }

    /// `include` reads what the script includes, by the name that it gives.
    pub fn read_with(text: &str, include: &mut Include<'_>) -> Result<Self, ScriptError> {
        let (mut program, asserted) = parse::program(text, include)?;
        scope::resolve(&mut program, &asserted)?;
        let (processes, claims) = evaluate::script(program, &asserted)?;
        let assertion = |(one, (process, other)): (Asserted, evaluate::Asserts)| Assertion {
            line: one.place.line,
            negated: one.negated,
            claim: match (one.asked, other) {
                (Asked::Refines(model, _), Some(other)) => Claim::Refines(model, process, other),
                (Asked::DivergenceFree, _) => Claim::DivergenceFree(process),
                (Asked::Free, _) => Claim::Free(process),
                (Asked::Deterministic(model), _) => Claim::Deterministic(model == Model::FailuresDivergences, process),
                (Asked::DeadlockFree | Asked::Refines(..), _) => Claim::DeadlockFree(process),
            },
            text: one.text,
        };
        Ok(Self { processes, assertions: asserted.into_iter().zip(claims).map(assertion).collect() })
    }

    pub fn check(&mut self, claim: Claim, limits: &Limits) -> Verdict {
        match claim {
            Claim::Refines(model, specification, implementation) => {
                refines(&mut self.processes, model, specification, implementation, limits)
            }
            Claim::DeadlockFree(process) => deadlock_free(&mut self.processes, process, limits),
            Claim::DivergenceFree(process) => divergence_free(&mut self.processes, process, limits),
            Claim::Free(process) => deadlock_and_divergence_free(&mut self.processes, process, limits),
            Claim::Deterministic(divergence, process) => deterministic(&mut self.processes, divergence, process, limits),
        }
    }

    /// What an assertion says.
    pub fn says(&self, assertion: &Assertion) -> String {
        if assertion.text.is_empty() {
            return written::Writer::new(&self.processes).assertion(assertion.negated, assertion.claim);
        }
        assertion.text.clone()
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

    /// The script in CSP_M without data: one definition for each that was unfolded, one name for each event.
    pub fn written(&self) -> String {
        written::Writer::new(&self.processes).script(&self.assertions)
    }
}
