//! Steps that order threads or make them exclude each other. Each ends the thread's moment.

use crate::event::{Step, Thread};
use crate::world::World;
use std::sync::Arc;

impl World {
    pub fn synchronise(&mut self, thread: usize, step: Step<'_>) {
        let state = &mut self.threads[thread];
        let fits = match step {
            Step::Acquire { lock, mode } => {
                if state.locks.acquire(lock, mode) {
                    state.moment = None;
                }
                return;
            }
            Step::Release { lock } => match state.locks.release(lock) {
                Some(true) => {
                    state.moment = None;
                    true
                }
                Some(false) => true,
                None => false,
            },
            Step::Signal { object } => {
                self.messages.signal(object, thread, Arc::make_mut(&mut state.clock));
                state.moment = None;
                true
            }
            Step::Wait { object } => {
                self.messages.wait(object, Arc::make_mut(&mut state.clock));
                state.moment = None;
                true
            }
            Step::Arrive { barrier } => {
                self.messages.arrive(barrier, thread, Arc::make_mut(&mut state.clock));
                state.moment = None;
                true
            }
            Step::Leave { barrier } => {
                let arrived = self.messages.leave(barrier, thread, Arc::make_mut(&mut state.clock));
                state.moment = None;
                arrived
            }
            Step::Fork { child } => self.hand_on(thread, child, true),
            Step::Join { child } => self.hand_on(thread, child, false),
            _ => true,
        };
        self.summary.steps_out_of_place += u64::from(!fits);
    }

    /// What a thread knows, its child knows at its beginning; what the child knew at its end, whoever joins it knows.
    fn hand_on(&mut self, thread: usize, child: Thread, fork: bool) -> bool {
        let Some(child) = self.thread(child) else { return true };
        if child == thread {
            return false;
        }
        let (from, to) = if fork { (thread, child) } else { (child, thread) };
        let known = self.threads[from].clock();
        Arc::make_mut(&mut self.threads[to].clock).join(&known);
        Arc::make_mut(&mut self.threads[from].clock).advance(from);
        self.threads[from].moment = None;
        self.threads[to].moment = None;
        true
    }
}
