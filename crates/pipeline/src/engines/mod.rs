//! The engines: one file each, registered in one list.

pub mod case;
pub mod engine;
mod interleave;
mod left;
mod portfolio;
mod unread;
mod valued;

use crate::check::plan::Plan;
use crate::engines::engine::Registered;
pub use crate::engines::portfolio::{run, run_portfolio};
use crate::findings::symbols::Symbols;
use std::time::Duration;

/// Declares the module of each engine, and lists them. Each has its `NAME`, and says with `of_check` whether and with which share
/// it takes part in a check.
macro_rules! engines {
    (first { $($first:ident,)* } then { $($engine:ident,)* }) => {
        $(pub mod $first;)*
        $(pub mod $engine;)*

        /// The names of all engines, in the order of a check.
        pub const NAMES: &[&str] = &[$($first::NAME,)* $($engine::NAME),*];
        /// Those that can be left out of a check, or asked for; the last stands for all.
        pub const OPTIONAL: &[&str] = &[$($engine::NAME,)* EVERY];

        /// Those that take part in a check, in their order.
        pub fn of_check<'a, S: Symbols + ?Sized>(asked: &mut Asked<'a>) -> Vec<Registered<'a, S>> {
            let all = [$($first::of_check(asked),)* $($engine::of_check(asked)),*].into_iter().flatten();
            let is_first = |one: &Registered<'a, S>| [$($first::NAME),*].contains(&one.engine.name());
            all.filter(|one| is_first(one) || asked.is_wanted(one.engine.name())).collect()
        }
    };
}

// One line each; of equal offers the first is taken. Nothing can be judged without the first ones.
engines! {
    first {
        record,
        predict,
    }
    then {
        force,
        detect,
        atomicity,
        correlated,
        explore,
        provoke,
        witness,
        harm,
        critical,
        adhoc,
    }
}

/// What a check is asked for.
pub struct Asked<'a> {
    /// What is recorded.
    pub plan: Option<&'a mut dyn Plan>,
    /// What is recorded already is analysed.
    pub stored: bool,
    /// The most time for searches of witnesses, after everything else; zero: none.
    pub search: Duration,
    /// Executions at the same time, where an engine makes several.
    pub jobs: usize,
    /// Time for everything behind the first recording; engines that may go on for long have a part of it.
    pub budget: Duration,
    /// Engines that take part besides those that record and analyse; empty: all.
    pub engines: Vec<String>,
    /// Whether executions of engines may become recordings: nobody asked for a number of them, or for a policy.
    pub feeds_back: bool,
}

impl Asked<'_> {
    fn is_wanted(&self, name: &str) -> bool {
        self.engines.is_empty() || self.engines.iter().any(|one| one == name || one == EVERY)
    }
}

/// Stands for all of them.
pub const EVERY: &str = "all";
