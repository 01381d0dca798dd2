//! Events in words that do not depend on where the loader put things, to compare recordings of one program.
//!
//! Code is module and offset, data is an object and a distance: a module's data by its offset, a heap block by the thread and
//! site of its allocation and a count, a stack by the distance from its high end. Kernel numbers (thread ids, process ids) are
//! left out.
//!
//! Lock requests are left out: a thread that a schedule stops before an acquisition never finds the lock taken.
//!
//! Repetitions of an access without a synchronisation event of its thread in between are left out: whether the recorder kept them
//! depends on what else fell into the same slot of its filter, and that on addresses.
//!
//! Limits. Of memory that belongs to no known object only the offset in its page is kept. An atomic's value that may be an
//! address (from 2^32 below 2^47) is only said to be one.

use crate::identity::SyncKind;
use crate::loaded::LoadedTrace;
use rashomon_abi::numbers::Fnv;
use rashomon_event::harmless;
use rashomon_event::{Access, AccessClass, Address, ContextId, Event, EventIndex, EventKind, ObjectKind, SiteId, ThreadId};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write;

/// Identities of objects that have no bytes are given one after the other.
const CHANNEL_NUMBER_MASK: u64 = (1 << 60) - 1;

/// Whether texts may hold machine addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    Comparable,
    Exact,
}

/// Writes places and events of a trace as text.
pub struct Names<'a> {
    loaded: &'a LoadedTrace,
    detail: Detail,
    modules: Vec<Cow<'a, str>>,
    threads: Vec<String>,
    /// Hash of the chain of call sites of each context, in comparable form.
    contexts: Vec<u32>,
}

impl<'a> Names<'a> {
    /// Names that two recordings of the same execution share.
    pub fn comparable(loaded: &'a LoadedTrace) -> Self {
        Self::new(loaded, Detail::Comparable)
    }

    /// Names with machine addresses where nothing better is known.
    pub fn exact(loaded: &'a LoadedTrace) -> Self {
        Self::new(loaded, Detail::Exact)
    }

    fn new(loaded: &'a LoadedTrace, detail: Detail) -> Self {
        let trace = &loaded.trace;
        let base_name = |path: &'a str| path.rsplit('/').next().unwrap_or(path);
        let mut names = Self {
            loaded,
            detail,
            modules: trace.modules.iter().map(|module| harmless(base_name(&module.path))).collect(),
            threads: trace.threads.iter().map(|thread| thread.path.to_string()).collect(),
            contexts: Vec::with_capacity(trace.contexts.len()),
        };
        for (number, context) in trace.contexts.iter().enumerate() {
            // A parent precedes its children, because it was interned before them.
            let hash = match number {
                0 => Fnv::EMPTY.0 as u32,
                _ => {
                    let parent = names.contexts[context.parent.index()];
                    let seed = Fnv(Fnv::EMPTY.0 ^ u64::from(parent));
                    let Fnv(hash) = seed.with(names.site(context.call).as_bytes());
                    (hash ^ (hash >> 32)) as u32
                }
            };
            names.contexts.push(hash);
        }
        names
    }

    pub fn thread(&self, thread: ThreadId) -> &str {
        &self.threads[thread.index()]
    }

    pub fn site(&self, site: SiteId) -> String {
        let site = self.loaded.trace.site(site);
        match (site.module, self.detail) {
            (Some(module), _) => format!("{}+{:#x}", self.modules[module as usize], site.offset),
            (None, Detail::Exact) => format!("{:#x}", site.address),
            (None, Detail::Comparable) => format!("?+{:#x}", site.address & 0xfff),
        }
    }

    /// A hash of the call sites, the same for the same chain in another recording.
    pub fn context(&self, context: ContextId) -> u32 {
        self.contexts[context.index()]
    }

    /// A data address: object and distance.
    pub fn data(&self, address: Address) -> String {
        let trace = &self.loaded.trace;
        let Some(object) = trace.object_at(address).map(|id| &trace.objects[id.index()]) else {
            return match self.detail {
                Detail::Exact => format!("{address}"),
                Detail::Comparable => format!("?+{:#x}", address.0 & 0xfff),
            };
        };
        let offset = address.0 - object.base.0;
        let from_end = object.size - offset;
        match object.kind {
            ObjectKind::Global { module } => {
                let base = trace.modules[module as usize].base;
                format!("{}+{:#x}", self.modules[module as usize], (object.machine_base + offset).wrapping_sub(base))
            }
            ObjectKind::Heap { thread, site, ordinal } => {
                format!("heap({} {} #{ordinal})+{offset:#x}", self.thread(thread), self.site(site))
            }
            ObjectKind::Mapping { thread, site, ordinal } => {
                format!("mapping({} {} #{ordinal})+{offset:#x}", self.thread(thread), self.site(site))
            }
            ObjectKind::Descriptor { thread, site, ordinal } => {
                format!("descriptor({} {} #{ordinal})+{offset:#x}", self.thread(thread), self.site(site))
            }
            ObjectKind::Stack { thread } => format!("stack({})-{from_end:#x}", self.thread(thread)),
            ObjectKind::Tls { thread } => format!("tls({})-{from_end:#x}", self.thread(thread)),
            ObjectKind::Unknown => match self.detail {
                Detail::Exact => format!("{:#x}", object.machine_base + offset),
                Detail::Comparable => format!("?+{:#x}", address.0 & 0xfff),
            },
        }
    }

    /// A synchronisation object: its bytes, and which of the objects that lived there.
    pub fn identity(&self, identity: Address) -> String {
        let Some(object) = self.loaded.sync_objects.get(identity) else { return self.data(identity) };
        let mut text = match (object.data, object.kind) {
            (Some(data), _) => self.data(data),
            // The kernel's name for it changes from run to run; its number does not.
            (None, SyncKind::Channel { source }) if self.detail == Detail::Comparable => {
                format!("channel({source} #{})", identity.0 & CHANNEL_NUMBER_MASK)
            }
            (None, SyncKind::Channel { source }) => format!("channel({source} {})", object.machine),
            (None, _) => format!("number({})", object.machine),
        };
        if object.incarnation > 0 {
            let _ = write!(text, "~{}", object.incarnation);
        }
        text
    }

    /// An event by its thread and ordinal.
    fn position(&self, index: EventIndex) -> String {
        let event = self.loaded.trace.event(index);
        format!("{}@{}", self.thread(event.thread), event.ordinal)
    }

    fn value(&self, value: u64) -> String {
        let may_be_address = (1 << 32..1 << 47).contains(&value);
        match self.detail {
            Detail::Comparable if may_be_address => "address".to_owned(),
            _ => format!("{value:#x}"),
        }
    }

    /// What the event is, without thread and place.
    pub fn kind(&self, kind: &EventKind) -> String {
        let of = |address: &Address| self.identity(*address);
        let signal = |signal: &Option<EventIndex>| signal.map_or("-".to_owned(), |index| self.position(index));
        match kind {
            EventKind::Access(access) => format!("{} {} {}", class_name(access.class), access.size, self.data(access.address)),
            EventKind::Atomic { access, op, order, value } => {
                format!("atomic {op:?} {order:?} {} {} = {}", access.size, self.data(access.address), self.value(*value))
            }
            EventKind::Fence { order } => format!("fence {order:?}"),
            EventKind::Start => "start".to_owned(),
            EventKind::End => "end".to_owned(),
            EventKind::Fork { child } => format!("create {}", self.thread(*child)),
            EventKind::Join { child, may_wait } => format!("join {}{}", self.thread(*child), if *may_wait { "" } else { " try" }),
            EventKind::Acquire { lock, mode, may_wait } => {
                format!("acquire {mode:?} {}{}", of(lock), if *may_wait { "" } else { " try" })
            }
            EventKind::Release { lock, mode } => format!("release {mode:?} {}", of(lock)),
            EventKind::Request { lock, mode } => format!("request {mode:?} {}", of(lock)),
            EventKind::WaitBegin { condition, mutex } => format!("wait-begin {} {}", of(condition), of(mutex)),
            EventKind::WaitEnd { condition, mutex, woken_by, timed_out } => {
                format!(
                    "wait-end {} {} by {}{}",
                    of(condition),
                    of(mutex),
                    signal(woken_by),
                    if *timed_out { " timed-out" } else { "" }
                )
            }
            EventKind::Signal { condition, broadcast: false } => format!("signal {}", of(condition)),
            EventKind::Signal { condition, broadcast: true } => format!("broadcast {}", of(condition)),
            EventKind::BarrierEnter { barrier, generation } => format!("barrier-enter {} {generation}", of(barrier)),
            EventKind::BarrierExit { barrier, generation } => format!("barrier-exit {} {generation}", of(barrier)),
            EventKind::Post { semaphore } => format!("post {}", of(semaphore)),
            EventKind::Take { semaphore } => format!("take {}", of(semaphore)),
            EventKind::OnceBegin { once } => format!("once-begin {}", of(once)),
            EventKind::OnceDone { once } => format!("once-done {}", of(once)),
            EventKind::OnceSeen { once } => format!("once-seen {}", of(once)),
            EventKind::ReleaseObject { object } => format!("release {}", of(object)),
            EventKind::AcquireObject { object } => format!("acquire {}", of(object)),
            EventKind::Blocked { on } => format!("blocked {}", of(on)),
            EventKind::Other(_) => "other".to_owned(),
        }
    }

    /// The event in one line.
    pub fn event(&self, event: &Event) -> String {
        let Event { thread, site, context, ordinal, kind } = event;
        format!("{} @{ordinal} {} c{:08x} {}", self.thread(*thread), self.site(*site), self.context(*context), self.kind(kind))
    }
}

/// Whether the event must be in every recording of the same execution.
pub(crate) const fn is_comparable(event: &Event) -> bool {
    !matches!(event.kind, EventKind::Request { .. })
}

const fn class_name(class: AccessClass) -> &'static str {
    match class {
        AccessClass::Read => "read",
        AccessClass::Write => "write",
        AccessClass::ReadWrite => "read-write",
        AccessClass::End => "end",
    }
}

/// The plain accesses of each thread since its last event with an ordinal.
struct Repetitions(Vec<(u32, HashSet<(SiteId, Access)>)>);

impl Repetitions {
    fn new(threads: usize) -> Self {
        Self(vec![Default::default(); threads])
    }

    fn repeats(&mut self, event: &Event) -> bool {
        let EventKind::Access(access) = event.kind else { return false };
        let (ordinal, seen) = &mut self.0[event.thread.index()];
        if *ordinal != event.ordinal {
            *ordinal = event.ordinal;
            seen.clear();
        }
        !seen.insert((event.site, access))
    }
}

impl LoadedTrace {
    /// The events as comparable lines: two recordings of the same execution give the same lines.
    pub fn normalised(&self) -> impl Iterator<Item = String> + '_ {
        self.normalised_before(None)
    }

    /// The same of the events before one; of all without one.
    pub fn normalised_before(&self, end: Option<EventIndex>) -> impl Iterator<Item = String> + '_ {
        let names = Names::comparable(self);
        let mut seen = Repetitions::new(self.trace.threads.len());
        let count = end.map_or(usize::MAX, EventIndex::index).min(self.trace.events.len());
        let kept = self.trace.events.range(0..count).filter(move |event| is_comparable(event) && !seen.repeats(event));
        kept.map(move |event| names.event(&event))
    }

    /// A hash of all comparable lines and their order.
    pub fn normalised_digest(&self) -> u64 {
        self.normalised().fold(Fnv::EMPTY, |hash, line| hash.with(line.as_bytes()).with(b"\n")).0
    }
}
