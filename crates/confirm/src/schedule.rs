//! From a witness to a schedule: positions that survive re-execution.
//!
//! A witness is a list of events; a schedule is a list of turns, each of which lets one thread run up to a position. The order
//! is cut into maximal runs of one thread, and each run's turn ends right before that thread's next event in the trace. The
//! next event is known even where the run is the thread's last one: it is the goal. Only accesses and events with a
//! synchronisation ordinal can be stood at; others (allocations, requests for a lock) are passed, which orders nothing.
//!
//! A thread that stands at its goal stays there, so the goal refers to the turn that brought it there, which need not be
//! among the last ones (RaceHunter's waiting access; Carril, Tichy, "Interleaving generation for data race and deadlock
//! reproduction", SEPS 2015, §2.3: the counterexample's synchronisation order is enforced, and nothing else).
//!
//! Limit: a position at a plain access is "the first access at this site since the last synchronisation event that touches
//! these bytes". The recorder's filter keeps the first one of each kind, so that is the recorded one; if a program makes several
//! such accesses in one stretch the turn ends at the first.

use crate::error::ConfirmError;
use rashomon_abi::record::Op;
use rashomon_event::schedule::{SCHEDULE_VERSION, ScheduleModule};
use rashomon_event::{
    AtomicOp, CandidateKind, CodePlace, Event, EventIndex, EventKind, EventSet, Goal, Landmark, LockMode, ObjectKind, ObjectName,
    Place, Position, Schedule, SiteId, ThreadId, Trace, Turn, Witness,
};
use rustc_hash::FxHashMap;
use std::collections::HashMap;

/// The trace, and which of its events are alike.
pub struct Planner<'a> {
    trace: &'a Trace,
    /// How many events with an ordinal an event's thread has made at its site before, where it has made any.
    occurrence: FxHashMap<EventIndex, u32>,
    quantum: u64,
}

/// A schedule and, for each of its turns, the event of the trace before which it ends; `None` at a thread's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub schedule: Schedule,
    pub stops: Vec<Option<EventIndex>>,
}

/// A place to stand at, and the event there.
type Stop = (Position, Option<EventIndex>);

/// Turns with where they stop, and by thread the last one.
type Turns = (Vec<(Turn, Option<EventIndex>)>, Vec<Option<u32>>);

fn bounded(turns: usize) -> Result<(), ConfirmError> {
    if turns as u64 > rashomon_abi::control::MAX_ENTRIES { Err(ConfirmError::TooLong { turns }) } else { Ok(()) }
}

impl<'a> Planner<'a> {
    /// `quantum`: as in the recording's control.
    pub fn new(trace: &'a Trace, quantum: u64) -> Self {
        let mut planner = Self { trace, occurrence: FxHashMap::default(), quantum };
        let mut seen: HashMap<(ThreadId, SiteId), u32> = HashMap::new();
        let mut occurrence = FxHashMap::default();
        for index in planner.with_ordinals() {
            let event = trace.event(index);
            let count = seen.entry((event.thread, event.site)).or_default();
            if *count > 0 {
                occurrence.insert(index, *count);
            }
            *count += 1;
        }
        planner.occurrence = occurrence;
        planner
    }

    /// The schedule that executes the witness's order and ends with every goal thread at its goal.
    pub fn plan(&self, witness: &Witness) -> Result<Plan, ConfirmError> {
        let (mut turns, mut stands) = self.turns_of(&witness.order)?;
        let mut goals = Vec::new();
        for goal in witness.candidate.goals() {
            let thread = self.event(goal)?.thread;
            let turn = match stands[thread.index()] {
                Some(turn) => turn,
                None => {
                    let (until, stop) = self.stop_from(Some(goal)).ok_or(ConfirmError::NoGoalEvent { thread: thread.0 })?;
                    turns.push((self.turn(thread, until, stop), stop));
                    turns.len() as u32 - 1
                }
            };
            stands[thread.index()] = Some(turn);
            goals.push(turn);
        }
        bounded(turns.len())?;
        let goal = match (&witness.candidate, goals.as_slice()) {
            (CandidateKind::Race { .. }, &[first, second]) => Goal::Race { turns: [first, second] },
            _ => Goal::Deadlock { turns: goals },
        };
        let (turns, stops) = turns.into_iter().unzip();
        Ok(Plan { schedule: Schedule { turns, goal, ..self.empty() }, stops })
    }

    /// The schedule that executes the order, and wants nothing behind it.
    pub fn of_order(&self, order: &[EventIndex]) -> Result<Plan, ConfirmError> {
        let (turns, _) = self.turns_of(order)?;
        bounded(turns.len())?;
        let (turns, stops) = turns.into_iter().unzip();
        Ok(Plan { schedule: Schedule { turns, ..self.empty() }, stops })
    }

    /// The turns of an order, and which of them left each thread where it stands.
    fn turns_of(&self, order: &[EventIndex]) -> Result<Turns, ConfirmError> {
        let mut turns: Vec<(Turn, Option<EventIndex>)> = Vec::new();
        let mut stands: Vec<Option<u32>> = vec![None; self.trace.threads.len()];
        let mut run: Option<EventIndex> = None;
        for &index in order {
            let event = self.event(index)?;
            if let Some(last) = run
                && self.trace.event(last).thread != event.thread
            {
                self.end_run(last, &mut turns, &mut stands);
            }
            run = Some(index);
        }
        if let Some(last) = run {
            self.end_run(last, &mut turns, &mut stands);
        }
        Ok((turns, stands))
    }

    /// The synchronisation operations in the order of the trace, and what is between them; no goal. Each thread is left right
    /// before the operation behind its last one, in which it may have blocked.
    pub fn observed(&self) -> Result<Schedule, ConfirmError> {
        let mut turns = Vec::new();
        let mut last: Option<EventIndex> = None;
        for index in self.with_ordinals() {
            if let Some(before) = last
                && self.trace.event(before).thread != self.trace.event(index).thread
            {
                turns.push(self.turn_behind(before));
            }
            last = Some(index);
        }
        turns.extend(last.map(|last| self.turn_behind(last)));
        bounded(turns.len())?;
        Ok(Schedule { turns, ..self.empty() })
    }

    /// Of the thread of a synchronisation event, up to its next one.
    fn turn_behind(&self, last: EventIndex) -> Turn {
        let event = self.trace.event(last);
        let follower = |index: EventIndex| self.trace.program_order().next(index);
        let next = std::iter::successors(follower(last), |index| follower(*index)).find(|index| self.has_ordinal(*index));
        let until = match (next.map(|next| self.trace.event(next)), event.kind) {
            (Some(next), _) => {
                let op = self.expected_operation(&next.kind).map_or(0, |op| op as u16);
                Position { ordinal: next.ordinal, place: Place::Synchronisation { op } }
            }
            (None, EventKind::End) => Position { ordinal: u32::MAX, place: Place::End },
            (None, _) => Position { ordinal: event.ordinal.saturating_add(1), place: Place::Synchronisation { op: 0 } },
        };
        self.turn(event.thread, until, next)
    }

    /// Tables without turns.
    pub fn empty(&self) -> Schedule {
        let modules = self.trace.modules.iter();
        Schedule {
            version: SCHEDULE_VERSION,
            modules: modules.map(|m| ScheduleModule { path: m.path.clone(), build_id: m.build_id.clone() }).collect(),
            threads: self.trace.threads.iter().map(|thread| thread.path.clone()).collect(),
            turns: Vec::new(),
            goal: Goal::None,
            quantum: self.quantum,
            unseen_calls: !self.trace.gaps.is_empty(),
            surroundings: None,
            kept: Vec::new(),
        }
    }

    fn event(&self, index: EventIndex) -> Result<Event, ConfirmError> {
        let events = self.trace.events.len();
        self.trace.events.get(index.index()).ok_or(ConfirmError::NoSuchEvent { event: index.0, events })
    }

    fn end_run(&self, last: EventIndex, turns: &mut Vec<(Turn, Option<EventIndex>)>, stands: &mut [Option<u32>]) {
        let thread = self.trace.event(last).thread;
        let next = self.trace.program_order().next(last);
        let end = (Position { ordinal: u32::MAX, place: Place::End }, None);
        let (until, stop) = self.stop_from(next).unwrap_or(end);
        match turns.last_mut() {
            // Two runs with nothing between them that can be stood at are one.
            Some((turn, last_stop)) if turn.thread == thread.0 => (*turn, *last_stop) = (self.turn(thread, until, stop), stop),
            _ => turns.push((self.turn(thread, until, stop), stop)),
        }
        stands[thread.index()] = Some(turns.len() as u32 - 1);
    }

    fn turn(&self, thread: ThreadId, until: Position, stop: Option<EventIndex>) -> Turn {
        let synchronisation = matches!(until.place, Place::Synchronisation { .. });
        let landmark = stop.filter(|_| synchronisation).map(|stop| Landmark {
            site: self.code_place(self.trace.event(stop).site),
            occurrence: self.occurrence.get(&stop).copied().unwrap_or(0),
        });
        Turn { thread: thread.0, until, landmark }
    }

    /// The position of the first event from `index` on, in its thread, that can be stood at.
    fn stop_from(&self, mut index: Option<EventIndex>) -> Option<Stop> {
        while let Some(at) = index {
            let event = self.trace.event(at);
            if let EventKind::Access(access) = event.kind {
                let (object, delta) = self.object_place(access.address, access.size);
                let place = Place::Access { site: self.code_place(event.site), object, delta, size: access.size };
                return Some((Position { ordinal: event.ordinal, place }, index));
            }
            if self.has_ordinal(at) {
                let op = self.expected_operation(&event.kind).map_or(0, |op| op as u16);
                return Some((Position { ordinal: event.ordinal, place: Place::Synchronisation { op } }, index));
            }
            index = self.trace.program_order().next(at);
        }
        None
    }

    /// The events that count as such ordinals, in their order.
    fn with_ordinals(&self) -> impl Iterator<Item = EventIndex> + use<'_, 'a> {
        EventSet::union([self.trace.events.besides_accesses()]).filter(|index| self.has_ordinal(*index))
    }

    /// Whether the event counts as one of its thread's synchronisation ordinals.
    fn has_ordinal(&self, index: EventIndex) -> bool {
        let event = self.trace.event(index);
        match event.kind {
            EventKind::Access(_) | EventKind::Request { .. } | EventKind::Blocked { .. } => false,
            EventKind::Other(_) => {
                let next = self.trace.program_order().next(index);
                next.is_some_and(|next| self.trace.event(next).ordinal > event.ordinal)
            }
            _ => true,
        }
    }

    /// A code address in terms that survive address-space randomisation.
    pub fn code_place(&self, site: SiteId) -> CodePlace {
        let site = self.trace.site(site);
        CodePlace { module: site.module, offset: if site.module.is_some() { site.offset } else { site.address } }
    }

    fn expected_operation(&self, kind: &EventKind) -> Option<Op> {
        match kind {
            // The operation is one on what the lock is made of.
            EventKind::Acquire { lock, .. } | EventKind::Release { lock, .. } if self.trace.made_locks.contains_key(lock) => None,
            kind => expected_operation(kind),
        }
    }

    fn object_place(&self, address: rashomon_event::Address, size: u32) -> (ObjectName, u64) {
        let Some(object) = self.trace.object_at(address).map(|id| &self.trace.objects[id.index()]) else {
            return (ObjectName::Any, 0);
        };
        let from_low = address.0 - object.base.0;
        let from_high = object.size - from_low;
        let number = |thread: ThreadId| thread.0;
        match object.kind {
            ObjectKind::Global { module } => {
                let base = self.trace.modules.get(module as usize).map_or(0, |module| module.base);
                let offset = object.machine_base.wrapping_sub(base);
                (ObjectName::Global { place: CodePlace { module: Some(module), offset } }, from_low)
            }
            // No call makes blocks and descriptors.
            ObjectKind::Heap { thread, site, ordinal } | ObjectKind::Descriptor { thread, site, ordinal } => {
                (ObjectName::Heap { thread: number(thread), site: self.code_place(site), ordinal }, from_low)
            }
            ObjectKind::Mapping { thread, site, ordinal } => {
                (ObjectName::Mapping { thread: number(thread), site: self.code_place(site), ordinal }, from_low)
            }
            ObjectKind::Stack { thread } => (ObjectName::Stack { thread: number(thread) }, from_high),
            ObjectKind::Tls { thread } => (ObjectName::Tls { thread: number(thread) }, from_high),
            ObjectKind::Unknown => {
                debug_assert!(size > 0);
                (ObjectName::Any, 0)
            }
        }
    }
}

/// The operation that must be about to happen, where the same code cannot turn into another one with other values: a
/// compare-exchange may fail, a once routine may already have run, a try may not succeed.
fn expected_operation(kind: &EventKind) -> Option<Op> {
    Some(match kind {
        EventKind::Start => Op::ThreadStart,
        EventKind::End => Op::ThreadEnd,
        EventKind::Fork { .. } => Op::ThreadCreate,
        EventKind::Join { .. } => Op::ThreadJoin,
        EventKind::Acquire { mode: LockMode::Exclusive, may_wait: true, .. } => Op::Lock,
        EventKind::Acquire { mode: LockMode::Shared, may_wait: true, .. } => Op::LockShared,
        EventKind::Release { mode: LockMode::Exclusive, .. } => Op::Unlock,
        EventKind::Release { mode: LockMode::Shared, .. } => Op::UnlockShared,
        EventKind::WaitBegin { .. } => Op::CondWaitBegin,
        EventKind::WaitEnd { .. } => Op::CondWaitEnd,
        EventKind::Signal { broadcast: false, .. } => Op::CondSignal,
        EventKind::Signal { broadcast: true, .. } => Op::CondBroadcast,
        EventKind::BarrierEnter { .. } => Op::BarrierEnter,
        EventKind::BarrierExit { .. } => Op::BarrierExit,
        EventKind::Post { .. } => Op::SemaphorePost,
        EventKind::Fence { .. } => Op::Fence,
        EventKind::Atomic { op: AtomicOp::Load, .. } => Op::AtomicLoad,
        EventKind::Atomic { op: AtomicOp::Store, .. } => Op::AtomicStore,
        _ => return None,
    })
}
