//! Locks that Rust's standard library makes of an atomic word, as locks.
//!
//! `std::sync::Mutex` and `RwLock` are an atomic integer and a futex to the runtime: they order what they should, but nobody
//! would see that their sections exclude each other. Here the operations on such a word that take the lock, or give it back,
//! become acquisitions and releases of a lock at the word's address, and all others on it order nothing, as those that find it
//! taken do. What happens before what stays as it was, as each acquisition reads from the release before it; but for readers of a
//! `RwLock`, whom nothing but chance orders among themselves.
//!
//! A word is such a lock if each operation that writes it was made by the library's code for one kind of lock (told by the
//! functions around it, so only with debug information), and if all that the trace has of it is what such a lock does: taken
//! when free, given back by who has it, no value from nowhere. Any other word stays what it is. Limit: races between such an
//! operation and a plain access to the same bytes, as of a mutex that `unsafe` code frees too early, are then left to online
//! detection.
//!
//! A recording that ended with threads that wait for such locks of each other tells them as those of a deadlock.

use crate::findings::rust::is_from_rust;
use rashomon_abi::record::Op;
use rashomon_event::library::is_library;
use rashomon_event::{
    Address, AtomicOp, ContextId, Event, EventIndex, EventKind, Frame, LockMode, MadeLock, MemoryOrder, OtherOp, SiteId,
    ThreadId, Trace,
};
use rashomon_symbolize::Symbolizer;
use rashomon_trace::{BlockedRecord, LoadedTrace, RunOutcome};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Callers that are looked at for the function that makes a lock of a word.
const MOST_CALLERS: usize = 8;
/// Bytes of a lock that threads sleep at.
const WORDS: u64 = 8;
/// Of the word of a `RwLock`: the number of readers, or all ones for a writer.
const READERS: u64 = (1 << 30) - 1;

/// Which lock's code an operation was made by, and whether that waits for the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Maker {
    kind: MadeLock,
    may_wait: bool,
}

/// Makes locks of words. Threads that are blocked for locks of each other are told as such.
pub fn recognise(loaded: &mut LoadedTrace) {
    let Some(makers) = Makers::of(&loaded.trace) else { return };
    let last = recognise_with(&mut loaded.trace, |trace, event| makers.maker(trace, event.site, event.context));
    if loaded.header.outcome == RunOutcome::Stuck {
        let wanted = |record: &BlockedRecord| last.wanted_at(record.thread, loaded.data_address(record.object));
        let waits = loaded.blocked.iter().filter_map(|record| Some((*record, wanted(record)?))).collect::<Vec<_>>();
        if let Some(cycle) = cycle(&waits, &last) {
            loaded.blocked = cycle;
        }
    }
}

/// How it stands with locks made of words when a recording ends.
#[derive(Debug, Default)]
struct Last {
    holders: BTreeMap<Address, Vec<ThreadId>>,
    /// By thread, the lock that it did not get at its last try.
    wanted: FxHashMap<ThreadId, Address>,
}

impl Last {
    /// The lock that a thread wants which sleeps at this word: its own, or the one beside it that writers sleep at.
    fn wanted_at(&self, thread: ThreadId, slept_at: Address) -> Option<Address> {
        let wanted = *self.wanted.get(&thread)?;
        (wanted.0.abs_diff(slept_at.0) < WORDS).then_some(wanted)
    }
}

/// Whether blocked threads wait for locks of each other that are made of words.
pub fn is_cycle(loaded: &LoadedTrace) -> bool {
    let blocked = &loaded.blocked;
    let of_words = |record: &BlockedRecord| loaded.trace.made_locks.contains_key(&record.object) && record.holder.is_some();
    !blocked.is_empty() && blocked.iter().all(of_words)
}

/// The threads of a cycle, each with what the next one holds, among those that wait.
fn cycle(waits: &[(BlockedRecord, Address)], last: &Last) -> Option<Vec<BlockedRecord>> {
    (0..waits.len()).find_map(|first| extend(waits, last, &mut vec![first]))
}

/// A cycle that begins with these, in which each wants what the next one holds.
fn extend(waits: &[(BlockedRecord, Address)], last: &Last, path: &mut Vec<usize>) -> Option<Vec<BlockedRecord>> {
    let (&first, &end) = path.first().zip(path.last())?;
    for holder in last.holders.get(&waits[end].1)? {
        let Some(next) = waits.iter().position(|(record, _)| record.thread == *holder) else { continue };
        if next == first {
            let followers = path.iter().skip(1).chain([&first]);
            let member = |(&one, &next): (&usize, &usize)| {
                let (record, object) = waits[one];
                BlockedRecord { object, holder: Some(waits[next].0.thread), op: Some(Op::Lock), ..record }
            };
            return Some(path.iter().zip(followers).map(member).collect());
        }
        if !path.contains(&next) {
            path.push(next);
            if let Some(cycle) = extend(waits, last, path) {
                return Some(cycle);
            }
            path.pop();
        }
    }
    None
}

/// What the code around a call is.
#[derive(Clone, Copy, Debug)]
enum Code {
    Maker(Maker),
    /// Of the library: who called it may be a maker.
    Library,
    Other,
}

/// Path and build-id.
type ModuleKey = (String, Option<String>);

/// The code of each module, by the return address of a call. Many recordings are of the same few modules.
static KNOWN: LazyLock<Mutex<FxHashMap<ModuleKey, FxHashMap<u64, Code>>>> = LazyLock::new(Mutex::default);

/// The code of libraries that makes locks of words, in the modules of a trace.
struct Makers {
    symbolizer: Symbolizer,
    /// By module: whether it is the work of rustc.
    is_rust: Vec<bool>,
    known: RefCell<FxHashMap<(SiteId, ContextId), Option<Maker>>>,
}

impl Makers {
    /// `None`: nothing is from rustc.
    fn of(trace: &Trace) -> Option<Self> {
        let is_rust: Vec<bool> = trace.modules.iter().map(is_from_rust).collect();
        is_rust.contains(&true).then(|| Self { symbolizer: Symbolizer::new(), is_rust, known: RefCell::default() })
    }

    fn maker(&self, trace: &Trace, site: SiteId, context: ContextId) -> Option<Maker> {
        if let Some(&known) = self.known.borrow().get(&(site, context)) {
            return known;
        }
        let callers = trace.callers(context).into_iter().take(MOST_CALLERS);
        let mut codes = std::iter::once(site).chain(callers).map(|site| self.code(trace, site));
        let maker = codes.find_map(|code| match code {
            Code::Maker(maker) => Some(Some(maker)),
            Code::Library => None,
            Code::Other => Some(None),
        });
        let maker = maker.flatten();
        self.known.borrow_mut().insert((site, context), maker);
        maker
    }

    fn code(&self, trace: &Trace, site: SiteId) -> Code {
        let place = trace.site(site);
        let Some(number) = place.module.map(|number| number as usize).filter(|&number| self.is_rust[number]) else {
            return Code::Other;
        };
        let module = &trace.modules[number];
        let key = (module.path.clone(), module.build_id.clone());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(key).or_default().entry(place.offset).or_insert_with(|| {
            let frames = self.symbolizer.frames_of_return_address(module, place.offset);
            let of_library = frames.iter().take_while(|frame| is_library(frame));
            let maker = of_library.clone().find_map(maker_of).map(Code::Maker);
            maker.unwrap_or(if of_library.count() == frames.len() { Code::Library } else { Code::Other })
        })
    }
}

/// By the name of a function, as `<std::sys::sync::mutex::futex::Mutex>::lock_contended`.
fn maker_of(frame: &Frame) -> Option<Maker> {
    let name = frame.function.as_deref()?;
    if !name.contains("std::sys") || !name.contains("futex") {
        return None;
    }
    let kind = match name {
        name if name.contains("Mutex>::") || name.contains("Mutex::") => MadeLock::Mutex,
        name if name.contains("RwLock>::") || name.contains("RwLock::") => MadeLock::RwLock,
        _ => return None,
    };
    Some(Maker { kind, may_wait: !name.contains("::try_") })
}

/// What an operation does to a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Acquire(LockMode, bool),
    Release(LockMode),
    Nothing,
}

/// A word, while the trace goes by.
struct Word {
    kind: MadeLock,
    size: u32,
    value: u64,
    writer: Option<ThreadId>,
    readers: Vec<ThreadId>,
    steps: Vec<(EventIndex, Step)>,
    /// Somebody has taken it.
    used: bool,
}

impl Word {
    fn new(kind: MadeLock, size: u32) -> Self {
        Self { kind, size, value: 0, writer: None, readers: Vec::new(), steps: Vec::new(), used: false }
    }

    const fn is_free(&self) -> bool {
        self.writer.is_none() && self.readers.is_empty()
    }

    /// `None`: no such lock does this.
    fn reads(&mut self, value: u64, order: MemoryOrder) -> Option<Step> {
        // Who sees that it is free, and is ordered by that, is ordered by something else than the lock.
        (value == self.value && !(self.is_free() && self.used && order.acquires())).then_some(Step::Nothing)
    }

    fn writes(&mut self, thread: ThreadId, value: u64, order: MemoryOrder, maker: Maker) -> Option<Step> {
        let old = std::mem::replace(&mut self.value, value);
        match self.kind {
            MadeLock::Mutex => self.mutex(thread, (old, value), order, maker.may_wait),
            MadeLock::Semaphore => None,
            MadeLock::RwLock => self.rwlock(thread, (old & READERS, value & READERS), order, maker.may_wait),
        }
    }

    fn mutex(&mut self, thread: ThreadId, (old, new): (u64, u64), order: MemoryOrder, may_wait: bool) -> Option<Step> {
        match (old != 0, new != 0) {
            (false, true) => self.write_lock(thread, order, may_wait),
            (true, false) => self.write_unlock(thread, order),
            // It says that somebody waits.
            (true, true) if self.writer != Some(thread) => Some(Step::Nothing),
            _ => None,
        }
    }

    fn rwlock(&mut self, thread: ThreadId, (old, new): (u64, u64), order: MemoryOrder, may_wait: bool) -> Option<Step> {
        match (old, new) {
            _ if old == new => Some(Step::Nothing),
            (0, READERS) => self.write_lock(thread, order, may_wait),
            (READERS, 0) => self.write_unlock(thread, order),
            (READERS, _) | (_, READERS) => None,
            _ if new == old + 1 && order.acquires() => {
                (self.used, self.readers) = (true, [std::mem::take(&mut self.readers), vec![thread]].concat());
                Some(Step::Acquire(LockMode::Shared, may_wait))
            }
            _ if old == new + 1 && order.releases() => {
                let at = self.readers.iter().position(|&reader| reader == thread)?;
                self.readers.swap_remove(at);
                Some(Step::Release(LockMode::Shared))
            }
            _ => None,
        }
    }

    fn write_lock(&mut self, thread: ThreadId, order: MemoryOrder, may_wait: bool) -> Option<Step> {
        self.used = true;
        let is_free = self.is_free() && order.acquires();
        is_free.then(|| self.writer = Some(thread)).map(|()| Step::Acquire(LockMode::Exclusive, may_wait))
    }

    fn write_unlock(&mut self, thread: ThreadId, order: MemoryOrder) -> Option<Step> {
        let is_own = self.writer == Some(thread) && order.releases();
        is_own.then(|| self.writer = None).map(|()| Step::Release(LockMode::Exclusive))
    }
}

/// Which words are locks, by what is done to them.
fn recognise_with(trace: &mut Trace, maker: impl Fn(&Trace, &Event) -> Option<Maker>) -> Last {
    // `None`: a word that is no lock.
    let mut words: FxHashMap<Address, Option<Word>> = FxHashMap::default();
    for (index, event) in trace.events.select([trace.events.besides_accesses()]) {
        let EventKind::Atomic { access, op, order, value } = event.kind else { continue };
        let writes = access.class.writes() && op != AtomicOp::CasFailed;
        let maker = if writes { maker(trace, &event) } else { None };
        let word = match (maker, words.get_mut(&access.address)) {
            (_, Some(word)) => word,
            (Some(Maker { kind, .. }), None) => words.entry(access.address).or_insert(Some(Word::new(kind, access.size))),
            (None, None) => continue,
        };
        let Some(lock) = word else { continue };
        let step = match maker {
            _ if access.size != lock.size => None,
            Some(maker) if maker.kind == lock.kind => lock.writes(event.thread, value, order, maker),
            None if !writes => lock.reads(value, order),
            _ => None,
        };
        match step {
            Some(step) => lock.steps.push((index, step)),
            None => *word = None,
        }
    }
    let mut last = Last::default();
    let mut tries: FxHashMap<ThreadId, (EventIndex, Address, bool)> = FxHashMap::default();
    for (address, word) in words {
        let Some(word) = word.filter(|word| word.used) else { continue };
        last.holders.insert(address, word.writer.into_iter().chain(word.readers).collect());
        trace.made_locks.insert(address, word.kind);
        for (index, step) in word.steps {
            let latest = tries.entry(trace.event(index).thread).or_insert((index, address, false));
            if latest.0 <= index {
                *latest = (index, address, step == Step::Nothing);
            }
            let kind = match step {
                Step::Acquire(mode, may_wait) => EventKind::Acquire { lock: address, mode, may_wait },
                Step::Release(mode) => EventKind::Release { lock: address, mode },
                Step::Nothing => EventKind::Other(OtherOp::FailsToLock),
            };
            trace.events.set_kind(index.index(), kind);
        }
    }
    last.wanted =
        tries.into_iter().filter(|(_, (.., fails))| *fails).map(|(thread, (_, address, _))| (thread, address)).collect();
    last
}

#[cfg(test)]
mod tests;
