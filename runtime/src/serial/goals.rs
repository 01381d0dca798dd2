//! The goal of a schedule: who stands at it, and what comes of it when the turns are done.

use crate::record::recorder;
use crate::serial::debugged::{self, rashomon_finding_reached};
use crate::serial::replay::{conflict, current_index, over};
use crate::serial::{elastic, named, shutdown};
use crate::system::thread::{Thread, known};
use crate::system::{config, header};
use rashomon_abi::control::{self, after, goal};
use rashomon_abi::header::{field, outcome};
use rashomon_abi::record::Op;

pub fn is_goal(index: usize) -> bool {
    let goals = config::tables().goals;
    (0..config::count(control::field::GOALS)).any(|goal| config::word(goals + goal * control::GOAL_WORDS + 1) == index as u64)
}

/// The thread, which stands still, is about to make its access.
pub fn say_goal_reached(thread: &Thread) {
    let access = thread.serial().goal.get();
    let executed = thread.accesses_since_sync();
    let arguments = [access.class, access.bytes, executed];
    recorder::sync(thread, Op::GoalReached, access.address, access.atomic as u16, access.site, &arguments);
}

pub fn turns_done() {
    match config::word(control::field::GOAL) {
        goal::RACE => {
            let side = |index: usize| {
                let thread = config::word(config::tables().goals + index * control::GOAL_WORDS) as usize;
                let number = named::number(thread)?;
                Some((number, known(number).serial().goal.get()))
            };
            let sides = (side(0), side(1));
            over(0);
            let (Some((a, first)), Some((b, second))) = sides else {
                return if elastic::asked() { begin_to_hold() } else { conclude(outcome::NO_OVERLAP, 0, 0) };
            };
            let met = conflict(&first, &second);
            if elastic::asked() {
                // Only those who stand there have a goal: who went on has none.
                if !met || a == b || ![a, b].into_iter().all(stands_at_goal) {
                    return begin_to_hold();
                }
                for number in [a, b] {
                    say_goal_reached(known(number));
                }
            }
            if met {
                debugged::meet(&first, &second);
            }
            conclude(if met { outcome::CO_ENABLED } else { outcome::NO_OVERLAP }, a as u64, b as u64);
        }
        goal::DEADLOCK if elastic::asked() => {
            over(0);
            begin_to_hold();
        }
        goal::DEADLOCK => over(2),
        _ => {
            over(0);
            header::set(field::OUTCOME, outcome::SCHEDULE_DONE);
        }
    }
}

/// Whether the thread stands at the position of its goal's turn, where it came elastically.
fn stands_at_goal(number: u32) -> bool {
    let goals = config::tables().goals;
    let thread = known(number);
    (0..config::count(control::field::GOALS)).any(|goal| {
        let entry = goals + goal * control::GOAL_WORDS;
        config::word(entry) == thread.schedule_index.get() as u64 && elastic::stands_at(thread, config::word(entry + 1) as usize)
    })
}

/// The turns are over or were left: those who stand at their goals are held there.
pub fn begin_to_hold() {
    elastic::begin(stands_at_goal);
}

/// The outcome is decided: the process ends here, or a debugger looks at it and the policy goes on.
pub fn conclude(result: u64, a: u64, b: u64) {
    header::set(field::OUTCOME_THREAD_A, a);
    header::set(field::OUTCOME_THREAD_B, b);
    header::set(field::OUTCOME_TURN, current_index() as u64);
    header::set(field::OUTCOME, result);
    if config::word(control::field::AFTER) == after::CONTINUE {
        rashomon_finding_reached();
    } else {
        shutdown::stop();
    }
}
