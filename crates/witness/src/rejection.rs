//! Why a witness is not accepted.

use rashomon_event::{Address, EventIndex, ThreadId};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error("the witness names event {event}, but the trace has only {events} events: use the trace it was made for")]
    UnknownEvent { event: EventIndex, events: usize },
    #[error("event {event} is out of program order in the witness: the next event of {thread} is {expected:?}")]
    NotAPrefix { event: EventIndex, thread: ThreadId, expected: Option<EventIndex> },
    #[error("event {event} comes before {fork}, which creates {thread}")]
    BeforeFork { event: EventIndex, thread: ThreadId, fork: EventIndex },
    #[error("join {event} comes before {last}, the last event of the joined thread {child}")]
    JoinBeforeEnd { event: EventIndex, last: EventIndex, child: ThreadId },
    #[error("event {event} acquires lock {lock}, which {holder} holds")]
    LockHeld { event: EventIndex, lock: Address, holder: ThreadId },
    #[error("wait {event} was woken by {signal}, which does not come before it")]
    WokenBeforeSignal { event: EventIndex, signal: EventIndex },
    #[error("wait {event} was woken by {signal}, which comes before the wait began")]
    SignalBeforeWait { event: EventIndex, signal: EventIndex },
    #[error("event {event} leaves barrier {barrier}, generation {generation}, before {missing} entered it")]
    BarrierIncomplete { event: EventIndex, barrier: Address, generation: u32, missing: EventIndex },
    #[error("event {event} takes semaphore {semaphore} while its count is zero")]
    SemaphoreEmpty { event: EventIndex, semaphore: Address },
    #[error("event {event} needs {needed} before it: it saw what that one completed or released")]
    NotYetPublished { event: EventIndex, needed: EventIndex },
    #[error("event {event} needs {needed} before it: a call into code that is not seen may have ordered them")]
    OrderedUnseen { event: EventIndex, needed: EventIndex },
    #[error("goal {goal} is not the next event of its thread after the witness (that is {next:?})")]
    GoalNotNext { goal: EventIndex, next: Option<EventIndex> },
    #[error("goal {goal} belongs to a thread that the witness has not created yet")]
    GoalNotStarted { goal: EventIndex },
    #[error("{thread} has not run as far as is claimed after the witness, or further")]
    StandsElsewhere { thread: ThreadId },
    #[error("goals {first} and {second} do not conflict")]
    NoConflict { first: EventIndex, second: EventIndex },
    #[error("goals {first} and {second} are of the same thread")]
    SameThread { first: EventIndex, second: EventIndex },
    #[error("a deadlock needs at least two waits and what each is for, not {waits} and {locks}")]
    MalformedCycle { waits: usize, locks: usize },
    #[error("goal {goal} is not an acquisition of lock {lock} that waits")]
    NotAnAcquisition { goal: EventIndex, lock: Address },
    #[error("goal {goal} wants lock {lock}, which the next thread of the cycle does not hold in a mode that excludes it")]
    NotBlocked { goal: EventIndex, lock: Address },
    #[error("goal {goal} does not wait for {thread}, the next thread of the cycle")]
    DoesNotWait { goal: EventIndex, thread: ThreadId },
}
