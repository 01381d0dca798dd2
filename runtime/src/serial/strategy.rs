//! The next step of an exploration: what the list decides, then the strategy; and what the choice means for those who are not
//! chosen. Papers and deviations: [`super::explore`].

use crate::serial::exploration::{set, stop, word, write};
use crate::serial::explore::{CHANGES, random};
use crate::serial::{orders, wanted};
use crate::system::memory::List;
use crate::system::thread::{NO_THREAD, Thread, known};
use core::sync::atomic::{AtomicU32, Ordering::*};
use rashomon_abi::exploration::{HEAD_WORDS, SET_THREADS, end, field, record, strategy};
use rashomon_abi::record::Op;
use rashomon_logic::pct;

/// How often all who can go on may have done nothing but poll, in turns that are fair to all, with nothing changed in between:
/// nothing ever will be.
const ROUNDS_OF_LOOKS: u32 = 10_000;
static ROUNDS: AtomicU32 = AtomicU32::new(0);

/// Sets in the log have the first threads only.
fn bit(number: u32) -> u64 {
    if (number as usize) < SET_THREADS { 1 << number } else { 0 }
}

fn bits(numbers: &List<u32>, of: impl Fn(&Thread) -> bool) -> u64 {
    numbers.as_slice().iter().filter(|&&number| of(known(number))).fold(0, |set, &number| set | bit(number))
}

pub fn pick(enabled: &List<u32>, outgoing: u32) -> Option<u32> {
    let of = known;
    let all = enabled.as_slice();
    if all.is_empty() {
        return None;
    }
    let choices = word(field::CHOICES);
    if choices >= word(field::STEPS) {
        stop(end::STEPS);
    }
    let decisions = word(field::DECISIONS);
    if choices + 1 == decisions {
        all.iter().for_each(|&number| of(number).serial().explore.asleep.set(word(field::ASLEEP) & bit(number) != 0));
    }
    let decided = (choices < decisions).then(|| word(HEAD_WORDS + choices as usize) as u32);
    let met = decided.filter(|number| all.contains(number));
    if decided.is_some() && met.is_none() && word(field::UNMET) == 0 {
        set(field::UNMET, choices + 1);
    }
    if all.iter().all(|&number| of(number).serial().explore.waiting.get()) {
        if ROUNDS.fetch_add(1, Relaxed) >= ROUNDS_OF_LOOKS {
            stop(end::STEPS);
        }
        // Who ran last still waits for the others.
        all.iter().for_each(|&number| of(number).serial().explore.waiting.set(number == outgoing && all.len() > 1));
    }
    let rests = |number: u32| of(number).serial().explore.waiting.get() || of(number).serial().explore.asleep.get();
    let is_last = |number: u32| word(field::LAST) & bit(number) != 0;
    // Those that come last stay out of it, unless the list says otherwise.
    let others = !met.is_some_and(is_last) && all.iter().any(|&number| !is_last(number) && !rests(number));
    let passed_over = |number: u32| rests(number) || others && is_last(number);
    let next = match met {
        Some(number) => number,
        None if all.iter().all(|&number| passed_over(number))
            && all.iter().any(|&number| of(number).serial().explore.asleep.get()) =>
        {
            stop(end::ASLEEP)
        }
        None => by_strategy(enabled, &passed_over, outgoing, choices),
    };
    let head = record::head(record::CHOICE, next, 0, 0, false);
    let asleep = bits(enabled, |thread| thread.serial().explore.asleep.get());
    let waiting = bits(enabled, |thread| thread.serial().explore.waiting.get());
    let can = bits(enabled, |thread| !(others && is_last(thread.number.get())));
    write([head, can, asleep & can, waiting & can, 0, 0, 0, choices]);
    set(field::CHOICES, choices + 1);
    Some(next)
}

/// One of those that are not passed over; there is one.
fn by_strategy(enabled: &List<u32>, passed_over: &dyn Fn(u32) -> bool, outgoing: u32, choices: u64) -> u32 {
    let of = known;
    let candidates = || enabled.as_slice().iter().copied().filter(|&number| !passed_over(number));
    let preferred = candidates().find(|&number| {
        of(number).schedule_index.get() != NO_THREAD && word(field::PREFER) == of(number).schedule_index.get() as u64 + 1
    });
    if let Some(number) = preferred {
        return number;
    }
    let found = match word(field::STRATEGY) {
        strategy::RANDOM => candidates().nth((random() % candidates().count().max(1) as u64) as usize),
        strategy::PCT => {
            for (index, change) in CHANGES.iter().enumerate() {
                if change.load(Relaxed) == choices && enabled.as_slice().contains(&outgoing) {
                    of(outgoing).serial().explore.priority.set(pct::changed(index));
                }
            }
            candidates().max_by_key(|&number| of(number).serial().explore.priority.get())
        }
        strategy::POS => candidates().max_by_key(|&number| of(number).serial().explore.priority.get()),
        strategy::WANTED => candidates().max_by_key(|&number| {
            let pending = &of(number).serial().explore;
            (wanted::effect_of(pending, enabled.as_slice()), pending.priority.get())
        }),
        strategy::ORDERED | strategy::ORDERED_POS => candidates().max_by_key(|&number| {
            let thread = of(number);
            (!orders::waits(thread), thread.serial().explore.priority.get())
        }),
        _ => candidates().find(|&number| number == outgoing),
    };
    found.or_else(|| candidates().next()).unwrap_or(outgoing)
}

/// Operations have priorities of their own, and new ones after what they depend on.
pub fn draws_anew() -> bool {
    [strategy::POS, strategy::WANTED, strategy::ORDERED_POS].contains(&word(field::STRATEGY))
}

/// What the choice of a thread means for the others.
pub fn step(thread: &Thread, live: &[u32]) {
    let operation = thread.serial().explore.operation.get();
    wanted::made(&thread.serial().explore);
    orders::made(thread);
    let polls = operation.class != 0 && !operation.writes() || [Op::Yield as u64, Op::Sleep as u64].contains(&operation.op);
    thread.serial().explore.asleep.set(false);
    if !polls {
        ROUNDS.store(0, Relaxed);
    }
    for &number in live.iter().filter(|&&number| number != thread.number.get()) {
        let other = known(number);
        if !polls {
            other.serial().explore.waiting.set(false);
        }
        if operation.depends(&other.serial().explore.operation.get()) {
            other.serial().explore.asleep.set(false);
            if draws_anew() {
                other.serial().explore.priority.set(random());
            }
        }
    }
    thread.serial().explore.waiting.set(false);
}
