//! All threads of a recording, in its order.

use crate::table::Tables;
use crate::walk::{Accessed, Sink, Walk};
use crate::walked::Walked;
use rashomon_event::{Access, AtomicOp, Deadline, Event, EventIndex, EventKind, LockMode, MemoryOrder};
use rashomon_trace::{Flow, FlowRecord, LoadedTrace};
use rashomon_units::{Bytes, Line, Lock, Mode, Object, Step, Thread};
use std::cell::Cell;

/// Tells all steps of the recording; `None`: there was no time for all. `at` is the event that a step belongs to.
pub fn feed(
    loaded: &LoadedTrace,
    tables: &mut Tables,
    deadline: Deadline,
    at: &Cell<EventIndex>,
    sink: &mut Sink<'_>,
) -> Option<Walked> {
    let mut walked = Walked::default();
    let mut walks: Vec<Walk> = (0..loaded.trace.threads.len() as u32).map(|number| Walk::new(Thread(number))).collect();
    let mut flow = loaded.flow.iter().peekable();
    let mut count = 0;
    for index in deadline.bound(loaded.trace.indices()) {
        at.set(index);
        while let Some(record) = flow.next_if(|record| record.before <= index) {
            goes(loaded, tables, &mut walks, record, &mut walked, sink);
        }
        let event = loaded.trace.event(index);
        if let Some(walk) = walks.get_mut(event.thread.index()) {
            walk.line = Line(event.site.0);
            let outside = walked.outside;
            happens(&event, walk, &mut walked, sink);
            if event.access().is_some() {
                let is_outside = walked.outside > outside;
                walked.saw(walk.line, is_outside);
            }
        }
        count += 1;
    }
    (count == loaded.trace.events.len()).then_some(walked)
}

fn goes(
    loaded: &LoadedTrace,
    tables: &mut Tables,
    walks: &mut [Walk],
    record: &FlowRecord,
    walked: &mut Walked,
    sink: &mut Sink<'_>,
) {
    let Some(walk) = walks.get_mut(record.thread.index()) else { return };
    match record.flow {
        Flow::Activation { process, table } => walk.activation(process, tables.get(&loaded.trace, table), walked, sink),
        Flow::Segment { segment } => walk.segment(segment, walked, sink),
        Flow::Resume { activation, segment } => walk.resume(activation, segment, walked, sink),
        Flow::Interrupted => walk.interrupted(),
        Flow::Continues => walk.continues(walked, sink),
    }
}

const fn bytes(access: &Access) -> Bytes {
    Bytes { start: access.address.0, len: access.size }
}

const fn orders(order: MemoryOrder, op: AtomicOp) -> (bool, bool) {
    (order.acquires() && !matches!(op, AtomicOp::Store), order.releases() && !matches!(op, AtomicOp::Load | AtomicOp::CasFailed))
}

fn happens(event: &Event, walk: &mut Walk, walked: &mut Walked, sink: &mut Sink<'_>) {
    let (thread, line) = (Thread(event.thread.0), Line(event.site.0));
    let mut tell = |step: Step<'_>| sink(thread, line, step);
    let mode = |mode| if mode == LockMode::Shared { Mode::Shared } else { Mode::Exclusive };
    match event.kind {
        EventKind::Access(access) => {
            let (reads, writes) = (access.class.reads(), access.class.writes());
            if access.class == rashomon_event::AccessClass::End {
                tell(Step::Renew { start: access.address.0, len: u64::from(access.size) });
                return;
            }
            walk.access(Accessed { bytes: bytes(&access), reads, writes, atomic: None }, walked, sink);
        }
        EventKind::Atomic { access, op, order, .. } => {
            let (reads, writes) = (op != AtomicOp::Store, matches!(op, AtomicOp::Store | AtomicOp::Rmw));
            walk.access(Accessed { bytes: bytes(&access), reads, writes, atomic: Some(orders(order, op)) }, walked, sink);
        }
        EventKind::Acquire { lock, mode: how, .. } => tell(Step::Acquire { lock: Lock(lock.0), mode: mode(how) }),
        EventKind::Release { lock, .. } => tell(Step::Release { lock: Lock(lock.0) }),
        EventKind::WaitBegin { mutex, .. } => tell(Step::Release { lock: Lock(mutex.0) }),
        EventKind::WaitEnd { condition, mutex, timed_out, .. } => {
            if !timed_out {
                tell(Step::Wait { object: Object(condition.0) });
            }
            tell(Step::Acquire { lock: Lock(mutex.0), mode: Mode::Exclusive });
        }
        EventKind::Signal { condition, .. } => tell(Step::Signal { object: Object(condition.0) }),
        EventKind::BarrierEnter { barrier, .. } => tell(Step::Arrive { barrier: Object(barrier.0) }),
        EventKind::BarrierExit { barrier, .. } => tell(Step::Leave { barrier: Object(barrier.0) }),
        EventKind::Post { semaphore } => tell(Step::Signal { object: Object(semaphore.0) }),
        EventKind::Take { semaphore } => tell(Step::Wait { object: Object(semaphore.0) }),
        EventKind::OnceDone { once } => tell(Step::Signal { object: Object(once.0) }),
        EventKind::OnceSeen { once } => tell(Step::Wait { object: Object(once.0) }),
        EventKind::ReleaseObject { object } => tell(Step::Signal { object: Object(object.0) }),
        EventKind::AcquireObject { object } => tell(Step::Wait { object: Object(object.0) }),
        EventKind::Fork { child } => tell(Step::Fork { child: Thread(child.0) }),
        EventKind::Join { child, .. } => tell(Step::Join { child: Thread(child.0) }),
        _ => {}
    }
}
