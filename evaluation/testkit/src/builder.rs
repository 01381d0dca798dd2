//! Builds traces event by event. Every event gets a site of its own unless told otherwise.

use rashomon_event::{
    Access, AccessClass, Address, ContextId, Event, EventIndex, EventKind, Mode, Site, SiteId, ThreadId, ThreadInfo, ThreadPath,
    Trace,
};
use std::collections::BTreeMap;

#[derive(Default)]
pub struct TraceBuilder {
    threads: Vec<ThreadInfo>,
    children: Vec<u32>,
    ordinals: Vec<u32>,
    sites: u32,
    events: Vec<Event>,
    semaphores: BTreeMap<Address, u64>,
}

impl TraceBuilder {
    /// A trace with the initial thread only.
    pub fn new() -> Self {
        let mut builder = Self::default();
        builder.add(ThreadPath::default(), None, 0);
        builder
    }

    /// A trace with `count` threads; all but the first are children of the first (without `Fork` events).
    pub fn with_threads(count: u32) -> Self {
        let mut builder = Self::new();
        for _ in 1..count {
            builder.thread(ThreadId(0));
        }
        builder
    }

    fn add(&mut self, path: ThreadPath, parent: Option<ThreadId>, spawn_ordinal: u32) -> ThreadId {
        self.threads.push(ThreadInfo { path, parent, spawn_ordinal, stack: None });
        self.children.push(0);
        self.ordinals.push(0);
        ThreadId(self.threads.len() as u32 - 1)
    }

    /// A new child of `parent`.
    pub fn thread(&mut self, parent: ThreadId) -> ThreadId {
        let ordinal = self.children[parent.index()];
        self.children[parent.index()] += 1;
        let path = self.threads[parent.index()].path.child(ordinal);
        self.add(path, Some(parent), ordinal)
    }

    pub fn push(&mut self, thread: ThreadId, kind: EventKind) -> EventIndex {
        let site = SiteId(self.sites);
        self.push_at(thread, kind, site)
    }

    pub fn push_at(&mut self, thread: ThreadId, kind: EventKind, site: SiteId) -> EventIndex {
        self.sites = self.sites.max(site.0 + 1);
        let ordinal = self.ordinals[thread.index()];
        if !matches!(kind, EventKind::Access(_) | EventKind::Request { .. } | EventKind::Blocked { .. }) {
            self.ordinals[thread.index()] += 1;
        }
        self.events.push(Event { thread, site, context: ContextId::ROOT, ordinal, kind });
        EventIndex(self.events.len() as u32 - 1)
    }

    /// A plain access.
    pub fn access(&mut self, thread: ThreadId, class: AccessClass, address: Address, size: u32) -> EventIndex {
        self.push(thread, EventKind::Access(Access { address, size, class, atomic: false }))
    }

    /// Says with which count a semaphore begins.
    pub fn semaphore(&mut self, semaphore: Address, count: u64) {
        self.semaphores.insert(semaphore, count);
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub fn build(self) -> Trace {
        let sites = (0..u64::from(self.sites)).map(|site| Site { address: 0x40_0000 + 4 * site, module: None, offset: 4 * site });
        Trace {
            threads: self.threads,
            sites: sites.collect(),
            semaphores: self.semaphores,
            ..Trace::of_events(Mode::Serial, self.events)
        }
    }
}
