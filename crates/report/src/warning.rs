//! A warning of online detection: what the runtime tells, with the names that are found for its addresses.

use crate::frame::{NULL, base_name};
use rashomon_event::counted;
use schemars::JsonSchema;
use serde::Serialize;

/// What a warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    DataRace,
    VptrRace,
    UseAfterFree,
    VptrUseAfterFree,
    ExternalRace,
    ThreadLeak,
    MutexDestroyLocked,
    MutexDoubleLock,
    MutexInvalid,
    MutexBadUnlock,
    MutexBadReadLock,
    MutexBadReadUnlock,
    SignalUnsafe,
    ErrnoInSignal,
    Deadlock,
    MutexWrongContext,
    Deadlocked,
    Stuck,
}

impl Kind {
    /// ThreadSanitizer's words.
    pub const fn title(self) -> &'static str {
        match self {
            Self::DataRace => "data race",
            Self::VptrRace => "data race on vptr (ctor/dtor vs virtual call)",
            Self::UseAfterFree => "heap-use-after-free",
            Self::VptrUseAfterFree => "heap-use-after-free (virtual call vs free)",
            Self::ExternalRace => "race on external object",
            Self::ThreadLeak => "thread leak",
            Self::MutexDestroyLocked => "destroy of a locked mutex",
            Self::MutexDoubleLock => "double lock of a mutex",
            Self::MutexInvalid => "use of an invalid mutex (e.g. uninitialized or destroyed)",
            Self::MutexBadUnlock => "unlock of an unlocked mutex (or by a wrong thread)",
            Self::MutexBadReadLock => "read lock of a write locked mutex",
            Self::MutexBadReadUnlock => "read unlock of a write locked mutex",
            Self::SignalUnsafe => "signal-unsafe call inside of a signal",
            Self::ErrnoInSignal => "signal handler spoils errno",
            Self::Deadlock => "lock-order-inversion (potential deadlock)",
            Self::MutexWrongContext => "mutex held in the wrong context",
            Self::Deadlocked => "deadlock",
            Self::Stuck => "every thread waits",
        }
    }
}

/// Places of the code, one for each address and more where calls were inlined; innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// As the runtime told it: a return address.
    pub address: u64,
    /// Demangled.
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub column: Option<u32>,
    /// Path of the module.
    pub module: Option<String>,
    /// Of the call, in the module.
    pub offset: u64,
    /// Told with the innermost frame of each address.
    pub build_id: Option<String>,
    /// Inlined into the next one.
    pub inlined: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// Return addresses, innermost first.
    pub addresses: Vec<u64>,
    /// What they mean, once it has been looked up.
    pub frames: Vec<Frame>,
    /// Suppressions may match its frames.
    pub suppressable: bool,
    /// Index of the mutex that the thread waits for there.
    pub awaits: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Index into the warning's mutexes.
    pub mutex: usize,
    pub write: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    pub write: bool,
    pub atomic: bool,
    /// Memory is given back.
    pub free: bool,
    pub address: u64,
    pub size: u64,
    pub thread: u64,
    pub tag: u64,
    pub held: Vec<Held>,
    pub stack: Stack,
}

impl Access {
    pub const fn is_write(&self) -> bool {
        self.write
    }
    pub const fn is_atomic(&self) -> bool {
        self.atomic
    }
    pub const fn is_free(&self) -> bool {
        self.free
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutex {
    pub address: u64,
    pub destroyed: bool,
    /// A call initialised it; its definition did not.
    pub initialised: bool,
    /// Where it was initialised, or first used.
    pub created: Stack,
}

impl Mutex {
    /// What `created` is, in words.
    pub const fn origin(&self) -> &'static str {
        if self.initialised { "initialised at" } else { "initialised by no call (static initialiser or zeros), first used at" }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub number: u64,
    pub id: u64,
    pub running: bool,
    /// Of Grand Central Dispatch.
    pub worker: bool,
    pub parent: u64,
    /// How many threads its parent had created before.
    pub ordinal: Option<u64>,
    pub name: String,
    pub created: Stack,
}

impl Thread {
    pub const fn is_running(&self) -> bool {
        self.running
    }
    pub const fn is_worker(&self) -> bool {
        self.worker
    }
}

/// A variable of a module; without a symbol its name is [`NULL`] and its size 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    pub start: u64,
    pub size: u64,
    pub module: String,
    pub offset: u64,
    pub file: Option<String>,
    pub line: Option<u32>,
}

impl Variable {
    /// One phrase that says which: `global x (4 bytes)`, or in whose data it lies and where.
    pub(crate) fn phrase(&self) -> String {
        if self.name == NULL && self.size == 0 {
            return format!("the data of {} at {:#x}", base_name(&self.module), self.offset);
        }
        format!("global {} ({})", self.name, counted(self.size, "byte"))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// A variable of a module, if one is known.
    Static,
    Heap,
    Stack,
    Tls,
    Descriptor,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub place: Place,
    pub address: u64,
    pub start: u64,
    pub size: u64,
    pub thread: u64,
    pub descriptor: u64,
    pub closed: bool,
    pub tag: u64,
    /// Of the allocation, or of what made the descriptor.
    pub stack: Stack,
    /// Once it has been looked up.
    pub variable: Option<Variable>,
}

/// What the program says of objects that it watches itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    pub number: u64,
    pub object: String,
    pub header: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub kind: Kind,
    /// Threads like the one shown.
    pub count: u64,
    pub signal: u64,
    pub tag: u64,
    pub accesses: Vec<Access>,
    pub stacks: Vec<Stack>,
    pub mutexes: Vec<Mutex>,
    pub threads: Vec<Thread>,
    pub locations: Vec<Location>,
    /// Of a cycle's edges, in order.
    pub unique_threads: Vec<u64>,
    pub sleep: Option<Stack>,
    pub tags: Vec<Tag>,
}

impl Warning {
    /// The path of ordinals from the initial thread, as reports of recorded executions name threads: `0.1`, `main`. `None`: not
    /// all of the threads that lead there are told.
    pub fn path_of(&self, number: u64) -> Option<String> {
        let mut ordinals: Vec<String> = Vec::new();
        let mut at = number;
        while at != 0 {
            let thread = self.threads.iter().find(|thread| thread.number == at)?;
            ordinals.push(thread.ordinal?.to_string());
            if ordinals.len() > self.threads.len() {
                return None;
            }
            at = thread.parent;
        }
        ordinals.reverse();
        Some(if ordinals.is_empty() { "main".into() } else { ordinals.join(".") })
    }

    /// What is said of objects of a kind; `None` where nothing is.
    pub fn object_type(&self, tag: u64) -> Option<&str> {
        let found = self.tags.iter().find(|known| known.number == tag && tag != 0)?;
        Some(found.object.as_str()).filter(|text| !text.is_empty())
    }

    /// The words that the report begins with.
    pub fn title(&self) -> &str {
        let header = self.tags.iter().find(|known| known.number == self.tag && self.tag != 0).map(|tag| tag.header.as_str());
        match header {
            Some(header) if self.kind == Kind::ExternalRace && !header.is_empty() => header,
            _ => self.kind.title(),
        }
    }

    /// The stack that stands for the warning in its summary.
    pub fn main_stack(&self) -> Option<&Stack> {
        let access = self.accesses.first().map(|access| &access.stack);
        let mutex = || self.mutexes.first().map(|mutex| &mutex.created);
        let thread = || self.threads.first().map(|thread| &thread.created);
        access.or_else(|| self.stacks.first()).or_else(mutex).or_else(thread)
    }

    /// Every stack, for whoever names their addresses.
    pub fn stacks_mut(&mut self) -> impl Iterator<Item = &mut Stack> {
        let accesses = self.accesses.iter_mut().map(|access| &mut access.stack);
        let mutexes = self.mutexes.iter_mut().map(|mutex| &mut mutex.created);
        let threads = self.threads.iter_mut().map(|thread| &mut thread.created);
        let locations = self.locations.iter_mut().map(|location| &mut location.stack);
        accesses.chain(self.stacks.iter_mut()).chain(mutexes).chain(threads).chain(locations).chain(self.sleep.as_mut())
    }
}
