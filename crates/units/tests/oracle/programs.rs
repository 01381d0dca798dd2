//! Random executions.

use proptest::prelude::*;
use rashomon_units::{Bytes, Event, Line, Lock, Meeting, Mode, Object, Register, Step, Thread};
use std::collections::BTreeMap;
use std::ops::Range;

/// Across the border of a word.
pub const ADDRESSES: Range<u64> = 0x1005..0x100b;

#[derive(Clone, Debug)]
pub enum Action {
    Load(u64, u32, Vec<u32>, u32),
    Store(u64, u32, Vec<u32>, Vec<u32>),
    Compute(u32, Vec<u32>),
    Branch(Vec<u32>, u32),
    Reach(u32),
    Enter(Vec<Vec<u32>>),
    Exit(Vec<u32>, Option<u32>),
    Acquire(u64),
    Release(u64),
    Signal(u64),
    Wait(u64),
    Fork(u32),
    Join(u32),
    Renew(u64, u64),
}

fn registers(most: usize) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(0u32..3, 0..=most)
}

impl Arbitrary for Action {
    type Parameters = ();
    type Strategy = BoxedStrategy<Action>;

    fn arbitrary_with(_: ()) -> BoxedStrategy<Action> {
        let address = || ADDRESSES.start..ADDRESSES.end - 2;
        prop_oneof![
            8 => (address(), 1u32..=3, registers(1), 0u32..3).prop_map(|(at, len, base, into)| Action::Load(at, len, base, into)),
            8 => (address(), 1u32..=3, registers(1), registers(2)).prop_map(|(at, len, base, from)| {
                Action::Store(at, len, base, from)
            }),
            2 => (0u32..3, registers(2)).prop_map(|(into, from)| Action::Compute(into, from)),
            2 => (registers(2), 0u32..3).prop_map(|(on, meeting)| Action::Branch(on, meeting)),
            2 => (0u32..3).prop_map(Action::Reach),
            1 => prop::collection::vec(registers(2), 0..3).prop_map(Action::Enter),
            1 => (registers(2), prop::option::of(0u32..3)).prop_map(|(result, into)| Action::Exit(result, into)),
            3 => (0u64..2).prop_map(Action::Acquire),
            3 => (0u64..2).prop_map(Action::Release),
            1 => (0u64..2).prop_map(Action::Signal),
            1 => (0u64..2).prop_map(Action::Wait),
            1 => (1u32..3).prop_map(Action::Fork),
            1 => (1u32..3).prop_map(Action::Join),
            1 => (address(), 1u64..4).prop_map(|(at, len)| Action::Renew(at, len)),
        ]
        .boxed()
    }
}

fn leak(numbers: &[u32]) -> &'static [Register] {
    numbers.iter().copied().map(Register).collect::<Vec<_>>().leak()
}

/// What of the actions can happen, as events. The line of each is its number.
pub fn events(actions: &[(u32, Action)]) -> Vec<Event<'static>> {
    let mut holders: BTreeMap<u64, u32> = BTreeMap::new();
    let mut events: Vec<Event<'static>> = Vec::new();
    for (thread, action) in actions {
        let step = match action {
            Action::Load(at, len, through, into) => {
                Step::Load { bytes: Bytes::new(*at, *len), address: leak(through), into: Register(*into) }
            }
            Action::Store(at, len, through, from) => {
                Step::Store { bytes: Bytes::new(*at, *len), address: leak(through), from: leak(from) }
            }
            Action::Compute(into, from) => Step::Compute { into: Register(*into), from: leak(from) },
            Action::Branch(on, meeting) => Step::Branch { on: leak(on), meeting: Meeting(*meeting) },
            Action::Reach(meeting) => Step::Reach { meeting: Meeting(*meeting) },
            Action::Enter(arguments) => {
                Step::Enter { arguments: arguments.iter().map(|each| leak(each)).collect::<Vec<_>>().leak() }
            }
            Action::Exit(result, into) => Step::Exit { result: leak(result), into: into.map(Register) },
            Action::Acquire(lock) if !holders.contains_key(lock) => {
                holders.insert(*lock, *thread);
                Step::Acquire { lock: Lock(*lock), mode: Mode::Exclusive }
            }
            Action::Release(lock) if holders.get(lock) == Some(thread) => {
                holders.remove(lock);
                Step::Release { lock: Lock(*lock) }
            }
            Action::Acquire(_) | Action::Release(_) => continue,
            Action::Signal(object) => Step::Signal { object: Object(*object) },
            Action::Wait(object) => Step::Wait { object: Object(*object) },
            Action::Fork(child) => Step::Fork { child: Thread(*child) },
            Action::Join(child) => Step::Join { child: Thread(*child) },
            Action::Renew(start, len) => Step::Renew { start: *start, len: *len },
        };
        events.push(Event { thread: Thread(*thread), line: Line(events.len() as u32), step });
    }
    events
}
