//! Newtypes for every integer that has a meaning.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub struct $name(pub $inner);
        impl $name {
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id!(
    /// A thread of one trace: its index in [`crate::Trace::threads`]. Thread 0 is the initial thread.
    ThreadId(u32), "T"
);
id!(
    /// Position of an event in [`crate::Trace::events`], the total order of the trace.
    EventIndex(u32), "e"
);
id!(
    /// A code address that made events: index into [`crate::Trace::sites`].
    SiteId(u32), "s"
);
id!(
    /// A call context: index into [`crate::Trace::contexts`].
    ContextId(u32), "c"
);
id!(
    /// Something with an address and a lifetime: a heap block, a stack, a module's data, a mapping. Index into
    /// [`crate::Trace::objects`]. Reuse of an address makes a new object.
    ObjectId(u32), "o"
);

impl ContextId {
    /// The context of a thread's start routine: no callers.
    pub const ROOT: Self = Self(0);
}

/// A data address of a trace in a *synthetic* address space: bytes of different objects, also of objects that lived at the same
/// machine address one after the other, never share one. So analyses need not think about lifetimes. Never a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Address(pub u64);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Identity of a thread that survives re-execution: the spawn ordinals from the initial thread down (RaceHunter, Definition 8).
/// The initial thread is the empty path; its first child is `0`, that one's second child `0.1`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default)]
pub struct ThreadPath(pub Vec<u32>);

impl ThreadPath {
    pub fn child(&self, ordinal: u32) -> Self {
        let mut path = self.0.clone();
        path.push(ordinal);
        Self(path)
    }
}

impl ThreadPath {
    /// What texts call the thread, everywhere.
    pub fn words(&self) -> String {
        if self.0.is_empty() { "the main thread".into() } else { format!("thread {self}") }
    }
}

impl fmt::Display for ThreadPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_path(f, &self.0, "main")
    }
}

/// Identity of a process of a recording that survives re-execution: the places that led to it from the initial process down, each
/// counted by the process that gave it. The initial process is the empty path; the first one that it made is `0`, that one's
/// second `0.1`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default)]
pub struct ProcessPath(pub Vec<u32>);

impl ProcessPath {
    pub fn is_initial(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for ProcessPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_path(f, &self.0, "initial")
    }
}

fn write_path(f: &mut fmt::Formatter<'_>, path: &[u32], empty: &str) -> fmt::Result {
    if path.is_empty() {
        return f.write_str(empty);
    }
    for (i, ordinal) in path.iter().enumerate() {
        if i > 0 {
            f.write_str(".")?;
        }
        write!(f, "{ordinal}")?;
    }
    Ok(())
}
