//! The schedule of a serial recording, in terms that a replay can follow.
//!
//! In the merged order each change of the running thread ends a turn. Where the outgoing thread stood is told by what it does
//! next: its `TURN` record counts the accesses it had executed since its last operation with an ordinal, and if an access (or a
//! `TURN` with another count) comes before its next such operation, or a signal's handler begins there, it was stopped between
//! accesses; otherwise it stood at that operation. A thread that had begun an operation and waited inside it has said so: where
//! it is cancelled or interrupted, or whom the kernel lets go on because it is there, is told by that alone.
//!
//! A thread that ended, and the one that ran last, run to their end. A thread that never ran again though it had not ended stood
//! at some operation that was not recorded: its last turn stops at the next one, whichever it is, or after as many accesses as a
//! last `TURN` record of its stream says.
//!
//! Behind an external input the turns are no use any more: what was seen then may not be there again, and a schedule
//! that wants it would wait in vain. The schedule ends there.
//!
//! Limit: where plain accesses are not kept (an option, or a recording that was truncated) nothing tells that a thread was
//! stopped between two of them, and its turn goes on to the next operation. The access filter does no harm: the access at which a
//! quantum ends is always kept.

use crate::loaded::LoadedTrace;
use rashomon_abi::record::Op;
use rashomon_event::schedule::{SCHEDULE_VERSION, ScheduleModule};
use rashomon_event::{Goal, Place, Position, Schedule, ThreadId, Turn};

/// A turn whose end is not known yet.
#[derive(Clone, Copy, Debug)]
struct Open {
    turn: usize,
    /// Accesses recorded since the last operation with an ordinal.
    recorded: u64,
    /// Accesses executed since then, as the `TURN` record says.
    executed: Option<u64>,
}

/// Handovers, collected while streams are merged.
#[derive(Clone, Debug, Default)]
pub struct HandoverLog {
    turns: Vec<(ThreadId, Position)>,
    /// By thread; more than one where a thread got the turn and could not go on.
    open: Vec<Vec<Open>>,
    /// By thread: how many accesses it had executed when the recording ended while it could have gone on.
    stood: Vec<(ThreadId, u64)>,
    /// By thread: where it began to wait last.
    waits: Vec<Option<Wait>>,
    /// How many turns there are before something came in, and who ran then, up to where.
    cut: Option<(usize, Option<(ThreadId, Position)>)>,
}

/// A wait inside an operation.
#[derive(Clone, Copy, Debug)]
struct Wait {
    ordinal: u32,
    executed: u64,
    recorded: u64,
    /// The thread goes on.
    over: bool,
}

impl HandoverLog {
    fn open_turns(&mut self, thread: ThreadId) -> &mut Vec<Open> {
        if self.open.len() <= thread.index() {
            self.open.resize(thread.index() + 1, Vec::new());
        }
        &mut self.open[thread.index()]
    }

    /// `thread` stops with this many ordinals completed and accesses recorded since the last of them.
    pub(crate) fn stops(&mut self, thread: ThreadId, ordinal: u32, recorded: u64) {
        if let Some(wait) = *self.wait(thread)
            && !wait.over
            && (wait.ordinal, wait.recorded) == (ordinal, recorded)
        {
            let place = Place::Waiting { accesses: wait.executed };
            self.turns.push((thread, Position { ordinal, place }));
            return;
        }
        let turn = self.turns.len();
        self.turns.push((thread, Position { ordinal, place: Place::End }));
        self.open_turns(thread).push(Open { turn, recorded, executed: None });
    }

    fn wait(&mut self, thread: ThreadId) -> &mut Option<Wait> {
        if self.waits.len() <= thread.index() {
            self.waits.resize(thread.index() + 1, None);
        }
        &mut self.waits[thread.index()]
    }

    /// `thread` begins to wait inside an operation, having executed and recorded so many accesses since its last operation with
    /// an ordinal.
    pub(crate) fn waits(&mut self, thread: ThreadId, ordinal: u32, executed: u64, recorded: u64) {
        *self.wait(thread) = Some(Wait { ordinal, executed, recorded, over: false });
    }

    /// An external input of `thread`, which runs.
    pub(crate) fn came_in(&mut self, thread: ThreadId, ordinal: u32, executed: u64) {
        let waited = self.wait(thread).is_some_and(|wait| (wait.ordinal, wait.executed) == (ordinal, executed));
        // Where it waits before that, the schedule ends with the others' last turns.
        let last = (!waited).then_some((thread, Position { ordinal, place: Place::Count { accesses: executed } }));
        self.cut.get_or_insert((self.turns.len(), last));
    }

    /// A `TURN` record of `thread`: it had executed this many accesses.
    pub(crate) fn resumes(&mut self, thread: ThreadId, executed: u64, recorded: u64) {
        if let Some(wait) = self.wait(thread) {
            wait.over = true;
        }
        if let Some(last) = self.open_turns(thread).last_mut() {
            last.executed.get_or_insert(executed);
        }
        self.settle(thread, |open| open.recorded < recorded || open.executed.is_some_and(|count| count != executed));
    }

    /// The recording ends; `thread`, which could have gone on, stands where it has executed this many accesses.
    pub(crate) fn stands(&mut self, thread: ThreadId, executed: u64) {
        self.stood.push((thread, executed));
        for turn in std::mem::take(self.open_turns(thread)) {
            self.turns[turn.turn].1.place = Place::Count { accesses: executed };
        }
    }

    /// The next operation with an ordinal of `thread` is `op`; so many accesses were recorded before it.
    pub(crate) fn synchronises(&mut self, thread: ThreadId, op: Op, recorded: u64) {
        if self.open_turns(thread).is_empty() {
            return;
        }
        self.settle(thread, |open| open.recorded < recorded);
        self.close(thread, Place::Synchronisation { op: op as u16 });
    }

    /// A signal's handler begins on `thread`, before whatever it was about to do: it had been blocked there.
    pub(crate) fn is_interrupted(&mut self, thread: ThreadId) {
        self.settle(thread, |_| true);
    }

    /// The stream of `thread` is over.
    pub(crate) fn leaves(&mut self, thread: ThreadId, ended: bool, recorded: u64) {
        self.settle(thread, |open| open.recorded < recorded);
        self.close(thread, if ended { Place::End } else { Place::Synchronisation { op: 0 } });
    }

    /// `thread` ran last, as far as the recording goes.
    pub(crate) fn ends(&mut self, thread: ThreadId, ordinal: u32) {
        let stood = self.stood.iter().find(|stood| stood.0 == thread);
        let place = stood.map_or(Place::End, |&(_, accesses)| Place::Count { accesses });
        self.turns.push((thread, Position { ordinal, place }));
    }

    /// Turns of which `between_accesses` holds ended after a number of accesses.
    fn settle(&mut self, thread: ThreadId, between_accesses: impl Fn(&Open) -> bool) {
        let open = std::mem::take(self.open_turns(thread));
        for turn in &open {
            if between_accesses(turn) {
                self.turns[turn.turn].1.place = Place::Count { accesses: turn.executed.unwrap_or(turn.recorded) };
            }
        }
        *self.open_turns(thread) = open.into_iter().filter(|turn| !between_accesses(turn)).collect();
    }

    fn close(&mut self, thread: ThreadId, place: Place) {
        for open in std::mem::take(self.open_turns(thread)) {
            self.turns[open.turn].1.place = place;
        }
    }
}

impl LoadedTrace {
    /// The turns of a serial recording; empty for a free one.
    pub fn turns(&self) -> &[(ThreadId, Position)] {
        &self.handovers.turns
    }

    /// The turns that can be had again: those before the first external input.
    fn replayable_turns(&self) -> Vec<(ThreadId, Position)> {
        match self.handovers.cut {
            Some((count, last)) => self.turns()[..count].iter().copied().chain(last).collect(),
            None => self.turns().to_vec(),
        }
    }

    /// The recorded execution as a schedule, up to the first external input. `quantum` is the one it was recorded with.
    pub fn replay_schedule(&self, quantum: u64) -> Schedule {
        self.schedule_of(self.replayable_turns(), quantum)
    }

    /// The same to the end of the recording: for executions in which external inputs are the same again.
    pub fn whole_schedule(&self, quantum: u64) -> Schedule {
        self.schedule_of(self.turns().to_vec(), quantum)
    }

    fn schedule_of(&self, turns: Vec<(ThreadId, Position)>, quantum: u64) -> Schedule {
        let trace = &self.trace;
        Schedule {
            version: SCHEDULE_VERSION,
            modules: schedule_modules(self),
            threads: trace.threads.iter().map(|thread| thread.path.clone()).collect(),
            turns: turns.into_iter().map(|(thread, until)| Turn { thread: thread.0, until, landmark: None }).collect(),
            goal: Goal::None,
            quantum,
            unseen_calls: !trace.gaps.is_empty(),
            surroundings: None,
            kept: Vec::new(),
        }
    }
}

impl LoadedTrace {
    /// The execution as a schedule that ends where it ended: with two threads right before conflicting accesses. `None`: it did
    /// not.
    pub fn goal_schedule(&self, quantum: u64) -> Option<Schedule> {
        let [first, second] = self.goals.as_slice() else { return None };
        let mut schedule = Schedule {
            turns: self.turns().iter().map(|&(thread, until)| Turn { thread: thread.0, until, landmark: None }).collect(),
            ..self.replay_schedule(quantum)
        };
        let mut turns = [0; 2];
        for (index, goal) in turns.iter_mut().zip([first, second]) {
            let place = match (goal.atomic, goal.executed) {
                (true, _) => Place::Synchronisation { op: 0 },
                (false, Some(accesses)) => Place::Count { accesses },
                (false, None) => return None,
            };
            let last = schedule.turns.iter().rposition(|turn| turn.thread == goal.thread.0)?;
            schedule.turns[last].until = Position { ordinal: goal.ordinal, place };
            *index = u32::try_from(last).ok()?;
        }
        schedule.goal = Goal::Race { turns };
        Some(schedule)
    }
}

fn schedule_modules(loaded: &LoadedTrace) -> Vec<ScheduleModule> {
    let modules = loaded.trace.modules.iter();
    modules.map(|module| ScheduleModule { path: module.path.clone(), build_id: module.build_id.clone() }).collect()
}
