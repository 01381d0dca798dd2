//! Bodies of messages, read. Whatever the bytes are, something comes out: items that are cut short or unknown are left out, and
//! numbers that name nothing are kept as numbers.

use rashomon_abi::report::{Items, Reader, item, mutex, thread};
use rashomon_abi::report::{access as access_flag, location as place, warning as code};
use rashomon_event::{ModuleInfo, path_text};
use rashomon_report::warning::{Access, Frame, Held, Kind, Location, Mutex, Place, Stack, Tag, Thread, Warning};
use std::collections::HashMap;

/// What a runtime says first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    pub version: u64,
    pub process: u64,
    pub options: Vec<Vec<u8>>,
    pub suppressions: String,
    pub default_suppressions: String,
}

fn bytes(words: &mut Reader<'_>) -> Vec<u8> {
    words.text().collect()
}

/// Names of files and threads may be any bytes.
fn text(words: &mut Reader<'_>) -> String {
    String::from_utf8_lossy(&bytes(words)).into_owned()
}

fn stack(words: &mut Reader<'_>, suppressable: bool) -> Stack {
    Stack { addresses: words.stack().collect(), frames: Vec::new(), suppressable, awaits: None }
}

pub fn hello(body: &[u64]) -> Hello {
    let mut hello = Hello::default();
    for (code, mut words) in Items::new(body) {
        match code {
            item::PROCESS => (hello.version, hello.process) = (words.word(), words.word()),
            item::OPTIONS => hello.options.push(bytes(&mut words)),
            item::SUPPRESSIONS => hello.suppressions = text(&mut words),
            item::DEFAULT_SUPPRESSIONS => hello.default_suppressions = text(&mut words),
            _ => {}
        }
    }
    hello
}

pub fn modules(body: &[u64]) -> Vec<ModuleInfo> {
    let modules = Items::new(body).filter(|(code, _)| *code == item::MODULE).map(|(_, mut words)| {
        let (base, start, end) = (words.word(), words.word(), words.word());
        let build_id = text(&mut words);
        ModuleInfo { base, start, end, build_id: Some(build_id).filter(|id| !id.is_empty()), path: path_text(&bytes(&mut words)) }
    });
    modules.filter(|module| module.start < module.end).collect()
}

/// `None`: it does not say what it is about.
pub fn warning(body: &[u64]) -> Option<Warning> {
    let (_, mut head) = Items::new(body).find(|(code, _)| *code == item::HEAD)?;
    let mut warning = Warning {
        kind: kind_of(head.word())?,
        count: head.word(),
        signal: head.word(),
        tag: head.word(),
        accesses: Vec::new(),
        stacks: Vec::new(),
        mutexes: Vec::new(),
        threads: Vec::new(),
        locations: Vec::new(),
        unique_threads: Vec::new(),
        sleep: None,
        tags: Vec::new(),
    };
    for (code, mut words) in Items::new(body) {
        let words = &mut words;
        match code {
            item::ACCESS => warning.accesses.push(access(words)),
            item::STACK => {
                let flags = words.word();
                let awaits = (flags >> 8).checked_sub(1).and_then(|index| usize::try_from(index).ok());
                warning.stacks.push(Stack { awaits, ..stack(words, flags & 1 != 0) });
            }
            item::MUTEX => {
                let (address, flags) = (words.word(), words.word());
                let (destroyed, initialised) = (flags & mutex::DESTROYED != 0, flags & mutex::NOT_INITIALISED == 0);
                warning.mutexes.push(Mutex { address, destroyed, initialised, created: stack(words, false) });
            }
            item::THREAD => {
                let (number, id, flags, parent) = (words.word(), words.word(), words.word(), words.word());
                let name = text(words);
                let created = stack(words, flags & thread::SUPPRESSABLE != 0);
                let (running, worker) = (flags & thread::RUNNING != 0, flags & thread::WORKER != 0);
                let ordinal = (flags >> thread::ORDINAL).checked_sub(1);
                warning.threads.push(Thread { number, id, running, worker, parent, ordinal, name, created });
            }
            item::LOCATION => warning.locations.push(location(words)),
            item::UNIQUE_THREAD => warning.unique_threads.push(words.word()),
            item::SLEEP => warning.sleep = Some(stack(words, false)),
            item::TAG => warning.tags.push(Tag { number: words.word(), object: text(words), header: text(words) }),
            _ => {}
        }
    }
    Some(warning)
}

fn kind_of(code: u64) -> Option<Kind> {
    Some(match code {
        code::RACE => Kind::DataRace,
        code::VPTR_RACE => Kind::VptrRace,
        code::USE_AFTER_FREE => Kind::UseAfterFree,
        code::VPTR_USE_AFTER_FREE => Kind::VptrUseAfterFree,
        code::EXTERNAL_RACE => Kind::ExternalRace,
        code::THREAD_LEAK => Kind::ThreadLeak,
        code::MUTEX_DESTROY_LOCKED => Kind::MutexDestroyLocked,
        code::MUTEX_DOUBLE_LOCK => Kind::MutexDoubleLock,
        code::MUTEX_INVALID => Kind::MutexInvalid,
        code::MUTEX_BAD_UNLOCK => Kind::MutexBadUnlock,
        code::MUTEX_BAD_READ_LOCK => Kind::MutexBadReadLock,
        code::MUTEX_BAD_READ_UNLOCK => Kind::MutexBadReadUnlock,
        code::SIGNAL_UNSAFE => Kind::SignalUnsafe,
        code::ERRNO_IN_SIGNAL => Kind::ErrnoInSignal,
        code::DEADLOCK => Kind::Deadlock,
        code::MUTEX_WRONG_CONTEXT => Kind::MutexWrongContext,
        code::DEADLOCKED => Kind::Deadlocked,
        code::STUCK => Kind::Stuck,
        _ => return None,
    })
}

const fn place_of(code: u64) -> Place {
    match code {
        place::HEAP => Place::Heap,
        place::STACK => Place::Stack,
        place::TLS => Place::Tls,
        place::DESCRIPTOR => Place::Descriptor,
        _ => Place::Static,
    }
}

fn access(words: &mut Reader<'_>) -> Access {
    let (flags, address, size, thread, tag) = (words.word(), words.word(), words.word(), words.word(), words.word());
    // The words of a list of locks have the form of a stack.
    let held = words.stack().map(|lock| Held { mutex: usize::try_from(lock >> 1).unwrap_or(usize::MAX), write: lock & 1 != 0 });
    let held = held.collect();
    let is = |flag: u64| flags & flag != 0;
    let (write, atomic, free) = (is(access_flag::WRITE), is(access_flag::ATOMIC), is(access_flag::FREE));
    Access { write, atomic, free, address, size, thread, tag, held, stack: stack(words, true) }
}

fn location(words: &mut Reader<'_>) -> Location {
    let place = place_of(words.word());
    let (address, start, size, thread) = (words.word(), words.word(), words.word(), words.word());
    let (descriptor, flags, tag) = (words.word(), words.word(), words.word());
    let closed = flags & 1 != 0;
    Location { place, address, start, size, thread, descriptor, closed, tag, stack: stack(words, false), variable: None }
}

/// Frames that the program itself named, by address.
pub fn named(body: &[u64]) -> HashMap<u64, Vec<Frame>> {
    let mut frames: HashMap<u64, Vec<Frame>> = HashMap::new();
    for (_, mut words) in Items::new(body).filter(|(code, _)| *code == item::NAMED) {
        let address = words.word();
        let (function, file) = (text(&mut words), text(&mut words));
        let (line, column) = (words.word(), words.word());
        let number = |number: u64| u32::try_from(number).ok().filter(|&number| number > 0);
        frames.entry(address).or_default().push(Frame {
            address,
            offset: address,
            function: Some(function).filter(|name| !name.is_empty()),
            file: Some(file).filter(|name| !name.is_empty()),
            line: number(line),
            column: number(column),
            ..Frame::default()
        });
    }
    frames
}

/// The addresses and the format of a question about code.
pub fn symbolize(body: &[u64]) -> (Vec<u64>, String) {
    let mut found = (Vec::new(), String::new());
    for (code, mut words) in Items::new(body) {
        match code {
            item::STACK => {
                words.word();
                found.0 = words.stack().collect();
            }
            item::FORMAT => found.1 = text(&mut words),
            _ => {}
        }
    }
    found
}

/// The address and the format of a question about data.
pub fn symbolize_data(body: &[u64]) -> (u64, String) {
    let mut found = (0, String::new());
    for (code, mut words) in Items::new(body) {
        match code {
            item::ADDRESS => found.0 = words.word(),
            item::FORMAT => found.1 = text(&mut words),
            _ => {}
        }
    }
    found
}

/// How many warnings were printed.
pub fn finish(body: &[u64]) -> u64 {
    Items::new(body).find(|(code, _)| *code == item::COUNTS).map_or(0, |(_, mut words)| words.word())
}
