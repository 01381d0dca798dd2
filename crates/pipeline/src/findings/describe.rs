//! From events to words: stacks, locks held, what a pair of accesses touches.
//!
//! Everything is said of one trace: the recorded one for predictions, the proof's own for what was forced. Locks and variables
//! are called by their symbols, heap blocks by where they were allocated.

use crate::findings::locals::KnownLocals;
use crate::findings::members::{Known, Used};
use crate::findings::rust;
use crate::findings::symbols::Symbols;
use crate::findings::wrappers;
use rashomon_abi::record::{descriptor_at, sync_source};
use rashomon_event::finding::{HeldLock, Origin};
use rashomon_event::{
    Access, AccessClass, Address, ContextId, Event, EventIndex, EventKind, Frame, LockMode, MadeLock, Object, ObjectKind, Side,
    Site, SiteId, ThreadId, Trace,
};
use rashomon_report::text::names::function as short_function;
use rashomon_trace::{FrameRecord, LoadedTrace, SyncKind, SyncObjects};
use std::cell::RefCell;
use std::collections::HashMap;

pub struct Describer<'a, S: ?Sized> {
    trace: &'a Trace,
    objects: &'a SyncObjects,
    symbols: &'a S,
    /// By thread, its events that take a lock or give one back.
    locking: Vec<Vec<EventIndex>>,
    /// The event that made each thread.
    made_by: HashMap<ThreadId, EventIndex>,
    pub(crate) members: RefCell<Known>,
    pub(crate) locals: RefCell<KnownLocals>,
    pub(crate) frames: HashMap<(ThreadId, ContextId), FrameRecord>,
    /// Places in the code that are about to use what lies at an address, or wait for it, and never came to.
    pub(crate) about_to: Vec<(Address, SiteId, ContextId)>,
}

impl<'a, S: Symbols + ?Sized> Describer<'a, S> {
    pub fn new(trace: &'a Trace, objects: &'a SyncObjects, symbols: &'a S) -> Self {
        let mut locking = vec![Vec::new(); trace.threads.len()];
        let mut made_by = HashMap::new();
        for (index, event) in trace.events.select([trace.events.besides_accesses()]) {
            if lock_of(&event).is_some() {
                locking[event.thread.index()].push(index);
            }
            if let EventKind::Fork { child } = event.kind {
                made_by.entry(child).or_insert(index);
            }
        }
        let (members, locals, frames, about_to) = Default::default();
        Self { trace, objects, symbols, locking, made_by, members, locals, frames, about_to }
    }

    /// With what is known of frames on stacks.
    pub fn with_frames(mut self, frames: &[FrameRecord]) -> Self {
        self.frames = frames.iter().map(|frame| ((frame.thread, frame.context), *frame)).collect();
        self
    }

    /// Of an execution that ended with threads about to do something.
    pub fn with_ends(mut self, loaded: &LoadedTrace) -> Self {
        let goals = loaded.goals.iter().map(|goal| (goal.address, goal.site, goal.context));
        let blocked = loaded.blocked.iter().map(|record| (record.object, record.site, record.context));
        self.about_to = goals.chain(blocked).collect();
        self
    }

    /// How many events its thread has before it.
    pub fn events_before(&self, index: EventIndex) -> usize {
        self.trace.program_order().place(index).1 as usize
    }

    /// The frames of one site: a return address, so the instruction is the one before.
    pub fn site(&self, site: SiteId) -> Vec<Frame> {
        let site = self.trace.site(site);
        let offset = site.offset.saturating_sub(1);
        match site.module.and_then(|module| self.trace.modules.get(module as usize)) {
            Some(module) => self.symbols.frames(module, offset),
            None => vec![Frame { module: "??".into(), offset, ..Frame::default() }],
        }
    }

    /// Innermost first.
    pub fn stack(&self, site: SiteId, context: ContextId) -> Vec<Frame> {
        let callers = self.trace.callers(context);
        // What the runtime says of itself, such as the end of the process, is done at no place of its own: its caller's stands.
        let own = Some(site).filter(|site| !is_nowhere(self.trace.site(*site)));
        let mut frames: Vec<Frame> = own.into_iter().chain(callers).flat_map(|site| self.site(site)).collect();
        if frames.is_empty() {
            frames = self.site(site);
        }
        // How libc comes to call main or a thread's start routine is of no interest.
        while frames.len() > 1 && frames.last().is_some_and(is_start_code) {
            frames.pop();
        }
        rust::cut_start_code(&mut frames);
        // How the runtime, which serves OpenMP, comes to call the body of a region or a task.
        let own = |frame: &Frame| frame.function.as_deref().is_some_and(|function| function.starts_with("rashomon_runtime::"));
        if !frames.iter().all(own) {
            frames.retain(|frame| !own(frame));
        }
        frames
    }

    /// Where the program's own code was when this happened: a library's code says little to who wrote the program.
    pub fn place_of(&self, event: EventIndex) -> Option<Frame> {
        let event = self.trace.event(event);
        let stack = self.stack(event.site, event.context);
        Frame::best_known(&stack).cloned()
    }

    /// Where a block was asked for: behind functions that only hand out memory under a name of their own, as `xcalloc` does.
    fn asked_at(&self, event: EventIndex) -> Option<Frame> {
        let event = self.trace.event(event);
        let stack = self.stack(event.site, event.context);
        let known = Frame::best_known(&stack)?;
        let hands_out = |frame: &&Frame| frame.function.as_deref().is_some_and(wrappers::hands_out_memory);
        let asks = stack.iter().filter(|frame| frame.origin() == known.origin()).find(|frame| !hands_out(frame));
        asks.or(Some(known)).cloned()
    }

    /// Where the thread was created; empty for the initial thread.
    pub fn creation(&self, thread: ThreadId) -> Vec<Frame> {
        let Some(parent) = self.trace.thread(thread).parent else { return Vec::new() };
        let is_parents = |index: &&EventIndex| self.trace.event(**index).thread == parent;
        match self.made_by.get(&thread).filter(is_parents) {
            Some(index) => {
                let event = self.trace.event(*index);
                let mut stack = self.stack(event.site, event.context);
                rust::cut_library_calls(&mut stack);
                if !stack.iter().any(|frame| frame.origin() == Origin::Program) {
                    stack.extend(self.right_before(parent, *index));
                }
                stack
            }
            None => Vec::new(),
        }
    }

    /// Where the program's own code was that called a library which was not compiled with the program, and left no trace of the
    /// call: at what it did right before, in the same activation of the same function.
    fn right_before(&self, thread: ThreadId, index: EventIndex) -> Option<Frame> {
        /// How many events are looked at.
        const LATEST: usize = 8;
        let order = self.trace.program_order();
        let events = order.range(thread.index(), 0..order.before(thread.index(), index));
        let context = self.trace.event(index).context;
        events.rev().take(LATEST).map(|before| self.trace.event(before)).find_map(|before| {
            let stack = if before.context == context { self.stack(before.site, before.context) } else { Vec::new() };
            stack.into_iter().find(|frame| frame.origin() == Origin::Program)
        })
    }

    /// Locks held by the thread right before `until` (or at its last event), oldest first, with their acquisitions.
    pub fn held(&self, thread: ThreadId, until: Option<EventIndex>) -> Vec<(Address, EventIndex)> {
        let mut held: Vec<(Address, EventIndex)> = Vec::new();
        for &index in self.locking.get(thread.index()).map_or(&[][..], Vec::as_slice) {
            if until.is_some_and(|until| index >= until) {
                break;
            }
            match lock_of(&self.trace.event(index)) {
                Some((lock, true)) => held.push((lock, index)),
                Some((lock, false)) => {
                    if let Some(at) = held.iter().rposition(|(other, _)| *other == lock) {
                        held.remove(at);
                    }
                }
                None => {}
            }
        }
        held
    }

    fn held_words(&self, thread: ThreadId, until: Option<EventIndex>) -> Vec<HeldLock> {
        let held = self.held(thread, until).into_iter();
        held.map(|(lock, index)| {
            let event = self.trace.event(index);
            let shared = matches!(event.kind, EventKind::Acquire { mode: LockMode::Shared, .. });
            HeldLock { name: self.lock(lock), acquired_at: self.stack(event.site, event.context), shared }
        })
        .collect()
    }

    /// `mutex m`, `rwlock table.lock`, `mutex Stats::lock in heap block of 40 bytes allocated at …`.
    pub fn lock(&self, identity: Address) -> String {
        let object = self.objects.get(identity);
        let made = self.trace.made_locks.get(&identity).map(|made| match made {
            MadeLock::Mutex => SyncKind::Mutex,
            MadeLock::RwLock => SyncKind::RwLock,
            MadeLock::Semaphore => SyncKind::Semaphore,
        });
        let kind = match made.or(object.map(|object| object.kind)) {
            Some(SyncKind::RwLock) => "rwlock",
            Some(SyncKind::Spin) => "spin lock",
            Some(SyncKind::OtherLock) | None => "lock",
            Some(SyncKind::Condition) => "condition variable",
            Some(SyncKind::Barrier) => "barrier",
            Some(SyncKind::Semaphore) => "semaphore",
            Some(SyncKind::Once) => "once control",
            Some(SyncKind::Channel { source: sync_source::FUTEX }) => "futex",
            Some(SyncKind::Channel { source: sync_source::FILE }) => return "a descriptor's file".into(),
            Some(SyncKind::Channel { source: sync_source::SIGNAL }) => return "a signal".into(),
            Some(SyncKind::Channel { source: sync_source::PROCESS }) => return "another process".into(),
            Some(SyncKind::Channel { .. }) => "object",
            Some(SyncKind::Mutex) => "mutex",
        };
        let data = object.map_or(Some(identity), |object| object.data);
        match (data.and_then(|data| self.place(data)), object) {
            (Some(Place::Variable(name)), _) => format!("{kind} {name}"),
            (Some(Place::Inside(what)), _) => {
                if let Some(local) = data.and_then(|data| self.local_at(data, Used::Lock(identity))) {
                    return format!("{kind} {local}");
                }
                let member = data.and_then(|data| self.member_of_block(self.object(data)?, data, Used::Lock(identity)));
                format!("{kind} {}in {what}", member.map_or_else(String::new, |member| format!("{member} ")))
            }
            (Some(Place::Whole(what)), _) => format!("{kind} in {what}"),
            (None, Some(object)) => format!("{kind} {:#x}", object.machine),
            (None, None) => format!("{kind} {identity}"),
        }
    }

    /// `global stats.count (4 bytes)`, `Stats::count (4 bytes) in heap block of 16 bytes allocated at …`.
    pub fn data(&self, address: Address, size: u64) -> String {
        // What an allocator gives beyond what was asked for is no part of the block in words.
        let asked = self.trace.object_at(address).map(|id| &self.trace.objects[id.index()]);
        let most = asked.map_or(size, |object| (object.size - object.spare).saturating_sub(address.0 - object.base.0));
        let bytes = byte_count(if most == 0 { size } else { size.min(most) });
        match self.place(address) {
            Some(Place::Variable(name)) => format!("global {name} ({bytes})"),
            Some(Place::Inside(what)) => {
                if let Some(local) = self.local_at(address, Used::Bytes(size)) {
                    return format!("local {local} ({bytes})");
                }
                match self.object(address).and_then(|it| self.member_of_block(it, address, Used::Bytes(size))) {
                    Some(member) => format!("{member} ({bytes}) in {what}"),
                    None => format!("{bytes} in {what}"),
                }
            }
            Some(Place::Whole(what)) => what,
            None => format!("{bytes} at {}", self.machine(address)),
        }
    }

    /// What lies at an address, however much of it is meant: `heap block of 16 bytes allocated at …, 8 bytes into it`.
    pub(crate) fn at(&self, address: Address) -> Option<String> {
        Some(match self.place(address)? {
            Place::Variable(name) => format!("global {name}"),
            Place::Inside(what) | Place::Whole(what) => what,
        })
    }

    /// The name of the global variable there, and how far into it the address is.
    pub(crate) fn variable_at(&self, object: &Object, address: Address) -> Option<(String, u64)> {
        let ObjectKind::Global { module } = object.kind else { return None };
        let module = self.trace.modules.get(module as usize)?;
        let offset = object.machine_base.wrapping_sub(module.base).wrapping_add(address.0 - object.base.0);
        self.symbols.variable(module, offset)
    }

    pub(crate) fn object(&self, address: Address) -> Option<&'a Object> {
        self.trace.objects.get(self.trace.object_at(address)?.index())
    }

    /// Where a lock lies; `None`: it is no memory.
    pub(crate) fn data_of(&self, identity: Address) -> Option<Address> {
        self.objects.get(identity).map_or(Some(identity), |object| object.data)
    }

    pub(crate) fn symbols(&self) -> &'a S {
        self.symbols
    }

    fn machine(&self, address: Address) -> String {
        match self.trace.object_at(address).map(|id| &self.trace.objects[id.index()]) {
            Some(object) => format!("{:#x}", object.machine_base.wrapping_add(address.0 - object.base.0)),
            None => address.to_string(),
        }
    }

    fn place(&self, address: Address) -> Option<Place> {
        let object = &self.trace.objects[self.trace.object_at(address)?.index()];
        let into = address.0 - object.base.0;
        let thread = |thread: ThreadId| match self.trace.threads.get(thread.index()) {
            Some(info) => info.path.words(),
            None => thread.to_string(),
        };
        let at = |site: SiteId| match object
            .born
            .and_then(|event| self.asked_at(event))
            .or_else(|| self.site(site).into_iter().next())
        {
            Some(frame) => place_words(&frame),
            None => "an unknown place".to_owned(),
        };
        Some(match object.kind {
            ObjectKind::Global { module } => {
                let module = self.trace.modules.get(module as usize)?;
                let offset = object.machine_base.wrapping_sub(module.base).wrapping_add(into);
                match self.symbols.variable(module, offset) {
                    Some((name, into)) => Place::Variable(match self.symbols.member(module, offset) {
                        Some(member) => format!("{name}{member}"),
                        None if into == 0 => name,
                        None => format!("{name}+{into}"),
                    }),
                    None => Place::Inside(format!("the data of {} at {offset:#x}", file_name(&module.path))),
                }
            }
            ObjectKind::Heap { site, .. } => Place::Inside(format!(
                "heap block of {} allocated at {}{}",
                byte_count(object.size - object.spare),
                at(site),
                offset_words(into)
            )),
            ObjectKind::Mapping { site, .. } => {
                Place::Inside(format!("mapping of {} made at {}{}", byte_count(object.size), at(site), offset_words(into)))
            }
            ObjectKind::Descriptor { site, .. } => {
                let number = descriptor_at(object.machine_base).map_or_else(String::new, |number| format!(" {number}"));
                Place::Whole(format!("descriptor{number} made at {}", at(site)))
            }
            ObjectKind::Stack { thread: owner } => Place::Inside(format!("the stack of {}", thread(owner))),
            ObjectKind::Tls { thread: owner } => Place::Inside(format!("thread-local storage of {}", thread(owner))),
            ObjectKind::Unknown => return None,
        })
    }

    /// One side of a finding: the thread right before `index`.
    pub fn side_before(&self, index: EventIndex) -> Side {
        let event = self.trace.event(index);
        self.side(event.thread, self.action(&event), event.site, event.context, Some(index))
    }

    /// A side put together from what is known of it. `until`: the event before which the locks are counted.
    pub fn side(&self, thread: ThreadId, action: String, site: SiteId, context: ContextId, until: Option<EventIndex>) -> Side {
        Side {
            thread: self.trace.thread(thread).path.to_string(),
            action,
            stack: self.stack(site, context),
            held: self.held_words(thread, until),
            created_at: self.creation(thread),
        }
    }

    /// What an event is, in words.
    pub fn action(&self, event: &Event) -> String {
        let lock = |lock| self.lock(lock);
        match event.kind {
            EventKind::Access(access) | EventKind::Atomic { access, .. } => self.access(&access),
            EventKind::Acquire { lock: wanted, mode, .. } | EventKind::Request { lock: wanted, mode } => match mode {
                LockMode::Exclusive => format!("acquires {}", lock(wanted)),
                LockMode::Shared => format!("acquires {} (shared)", lock(wanted)),
            },
            EventKind::Release { lock: released, .. } => format!("releases {}", lock(released)),
            EventKind::Fork { child } => format!("creates thread {}", self.trace.thread(child).path),
            EventKind::Join { child, .. } => format!("joins thread {}", self.trace.thread(child).path),
            EventKind::Start => "starts".into(),
            EventKind::End => "ends".into(),
            EventKind::WaitBegin { condition, .. } => format!("waits on {}", lock(condition)),
            EventKind::WaitEnd { condition, .. } => format!("wakes from {}", lock(condition)),
            EventKind::Signal { condition, broadcast } => {
                format!("{} {}", if broadcast { "broadcasts" } else { "signals" }, lock(condition))
            }
            EventKind::BarrierEnter { barrier, .. } => format!("enters {}", lock(barrier)),
            EventKind::BarrierExit { barrier, .. } => format!("leaves {}", lock(barrier)),
            EventKind::Post { semaphore } => format!("posts {}", lock(semaphore)),
            EventKind::Take { semaphore } => format!("takes {}", lock(semaphore)),
            EventKind::OnceBegin { once } | EventKind::OnceDone { once } | EventKind::OnceSeen { once } => {
                format!("runs {}", lock(once))
            }
            EventKind::Fence { .. } => "executes a fence".into(),
            EventKind::ReleaseObject { object } => format!("releases to {}", lock(object)),
            EventKind::AcquireObject { object } => format!("acquires from {}", lock(object)),
            EventKind::Blocked { on } => format!("waits for {}", lock(on)),
            EventKind::Other(op) => op.words().into(),
        }
    }

    /// `write of 4 bytes`, `free of 16 bytes`, `close`.
    pub fn access(&self, access: &Access) -> String {
        let object = self.trace.object_at(access.address).map(|id| &self.trace.objects[id.index()]);
        let ends = access.class == AccessClass::End;
        let bytes = || byte_count(object.filter(|_| ends).map_or(u64::from(access.size), |object| object.size - object.spare));
        match object.map(|object| object.kind) {
            Some(ObjectKind::Descriptor { .. }) => if ends { "close" } else { "use" }.to_owned(),
            Some(ObjectKind::Heap { .. }) if ends => format!("free of {}", bytes()),
            Some(ObjectKind::Mapping { .. }) if ends => format!("unmapping of {}", bytes()),
            _ => access_words(access),
        }
    }

    pub fn trace(&self) -> &'a Trace {
        self.trace
    }
}

/// The lock that an event takes (`true`) or gives back.
const fn lock_of(event: &Event) -> Option<(Address, bool)> {
    match event.kind {
        EventKind::Acquire { lock, .. } | EventKind::WaitEnd { mutex: lock, .. } => Some((lock, true)),
        EventKind::Release { lock, .. } | EventKind::WaitBegin { mutex: lock, .. } => Some((lock, false)),
        _ => None,
    }
}

fn is_nowhere(site: &Site) -> bool {
    site.address == 0
}

fn is_start_code(frame: &Frame) -> bool {
    const NAMES: [&str; 8] = [
        "_start",
        "__libc_start_main",
        "__libc_start_main_impl",
        "__libc_start_call_main",
        "rashomon_call_main",
        "start_thread",
        "clone",
        "clone3",
    ];
    // Also what our runtime puts between the two.
    let starts = |function: &str| NAMES.contains(&function) || function.starts_with("rashomon_runtime::");
    frame.function.as_deref().is_none_or(starts) && !frame.inlined
}

enum Place {
    Variable(String),
    /// Something that is not made of bytes.
    Whole(String),
    Inside(String),
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

pub(crate) fn byte_count(bytes: u64) -> String {
    if bytes == 1 { "1 byte".into() } else { format!("{bytes} bytes") }
}

fn offset_words(into: u64) -> String {
    if into == 0 { String::new() } else { format!(", {} into it", byte_count(into)) }
}

/// `function (file:line)`.
pub(crate) fn place_words(frame: &Frame) -> String {
    let place = match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{}:{line}", file_name(file)),
        _ => format!("{}+{:#x}", file_name(&frame.module), frame.offset),
    };
    match frame.function.as_deref().map(short_function) {
        Some(function) => format!("{function} ({place})"),
        None => place,
    }
}

/// `write of 4 bytes`, `atomic read of 8 bytes`.
pub fn access_words(access: &Access) -> String {
    format!("{} of {}", access_class(access), byte_count(u64::from(access.size)))
}

/// `write`, `atomic read`.
pub fn access_class(access: &Access) -> String {
    let class = match access.class {
        AccessClass::Read => "read",
        AccessClass::Write => "write",
        AccessClass::ReadWrite => "read and write",
        AccessClass::End => "freeing",
    };
    format!("{}{class}", if access.atomic { "atomic " } else { "" })
}
