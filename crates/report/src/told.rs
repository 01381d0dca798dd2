//! Warnings and what analyses found, as findings: what formats see of them that have nothing of their own to say.

use crate::analysis::{Region, TracedAccess};
use crate::warning::{self, Kind, Location, Place, Stack, Warning};
use rashomon_event::finding::HeldLock;
use rashomon_event::{Evidence, Finding, FindingId, FindingKind, Frame, Side, counted};

fn side(thread: String, action: String, stack: Vec<Frame>) -> Side {
    Side { thread, action, stack, held: Vec::new(), created_at: Vec::new() }
}

/// A place that a trace names as it likes.
fn named_place(location: Option<&str>) -> Vec<Frame> {
    location.map(|location| Frame { function: Some(location.to_owned()), ..Frame::default() }).into_iter().collect()
}

impl TracedAccess {
    pub(crate) fn side(&self, what: &str) -> Side {
        side(self.thread.clone(), format!("{what}, event {}", self.event), named_place(self.location.as_deref()))
    }
}

impl Region {
    pub(crate) fn side(&self) -> Side {
        let action = format!("begins {}, event {}", self.name, self.event);
        side(self.thread.clone(), action, named_place(self.location.as_deref()))
    }
}

impl Kind {
    /// Its kind among findings, and what speaks for it.
    pub const fn of_finding(self) -> (FindingKind, Evidence) {
        match self {
            Self::DataRace | Self::VptrRace | Self::ExternalRace => (FindingKind::DataRace, Evidence::HappensBefore),
            Self::UseAfterFree | Self::VptrUseAfterFree => (FindingKind::UseAfterFree, Evidence::HappensBefore),
            Self::ThreadLeak => (FindingKind::ThreadLeak, Evidence::Observed),
            Self::MutexDestroyLocked => (FindingKind::DestroyLocked, Evidence::Observed),
            Self::MutexDoubleLock | Self::MutexBadReadLock => (FindingKind::DoubleLock, Evidence::Observed),
            Self::MutexInvalid => (FindingKind::UseOfDestroyed, Evidence::Observed),
            Self::MutexBadUnlock | Self::MutexBadReadUnlock => (FindingKind::UnlockNotHeld, Evidence::Observed),
            Self::SignalUnsafe | Self::ErrnoInSignal => (FindingKind::UnsafeInSignal, Evidence::Observed),
            Self::MutexWrongContext => (FindingKind::WrongContext, Evidence::Observed),
            Self::Deadlock => (FindingKind::Deadlock, Evidence::LockOrder),
            Self::Deadlocked => (FindingKind::Deadlock, Evidence::Observed),
            Self::Stuck => (FindingKind::Stuck, Evidence::Observed),
        }
    }
}

fn frames(stack: &Stack) -> Vec<Frame> {
    let frame = |frame: &warning::Frame| Frame {
        function: frame.function.clone(),
        file: frame.file.clone(),
        line: frame.line,
        column: frame.column,
        module: frame.module.clone().unwrap_or_default(),
        offset: frame.offset,
        inlined: frame.inlined,
    };
    stack.frames.iter().map(frame).collect()
}

fn subject(location: &Location) -> String {
    match (location.place, &location.variable) {
        (Place::Static, Some(variable)) => variable.phrase(),
        (Place::Static, None) => format!("{:#x}", location.address),
        (Place::Heap, _) => format!("heap block of {}", counted(location.size, "byte")),
        (Place::Stack, _) => format!("stack of {}", thread_path(location.thread)),
        (Place::Tls, _) => format!("thread-local storage of {}", thread_path(location.thread)),
        (Place::Descriptor, _) => format!("file descriptor {}", location.descriptor),
    }
}

fn thread_path(number: u64) -> String {
    if number == 0 { "main".into() } else { format!("T{number}") }
}

impl Warning {
    /// The same as a finding.
    pub fn finding(&self, process: u64) -> Finding {
        let (kind, evidence) = self.kind.of_finding();
        let mutex = |index: usize| format!("mutex M{index}");
        let created = |number: u64| {
            let thread = self.threads.iter().find(|thread| thread.number == number && number != 0);
            thread.map_or_else(Vec::new, |thread| frames(&thread.created))
        };
        let accesses = self.accesses.iter().map(|access| {
            let atomic = if access.is_atomic() { "atomic " } else { "" };
            let what = if access.is_free() {
                "release".to_owned()
            } else {
                format!("{atomic}{} of {}", if access.is_write() { "write" } else { "read" }, counted(access.size, "byte"))
            };
            let held = access.held.iter().map(|held| HeldLock {
                name: mutex(held.mutex),
                shared: !held.write,
                acquired_at: self.mutexes.get(held.mutex).map_or_else(Vec::new, |known| frames(&known.created)),
            });
            Side {
                held: held.collect(),
                created_at: created(access.thread),
                ..side(thread_path(access.thread), what, frames(&access.stack))
            }
        });
        let calls = self.stacks.iter().enumerate().map(|(index, stack)| {
            let thread = self.unique_threads.get(index).copied();
            let action = match stack.awaits {
                Some(lock) => format!("waits for {}", mutex(lock)),
                None => self.title().to_owned(),
            };
            side(thread.map_or_else(|| "a thread".into(), thread_path), action, frames(stack))
        });
        let leaked = self.threads.iter().filter(|_| self.kind == Kind::ThreadLeak);
        let leaked = leaked.map(|thread| side(thread_path(thread.number), "ended unjoined".into(), frames(&thread.created)));
        let sides = accesses.chain(calls).chain(leaked).collect();
        let subject = self.locations.first().map_or_else(|| self.title().to_owned(), subject);
        let notes = vec![format!("{} in process {process}", self.title())];
        let count = self.count.max(1);
        Finding { subject, sides, notes, occurrences: count, ..Finding::suspected(kind, evidence, FindingId::of("warning", 0)) }
    }
}
