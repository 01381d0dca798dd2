//! A recording as an exploration would have logged it: what its threads did to the objects that they met at.
//!
//! For searches that draw orders from what executions did: the recording is one, and nothing has to be executed to know it.
//! Limits: objects are those of executions whose addresses are not randomised, and where a thread waits, or did not get what it
//! tried, a step may be missing. A search asks for some orders in vain then, which it learns.

use rashomon_abi::exploration::{NO_WAIT, Operation};
use rashomon_abi::record::{AccessClass, Op};
use rashomon_confirm::Planner;
use rashomon_event::{Access, Address, AtomicOp, CodePlace, EventKind, LockMode, SiteId, ThreadId, Trace};
use rashomon_explore::log::{Pending, ThreadBirth};
use rashomon_explore::{Log, Step, VisibleAccesses};
use rashomon_trace::LoadedTrace;
use std::collections::{BTreeMap, BTreeSet};

/// Events of a recording that is looked at.
const MOST_EVENTS: usize = 1 << 22;

/// From the first creation of a thread on. `None`: nothing in it could come in another order, or it is too long.
pub(super) fn log_of(loaded: &LoadedTrace, accesses: &VisibleAccesses) -> Option<Log> {
    let trace = &loaded.trace;
    if trace.events.len() > MOST_EVENTS {
        return None;
    }
    let visible = Visible::of(trace, accesses);
    let begins = trace.events.iter().position(|event| matches!(event.kind, EventKind::Fork { .. }))?;
    let mut log = Log { threads: vec![None; trace.threads.len()], ..Log::default() };
    for event in trace.events.range(begins..trace.events.len()) {
        if let EventKind::Fork { child } = event.kind {
            let birth = ThreadBirth { parent: Some(event.thread.0), spawn_ordinal: 0, steps: log.steps.len() + 1 };
            *log.threads.get_mut(child.0 as usize)? = Some(birth);
        }
        let Some(operation) = operation(loaded, event.kind).filter(|operation| operation.op != 0 || visible.is(event.site))
        else {
            continue;
        };
        let does = Pending { operation, site: trace.site(event.site).address, ..Pending::default() };
        log.steps.push(Step { thread: event.thread.0, enabled: 0, asleep: 0, waiting: 0, does, after: None });
    }
    Some(log)
}

/// Which plain accesses are steps.
enum Visible {
    All,
    Sites(BTreeSet<SiteId>),
}

impl Visible {
    fn of(trace: &Trace, accesses: &VisibleAccesses) -> Self {
        let places: BTreeSet<CodePlace> = match accesses {
            VisibleAccesses::All => return Self::All,
            VisibleAccesses::None => BTreeSet::new(),
            VisibleAccesses::Sites(places) => places.iter().copied().collect(),
        };
        let planner = Planner::new(trace, 0);
        let mut known: BTreeMap<SiteId, bool> = BTreeMap::new();
        for event in trace.events.iter().filter(|event| matches!(event.kind, EventKind::Access(_))) {
            known.entry(event.site).or_insert_with(|| places.contains(&planner.code_place(event.site)));
        }
        Self::Sites(known.into_iter().filter(|(_, is_listed)| *is_listed).map(|(site, _)| site).collect())
    }

    fn is(&self, site: SiteId) -> bool {
        match self {
            Self::All => true,
            Self::Sites(sites) => sites.contains(&site),
        }
    }
}

/// `None`: no step, or none that meets others.
fn operation(loaded: &LoadedTrace, kind: EventKind) -> Option<Operation> {
    let on = |op: Op, identity: Address| {
        let object = machine(&loaded.trace, loaded.data_address(identity));
        Operation { op: op as u64, object, ..Operation::default() }
    };
    let of_thread =
        |op: Op, thread: ThreadId| Operation { op: op as u64, object: 1 + u64::from(thread.0), ..Operation::default() };
    let may_wait = |waits: bool| if waits { 0 } else { NO_WAIT };
    Some(match kind {
        EventKind::Access(access) => access_of(&loaded.trace, access, 0),
        EventKind::Atomic { access, op, .. } => {
            let code = match op {
                AtomicOp::Load => Op::AtomicLoad,
                AtomicOp::Store => Op::AtomicStore,
                AtomicOp::Rmw | AtomicOp::CasFailed => Op::AtomicRmw,
            };
            access_of(&loaded.trace, access, code as u64)
        }
        EventKind::Fork { child } => of_thread(Op::ThreadCreate, child),
        EventKind::Join { child, .. } => of_thread(Op::ThreadJoin, child),
        EventKind::Acquire { lock, mode, may_wait: waits } => {
            let op = if mode == LockMode::Shared { Op::LockShared } else { Op::Lock };
            Operation { second: may_wait(waits), ..on(op, lock) }
        }
        EventKind::Release { lock, mode } => on(if mode == LockMode::Shared { Op::UnlockShared } else { Op::Unlock }, lock),
        EventKind::WaitBegin { condition, mutex } => {
            let mutex = machine(&loaded.trace, loaded.data_address(mutex));
            Operation { second: mutex, ..on(Op::CondWaitBegin, condition) }
        }
        EventKind::WaitEnd { condition, .. } => on(Op::CondWaitEnd, condition),
        EventKind::Signal { condition, broadcast } => on(if broadcast { Op::CondBroadcast } else { Op::CondSignal }, condition),
        EventKind::BarrierEnter { barrier, .. } => on(Op::BarrierEnter, barrier),
        EventKind::BarrierExit { barrier, .. } => on(Op::BarrierExit, barrier),
        EventKind::Post { semaphore } => on(Op::SemaphorePost, semaphore),
        EventKind::Take { semaphore } => on(Op::SemaphoreWait, semaphore),
        EventKind::OnceBegin { once } => on(Op::OnceBegin, once),
        EventKind::OnceDone { once } => on(Op::OnceDone, once),
        EventKind::OnceSeen { once } => on(Op::OnceSeen, once),
        EventKind::ReleaseObject { object } => on(Op::Release, object),
        EventKind::AcquireObject { object } => on(Op::Acquire, object),
        _ => return None,
    })
}

fn access_of(trace: &Trace, access: Access, op: u64) -> Operation {
    let class = match access.class {
        rashomon_event::AccessClass::Read => AccessClass::Read,
        rashomon_event::AccessClass::Write => AccessClass::Write,
        rashomon_event::AccessClass::ReadWrite => AccessClass::ReadWrite,
        rashomon_event::AccessClass::End => AccessClass::End,
    };
    let class = class as u64;
    Operation {
        op,
        object: machine(trace, access.address),
        second: 0,
        class,
        bytes: u64::from(access.size),
        atomic: access.atomic,
    }
}

/// Where the byte lay in the process.
fn machine(trace: &Trace, synthetic: Address) -> u64 {
    let behind = trace.objects.partition_point(|object| object.base <= synthetic);
    let object = behind.checked_sub(1).map(|nth| &trace.objects[nth]);
    object.map_or(synthetic.0, |object| object.machine_base + (synthetic.0 - object.base.0))
}
