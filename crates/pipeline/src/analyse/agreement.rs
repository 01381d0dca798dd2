//! What the engines of prediction say of the same candidates, each asked alone.

use rashomon_event::{CandidateKind, Deadline, Trace, Witness, WitnessLevel};
use rashomon_predict::deciders::Decision;
use rashomon_predict::engines::opinions;
use rashomon_predict::{Engine, Options};
use rashomon_witness::Checker;
use std::fmt::Write as _;
use std::time::Duration;

/// The answers of one engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answers {
    pub witnesses: usize,
    /// Of these, correct reorderings.
    pub causal: usize,
    pub refuted: usize,
    pub undecided: usize,
    /// Witnesses that the checker does not accept.
    pub rejected: usize,
    /// States of the CSP model that were seen.
    pub states: usize,
    pub took: Duration,
}

/// How far engines agree about the candidates of traces.
#[derive(Clone, Debug, Default)]
pub struct Agreement {
    pub candidates: usize,
    /// In the order of [`Engine::ALONE`].
    pub answers: [Answers; Engine::ALONE.len()],
    /// Candidates that one engine refutes (no correct reordering has it) and of which another has a correct reordering.
    pub contradictions: usize,
    /// Per pair of engines: candidates of which the first has a witness and the second has none.
    pub only: [[usize; Engine::ALONE.len()]; Engine::ALONE.len()],
    /// There was no time for all candidates.
    pub cut_short: bool,
}

impl Agreement {
    /// Adds what engines say of one more trace.
    pub fn add(&mut self, trace: &Trace, deadline: Deadline) {
        let mut checker = None;
        let options = Options { deadline, ..Options::default() };
        let complete = opinions(trace, &options, |candidate, opinions| {
            self.candidates += 1;
            let (mut found, mut causal, mut refuted) = ([false; Engine::ALONE.len()], false, false);
            for (number, opinion) in opinions.iter().enumerate() {
                let answers = &mut self.answers[number];
                answers.took += opinion.took;
                answers.states += opinion.states;
                match &opinion.decision {
                    Decision::Witness(order) => {
                        let witness =
                            Witness { candidate: CandidateKind::clone(candidate), order: order.clone(), level: opinion.level };
                        match checker.get_or_insert_with(|| Checker::new(trace)).check(&witness) {
                            Ok(level) => {
                                found[number] = true;
                                answers.witnesses += 1;
                                answers.causal += usize::from(level == WitnessLevel::Causal);
                                causal |= level == WitnessLevel::Causal;
                            }
                            Err(_) => answers.rejected += 1,
                        }
                    }
                    Decision::Refuted => {
                        answers.refuted += 1;
                        refuted = true;
                    }
                    Decision::Ordered | Decision::Undecided => answers.undecided += 1,
                }
            }
            self.contradictions += usize::from(causal && refuted);
            for (one, has) in found.iter().enumerate() {
                for (other, has_too) in found.iter().enumerate() {
                    self.only[one][other] += usize::from(*has && !has_too);
                }
            }
        });
        self.cut_short |= !complete;
    }

    /// As a table, and what each engine has that another has not.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{:<12}{:>11}{:>9}{:>9}{:>11}{:>10}{:>10}\n",
            "engine", "witnesses", "causal", "refuted", "undecided", "states", "seconds"
        );
        for (engine, answers) in Engine::ALONE.iter().zip(&self.answers) {
            let Answers { witnesses, causal, refuted, undecided, took, .. } = answers;
            let _ = write!(text, "{:<12}{witnesses:>11}{causal:>9}{refuted:>9}{undecided:>11}", engine.name());
            // Only the CSP model has states.
            let states = if engine == &Engine::Csp { answers.states.to_string() } else { String::new() };
            let _ = writeln!(text, "{states:>10}{:>10.3}", took.as_secs_f64());
        }
        for (one, engine) in Engine::ALONE.iter().enumerate() {
            for (other, second) in Engine::ALONE.iter().enumerate().filter(|&(other, _)| self.only[one][other] > 0) {
                let _ = writeln!(text, "{} has {} that {} has not", engine.name(), self.only[one][other], second.name());
            }
        }
        let rejected: usize = self.answers.iter().map(|answers| answers.rejected).sum();
        let _ = writeln!(
            text,
            "{} candidates, {} contradictions, {rejected} witnesses that the checker does not accept{}",
            self.candidates,
            self.contradictions,
            if self.cut_short { "; there was no time for more" } else { "" }
        );
        text
    }
}
