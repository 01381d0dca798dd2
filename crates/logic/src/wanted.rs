//! Inputs that an execution is to have: behind which step a step of a certain place is to come. Here is what the next step of a
//! thread would do to them.
//!
//! D. Wolff, Z. Shi, G. J. Duck, U. Mathur, A. Roychoudhury, "Greybox Fuzzing for Concurrency Testing", ASPLOS 2024, §3.2-3.3:
//! abstract schedules (sets of constraints on reads-from pairs, by place in the code) and the scheduler that brings them about.
//! Deviation 1: operations on a synchronisation object have inputs as well, the operation on it before them. Deviation 2: a
//! constraint is over once a step of that place has had that input; in loops it says nothing of later rounds. Deviation 3: that
//! a read sees the initial value is asked for by its coming before the writers that are known.
//!
//! Guarantee: none. Wishes steer, and where they contradict each other or the program they are dropped.

use rashomon_abi::exploration::{Wanted, Wish};

/// What a thread stands before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub site: u64,
    /// Where it meets others; 0: nowhere.
    pub object: u64,
    pub takes: bool,
    pub gives: bool,
}

/// What a step would do, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    Spoils,
    None,
    Serves,
}

/// What the step would do to one wish. `last`: the place of the step that gave the object its present value. `awaited`: whether a
/// thread stands at the wish's `to` before this object.
pub fn effect(wanted: &Wanted, step: &Standing, last: u64, awaited: bool) -> Effect {
    if step.object == 0 {
        return Effect::None;
    }
    let at_end = step.takes && step.site == wanted.to;
    let at_begin = step.gives && step.site == wanted.from;
    match wanted.wish {
        Wish::From if at_end => {
            if last == wanted.from {
                Effect::Serves
            } else {
                Effect::Spoils
            }
        }
        Wish::From if at_begin => {
            if awaited {
                Effect::Serves
            } else {
                Effect::None
            }
        }
        // What the other one waits for, or will come for, would be lost.
        Wish::From if step.gives && last == wanted.from => Effect::Spoils,
        Wish::NotFrom if at_end && last == wanted.from => Effect::Spoils,
        Wish::Before if at_end => Effect::Serves,
        Wish::Before if at_begin => Effect::Spoils,
        _ => Effect::None,
    }
}

/// Whether the step ends the wish.
pub fn ends(wanted: &Wanted, step: &Standing, last: u64) -> bool {
    let at_end = step.takes && step.site == wanted.to;
    match wanted.wish {
        Wish::From => at_end && last == wanted.from,
        Wish::NotFrom => at_end && last != wanted.from,
        Wish::Before => at_end || step.gives && step.site == wanted.from,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READER: u64 = 10;
    const WRITER: u64 = 20;
    const OTHER: u64 = 30;

    fn at(site: u64, takes: bool) -> Standing {
        Standing { site, object: 64, takes, gives: !takes }
    }

    #[test]
    fn a_read_waits_for_its_writer_and_is_let_through_at_once_then() {
        let wanted = Wanted { wish: Wish::From, to: READER, from: WRITER };
        assert_eq!(effect(&wanted, &at(READER, true), OTHER, true), Effect::Spoils);
        assert_eq!(effect(&wanted, &at(WRITER, false), OTHER, true), Effect::Serves);
        assert_eq!(effect(&wanted, &at(WRITER, false), OTHER, false), Effect::None, "nobody waits for it yet");
        assert_eq!(effect(&wanted, &at(OTHER, false), WRITER, true), Effect::Spoils);
        assert_eq!(effect(&wanted, &at(OTHER, false), WRITER, false), Effect::Spoils, "the reader is still to come");
        assert_eq!(effect(&wanted, &at(READER, true), WRITER, true), Effect::Serves);
        assert!(ends(&wanted, &at(READER, true), WRITER));
        assert!(!ends(&wanted, &at(READER, true), OTHER));
    }

    #[test]
    fn a_read_waits_until_another_has_written() {
        let wanted = Wanted { wish: Wish::NotFrom, to: READER, from: WRITER };
        assert_eq!(effect(&wanted, &at(READER, true), WRITER, true), Effect::Spoils);
        assert_eq!(effect(&wanted, &at(READER, true), OTHER, true), Effect::None);
        assert_eq!(effect(&wanted, &at(OTHER, false), WRITER, true), Effect::None);
        assert!(ends(&wanted, &at(READER, true), OTHER));
    }

    #[test]
    fn writers_wait_for_a_read_that_comes_before_them() {
        let wanted = Wanted { wish: Wish::Before, to: READER, from: WRITER };
        assert_eq!(effect(&wanted, &at(WRITER, false), 0, false), Effect::Spoils);
        assert_eq!(effect(&wanted, &at(READER, true), 0, true), Effect::Serves);
        assert!(ends(&wanted, &at(READER, true), 0));
        assert!(ends(&wanted, &at(WRITER, false), 0), "it came first all the same");
    }

    #[test]
    fn what_meets_nobody_does_nothing() {
        let wanted = Wanted { wish: Wish::Before, to: READER, from: WRITER };
        let nowhere = Standing { object: 0, ..at(WRITER, false) };
        assert_eq!(effect(&wanted, &nowhere, 0, false), Effect::None);
    }
}
