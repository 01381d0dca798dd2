//! What an engine is: whoever turns time into findings.
//!
//! An engine works in *units*: one more recording, one forced schedule, one round of executions. It takes what is known of the
//! program, recordings and leads, from the [`Case`], and what it makes goes there: leads, outcomes (findings in the store) and
//! new recordings. So engines know the case and not each other, and whoever runs them may take their units in any order: one
//! engine after the other, or the best offer first ([`crate::engines::portfolio`]).
//!
//! The whole of a small one but its `of_check`, `sleeper.rs`, whose line in `engines!` is `sleeper,`:
//!
//! ```
//! use rashomon_event::Deadline;
//! use rashomon_pipeline::engines::case::Case;
//! use rashomon_pipeline::engines::engine::{Engine, Offer, Yield};
//! use rashomon_pipeline::error::PipelineError;
//! use rashomon_pipeline::findings::symbols::Symbols;
//! use std::time::Duration;
//!
//! pub const NAME: &str = "sleeper";
//!
//! /// Waits once, and finds nothing.
//! #[derive(Default)]
//! pub struct Sleeper {
//!     slept: bool,
//! }
//!
//! impl<S: Symbols + ?Sized> Engine<S> for Sleeper {
//!     fn name(&self) -> &'static str {
//!         NAME
//!     }
//!
//!     fn offer(&mut self, _case: &Case<'_, '_, S>) -> Option<Offer> {
//!         (!self.slept).then_some(Offer { takes: Duration::from_millis(1), gives: 0.0 })
//!     }
//!
//!     fn step(&mut self, _case: &mut Case<'_, '_, S>, until: Deadline) -> Result<Yield, PipelineError> {
//!         std::thread::sleep(until.limit(Duration::from_millis(1)));
//!         self.slept = true;
//!         Ok(Yield::default())
//!     }
//!
//!     fn finish(&mut self, _case: &mut Case<'_, '_, S>) -> Result<(), PipelineError> {
//!         Ok(())
//!     }
//! }
//! ```

use crate::check::budget::Deadlines;
use crate::engines::case::Case;
use crate::error::PipelineError;
use crate::findings::symbols::Symbols;
use rashomon_event::Deadline;
use std::time::Duration;

/// A source of findings.
///
/// The order of calls: `offer`, and `step` after each offer that is taken, as often as there are offers; then `finish`, once. An
/// engine whose offer is not taken keeps it.
pub trait Engine<S: Symbols + ?Sized> {
    /// How options and reports call it.
    fn name(&self) -> &'static str;

    /// What the next unit costs and may give. `None`: with what is known now nothing is left; what others add to the case may
    /// change that. Executes nothing.
    fn offer(&mut self, case: &Case<'_, '_, S>) -> Option<Offer>;

    /// Does the next unit. `until` is both the share and the token that cancels it: it is handed down to whatever takes long, and
    /// nothing is begun after it. A unit that it cuts short decides nothing, and is there to be done again. An error ends the
    /// whole command; an engine for which an execution that cannot be made is no reason to lose what is known says so in
    /// [`Case::stopped`].
    fn step(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<Yield, PipelineError>;

    /// Nothing more is asked of it: what is left open is counted, and what it left lying about removed.
    fn finish(&mut self, case: &mut Case<'_, '_, S>) -> Result<(), PipelineError>;

    /// For the report: what it has tried, and what it has left.
    fn account(&self) -> Account {
        Account::default()
    }
}

/// What an engine did and did not do, each in a few words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub tried: Option<String>,
    pub left: Option<String>,
    /// Pairs of critical sections that were not interleaved.
    pub pairs: u64,
}

/// When an engine has its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Before all others.
    First,
    /// When its offer is the best.
    ByOffer,
    /// After all others.
    Last,
}

/// What one unit of work is worth, to be compared with those of other engines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offer {
    /// Expected.
    pub takes: Duration,
    /// Leads and proofs that are expected of it.
    pub gives: f64,
}

impl Offer {
    /// By which offers are compared.
    pub fn per_second(&self) -> f64 {
        const LEAST: f64 = 0.001;
        self.gives / self.takes.as_secs_f64().max(LEAST)
    }
}

/// What one unit of work gave. It is all in the case already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Yield {
    pub recordings: u32,
    /// New ones.
    pub leads: usize,
    /// Findings proven that were not before.
    pub proven: usize,
}

/// How much of the budget an engine gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// What is left of it.
    Whole,
    /// Of what is left so much. Nothing is left: it has no turn at all.
    AtMost(Duration),
}

impl Share {
    /// The share begins now; `None`: there is none.
    pub(super) fn begin(self, deadlines: &Deadlines) -> Option<Deadline> {
        match self {
            Self::Whole => Some(deadlines.total),
            Self::AtMost(most) => Some(deadlines.total.limit(most)).filter(|left| !left.is_zero()).map(Deadline::within),
        }
    }
}

/// An engine of a check, with its share.
pub struct Registered<'a, S: ?Sized> {
    pub engine: Box<dyn Engine<S> + 'a>,
    pub share: Share,
    pub turn: Turn,
}

/// Offers from what an engine's units have taken and given so far.
#[derive(Clone, Copy, Debug)]
pub struct Expectation {
    units: f64,
    given: f64,
    spent: Duration,
}

impl Expectation {
    /// Before the first unit: what one may give, and take.
    pub const fn new(gives: f64, takes: Duration) -> Self {
        Self { units: 1.0, given: gives, spent: takes }
    }

    /// The first guess weighs as much as so many units: where one is small, a few in vain say little.
    pub fn weighing(self, units: u32) -> Self {
        let weight = f64::from(units.max(1));
        Self { units: self.units * weight, given: self.given * weight, spent: self.spent.mul_f64(weight) }
    }

    pub fn learn(&mut self, made: Yield, took: Duration) {
        self.units += 1.0;
        self.given += (made.leads + made.proven) as f64;
        self.spent += took;
    }

    /// The mean of all, the first guess among them.
    pub fn offer(&self) -> Offer {
        Offer { takes: self.spent.div_f64(self.units), gives: self.given / self.units }
    }
}
