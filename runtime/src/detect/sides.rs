//! Races as the detector finds them.

use super::found::Side;
use super::{descriptors, ignores, locksets, objects, stacks};
use crate::report::sources::DEEPEST;
use crate::report::{Access, Lock, Race, race};
use crate::system::memory::List;
use rashomon_abi::report::access;

/// Two accesses that nothing orders: the one made now, and the former one. `slept`: where the thread slept in between, if it did.
pub fn found(now: &Side, before: &Side, slept: stacks::StackId) {
    if ignores::is_benign(now.address.min(before.address), (now.address + now.bytes).max(before.address + before.bytes)) {
        return;
    }
    // Lists have memory of their own: the program's stack may be small.
    let mut stack_words = List::new();
    let mut locks = List::new();
    (0..2 * DEEPEST).for_each(|_| stack_words.push(0));
    let (first, second) = stack_words.as_mut_slice().split_at_mut(DEEPEST);
    let lengths = [stacks::walk(now.stack, first), stacks::walk(before.stack, second)];
    push_locks(&mut locks, now);
    let split = locks.len();
    push_locks(&mut locks, before);
    let (first_locks, second_locks) = locks.as_slice().split_at(split);
    race(&Race {
        accesses: [side(now, &first[..lengths[0]], first_locks), side(before, &second[..lengths[1]], second_locks)],
        descriptor: descriptors::at(now.address),
        slept,
    });
    stack_words.clear_and_free();
    locks.clear_and_free();
}

fn push_locks(locks: &mut List<Lock>, side: &Side) {
    for &element in locksets::elements(side.lock_set) {
        if let Some(object) = objects::of_element(element) {
            locks.push(object.as_told(element & 1 == 0));
        } else if let Some((address, initialised, created)) = objects::of_gone_element(element) {
            locks.push(Lock { address, write: element & 1 == 0, destroyed: true, initialised, created });
        }
    }
}

fn side<'a>(side: &Side, stack: &'a [u64], locks: &'a [Lock]) -> Access<'a> {
    let bit = |set: bool, bit: u64| if set { bit } else { 0 };
    let flags = bit(side.write, access::WRITE)
        | bit(side.atomic, access::ATOMIC)
        | bit(side.vptr, access::VPTR)
        | bit(side.frees, access::FREE | access::WRITE);
    Access {
        thread: side.thread,
        address: side.address,
        size: side.bytes as u32,
        flags,
        tag: stacks::tag(side.stack),
        stack,
        locks,
    }
}
