//! Wrong uses of locks: what is a bug without any second thread's doing.
//!
//! The kinds are ThreadSanitizer's. A lock that something was said about is not reported again: what follows is a consequence.

use super::objects::{self, Locked, Object};
use super::stacks::StackId;
use super::walked;
use crate::detect::own::Own;
use crate::report::{self, Lock, Misuse};
use rashomon_abi::report::warning;

/// What a report says about a lock, read while it was still so.
#[derive(Clone, Copy)]
pub struct Subject {
    pub number: u32,
    lock: Lock,
    pub owner_stack: StackId,
}

impl Subject {
    pub fn of(object: &Object) -> Self {
        Self { number: object.number(), lock: object.as_told(true), owner_stack: object.owner_stack.get() }
    }
}

/// `wrong`, the first time that something is wrong with the lock; else 0.
pub fn once(object: &Locked, wrong: u64) -> u64 {
    if wrong == 0 || object.has(objects::flag::REPORTED) {
        return 0;
    }
    object.flags.set(object.flags.get() | objects::flag::REPORTED);
    wrong
}

#[cold]
#[inline(never)]
pub fn report(warning: u64, object: &Object, stack: StackId) {
    let subject = Subject::of(object);
    walked::with(&[stack], |stacks| report::misuse(&Misuse { warning, lock: subject.lock, stacks }));
}

#[cold]
#[inline(never)]
pub fn destroyed_locked(subject: &Subject, stack: StackId, locked_at: StackId) {
    let warning = warning::MUTEX_DESTROY_LOCKED;
    walked::with(&[stack, locked_at], |stacks| report::misuse(&Misuse { warning, lock: subject.lock, stacks }));
}

/// The owner of a lock that cannot be taken twice is about to wait for itself.
#[cold]
#[inline(never)]
pub fn locks_again(object: &Object, stack: StackId) {
    let wrong = once(&object.lock(), warning::MUTEX_DOUBLE_LOCK);
    if wrong != 0 {
        report(wrong, object, stack);
    }
}

/// The program says that it holds no lock where it does.
pub fn check_none_held(thread: &mut Own, stack: StackId) {
    const MOST: usize = 64;
    let mut locks = [Lock::NONE; MOST];
    let held = thread.detect.held.as_slice();
    if held.is_empty() {
        return;
    }
    for (lock, held) in locks.iter_mut().zip(held) {
        // SAFETY: the number of an object that is held.
        let object = unsafe { objects::by_number(held.number) };
        *lock = object.as_told(!held.shared);
    }
    let count = held.len().min(MOST);
    walked::with(&[stack], |stacks| report::wrong_context(&locks[..count], stacks[0]));
}
