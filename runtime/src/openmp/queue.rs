//! Tasks of a team that wait to be executed.

use super::tasks::Task;
use core::cell::Cell;
use core::ptr::null;

/// Tasks of a team that are to be executed, oldest first. Under the team's lock.
pub struct Queue {
    first: Cell<*const Task>,
    last: Cell<*const Task>,
    /// Created and not executed.
    pub outstanding: Cell<u32>,
    /// There has been one.
    pub used: Cell<bool>,
}

impl Queue {
    pub fn outstanding(&self) -> u32 {
        self.outstanding.get()
    }

    pub fn push(&self, task: *const Task) {
        self.used.set(true);
        // SAFETY: tasks in the queue are there.
        unsafe {
            (*task).next.set(null());
            if self.last.get().is_null() { self.first.set(task) } else { (*self.last.get()).next.set(task) }
        }
        self.last.set(task);
    }

    /// Whether there is such a task.
    pub fn has(&self, accept: impl Fn(&Task) -> bool) -> bool {
        let mut at = self.first.get();
        // SAFETY: as above.
        while let Some(task) = unsafe { at.as_ref() } {
            if task.is_ready() && accept(task) {
                return true;
            }
            at = task.next.get();
        }
        false
    }

    /// The oldest that is accepted and whose predecessors are all executed.
    pub fn take(&self, accept: impl Fn(&Task) -> bool) -> *const Task {
        let (mut before, mut at): (*const Task, *const Task) = (null(), self.first.get());
        // SAFETY: as above.
        while let Some(task) = unsafe { at.as_ref() } {
            if task.is_ready() && accept(task) {
                let next = task.next.get();
                // SAFETY: as above.
                match unsafe { before.as_ref() } {
                    Some(before) => before.next.set(next),
                    None => self.first.set(next),
                }
                if self.last.get() == at {
                    self.last.set(before);
                }
                return at;
            }
            (before, at) = (at, task.next.get());
        }
        null()
    }
}
