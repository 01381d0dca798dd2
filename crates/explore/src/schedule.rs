//! From the log of an explored execution to a schedule that any replay can follow: positions instead of numbers of choices.
//!
//! A turn lasts as long as one thread makes all steps, and ends where that thread stood when another was chosen. The last turn
//! runs as far as it can: what the execution failed of comes about there.

use crate::log::{Log, Pending, Step};
use rashomon_abi::exploration::{NO_WAIT, Operation};
use rashomon_abi::record::Op;
use rashomon_event::{Goal, Place, Position, Schedule, ThreadPath, Turn};

/// The path of each thread, by number.
pub fn paths(log: &Log) -> Vec<ThreadPath> {
    let mut paths: Vec<ThreadPath> = Vec::with_capacity(log.threads.len());
    for birth in &log.threads {
        // A parent has the smaller number.
        let parent = birth.and_then(|birth| Some((paths.get(birth.parent? as usize)?.clone(), birth.spawn_ordinal)));
        paths.push(parent.map_or_else(ThreadPath::default, |(parent, ordinal)| parent.child(ordinal)));
    }
    paths
}

fn position(pending: &Pending) -> Position {
    let place = match pending.operation.op {
        0 => Place::Count { accesses: pending.count },
        op => Place::Synchronisation { op: op as u16 },
    };
    Position { ordinal: pending.ordinal, place }
}

/// Where the thread stood when its turn was over.
fn end_of(step: &Step, after: &Pending) -> Position {
    let Operation { op, second, .. } = step.does.operation;
    // A writer that has begun to wait keeps readers of some locks out: it must have begun in the replay, too.
    if after == &step.does && op == Op::Lock as u64 && second == NO_WAIT {
        return Position { ordinal: after.ordinal, place: Place::Waiting { accesses: after.count } };
    }
    position(after)
}

const END: Position = Position { ordinal: u32::MAX, place: Place::End };

/// The base's turns, then those of the log. `race`: threads that stand at conflicting accesses at the end.
pub fn of_log(base: &Schedule, log: &Log, race: Option<[u32; 2]>) -> Schedule {
    let mut schedule = Schedule { goal: Goal::None, ..base.clone() };
    let indices: Vec<u32> = paths(log)
        .into_iter()
        .map(|path| {
            let known = schedule.threads.iter().position(|known| *known == path);
            known.unwrap_or_else(|| {
                schedule.threads.push(path);
                schedule.threads.len() - 1
            }) as u32
        })
        .collect();
    let mut steps = log.steps.iter().peekable();
    while let Some(step) = steps.next() {
        let last = steps.peek().is_none();
        if steps.peek().is_some_and(|next| next.thread == step.thread) {
            continue;
        }
        let until = match (step.after, last && race.is_none()) {
            (Some(after), false) => end_of(step, &after),
            _ => END,
        };
        schedule.turns.push(Turn { thread: indices[step.thread as usize], until, landmark: None });
    }
    if let Some(race) = race {
        let turns = race.map(|thread| {
            let index = indices.get(thread as usize).copied().unwrap_or(0);
            let known = schedule.turns.iter().rposition(|turn| turn.thread == index);
            known.unwrap_or_else(|| {
                let pending = log.left.iter().find(|(left, _)| *left == thread).map(|(_, pending)| position(pending));
                schedule.turns.push(Turn { thread: index, until: pending.unwrap_or(END), landmark: None });
                schedule.turns.len() - 1
            }) as u32
        });
        schedule.goal = Goal::Race { turns };
    }
    schedule
}
