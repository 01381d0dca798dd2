//! Inputs that an exploration wants ([`rashomon_logic::wanted`]): the table of its file, whose places have given what last, and
//! the choice among threads.

use crate::serial::exploration::{wanted_start, word};
use crate::serial::explore::Pending;
use crate::system::thread::known;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use rashomon_abi::exploration::{MOST_WANTED, WANTED_WORDS, Wanted, Wish, field};
use rashomon_logic::wanted::{Effect, Standing, effect, ends};

/// Those that are over, as bits.
static OVER: AtomicU32 = AtomicU32::new(0);
const OBJECTS: usize = 1 << 10;
/// Objects, and the places that gave them their present values. An object that finds its slot taken takes it: what is forgotten
/// counts as nobody's.
static LAST: [[AtomicU64; 2]; OBJECTS] = [const { [AtomicU64::new(0), AtomicU64::new(0)] }; OBJECTS];

fn slot(object: u64) -> &'static [AtomicU64; 2] {
    let mixed = (object >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &LAST[(mixed >> 54) as usize % OBJECTS]
}

fn last(object: u64) -> u64 {
    let [of, site] = slot(object);
    if of.load(Relaxed) == object { site.load(Relaxed) } else { 0 }
}

fn standing(pending: &Pending) -> Standing {
    let operation = pending.operation.get();
    Standing { site: pending.site.get(), object: operation.meets_at(), takes: operation.takes(), gives: operation.gives() }
}

/// With its bit.
fn open() -> impl Iterator<Item = (u32, Wanted)> {
    let over = OVER.load(Relaxed);
    let count = (word(field::WANTED) as usize).min(MOST_WANTED);
    (0..count).filter(move |index| over >> index & 1 == 0).map(|index| {
        let at = wanted_start() + index * WANTED_WORDS;
        (1 << index, Wanted { wish: Wish::of(word(at)), to: word(at + 1), from: word(at + 2) })
    })
}

/// What the step that a thread stands before would do to what is wanted; that it would spoil something counts most.
pub fn effect_of(pending: &Pending, live: &[u32]) -> Effect {
    let step = standing(pending);
    let awaited = |wanted: &Wanted| {
        live.iter().any(|&number| {
            let other = standing(&known(number).serial().explore);
            other.takes && other.site == wanted.to && other.object == step.object
        })
    };
    let effects = open().map(|(_, wanted)| effect(&wanted, &step, last(step.object), awaited(&wanted)));
    effects.fold(Effect::None, |all, one| match (all, one) {
        (Effect::Spoils, _) | (_, Effect::Spoils) => Effect::Spoils,
        (all, one) => all.max(one),
    })
}

/// A thread makes the step that it stands before.
pub fn made(pending: &Pending) {
    let step = standing(pending);
    if word(field::WANTED) == 0 || step.object == 0 {
        return;
    }
    for (bit, wanted) in open() {
        if ends(&wanted, &step, last(step.object)) {
            OVER.fetch_or(bit, Relaxed);
        }
    }
    if step.gives {
        let [of, site] = slot(step.object);
        of.store(step.object, Relaxed);
        site.store(step.site, Relaxed);
    }
}
