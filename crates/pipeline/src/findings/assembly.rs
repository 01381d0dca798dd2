//! Synchronisation in inline assembly: compilers put a call of the runtime in the place of every atomic operation of instrumented
//! code, so an instruction that locks memory there was written by hand, and nobody has seen what it ordered.
//!
//! An instrumented function is one with a direct call of the runtime's hook at a function's begin; in a file that the runtime is
//! not linked into, where calls go through a table, every function is taken for one. Locked memory of the stack is a barrier that
//! orders no two threads by itself. Limits: files without symbols; functions of assembly alone, which no hook is called in; locks
//! that do without such an instruction.
//!
//! The same goes for what a processor tells of itself: its time stamp counter, and random numbers.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};
use rashomon_symbolize::CachedObject;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

const ENTRY_HOOK: &str = "__tsan_func_entry";
/// Code of a function, and of a file, that is looked at: a recording can name any file.
const MAX_FUNCTION: u64 = 1 << 16;
const MAX_FILE: u64 = 1 << 27;
const RUNTIME: &str = "rashomon_runtime";

/// A version of a file.
type File = (PathBuf, u64, Option<SystemTime>);

/// Functions of an instrumented file that do by inline assembly what nobody sees, in words. `None`: none is known to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assembly {
    pub synchronises: Option<String>,
    /// The time stamp counter, or random numbers.
    pub asks_processor: Option<String>,
}

impl Assembly {
    pub fn of(path: &Path) -> Self {
        static KNOWN: Mutex<Option<HashMap<File, Assembly>>> = Mutex::new(None);
        let Ok(status) = std::fs::metadata(path) else { return Self::default() };
        let file = (path.to_path_buf(), status.len(), status.modified().ok());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        let read = || rashomon_symbolize::with_object(path, |file| Ok(Self::read(file))).unwrap_or_default();
        known.entry(file).or_insert_with(read).clone()
    }

    fn read(file: &CachedObject<'_>) -> Self {
        let (mut locking, mut asking) = (BTreeSet::new(), BTreeSet::new());
        each_function(file, |name, does| {
            locking.extend(does.locks.then(|| name.to_owned()));
            asking.extend(does.asks_processor.then(|| name.to_owned()));
        });
        Self { synchronises: in_words(&locking), asks_processor: in_words(&asking) }
    }
}

/// Whether a function of a file calls the runtime's hook. `None`: there is no such function, or no telling.
pub fn is_instrumented(path: &Path, function: &str) -> Option<bool> {
    let of_file = |file: &CachedObject<'_>| {
        let defined = |name: &str| file.symbols().find(|symbol| symbol.is_definition() && symbol.name() == Ok(name));
        let (hook, asked) = (defined(ENTRY_HOOK)?.address(), defined(function)?);
        let (address, size) = (asked.address(), asked.size().min(MAX_FUNCTION));
        let code = file.sections().find_map(|section| section.data_range(address, size).ok().flatten())?;
        let calls =
            |instruction: &Instruction| instruction.op0_kind() == OpKind::NearBranch64 && instruction.near_branch64() == hook;
        Some(Decoder::with_ip(64, code, address, DecoderOptions::NONE).iter().any(|instruction| calls(&instruction)))
    };
    rashomon_symbolize::with_object(path, |file| Ok(of_file(file))).ok()?
}

fn in_words(names: &BTreeSet<String>) -> Option<String> {
    let first = names.first()?;
    Some(match names.len() {
        1 => first.clone(),
        more => format!("{first} and {} more of its functions", more - 1),
    })
}

fn each_function(file: &CachedObject<'_>, mut each: impl FnMut(&str, Does)) {
    let hook = file.symbols().find(|symbol| symbol.is_definition() && symbol.name() == Ok(ENTRY_HOOK)).map(|it| it.address());
    let functions: BTreeMap<u64, (u64, String)> = file
        .symbols()
        .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text && symbol.size() > 0)
        .filter_map(|symbol| Some((symbol.address(), (symbol.size().min(MAX_FUNCTION), symbol.name().ok()?.to_owned()))))
        .filter(|(_, (_, name))| !name.contains(RUNTIME))
        .collect();
    let mut left = MAX_FILE;
    for (address, (size, name)) in functions {
        let Some(rest) = left.checked_sub(size) else { break };
        left = rest;
        let code = file.sections().find_map(|section| section.data_range(address, size).ok().flatten());
        let does = code.map_or(Does::default(), |code| Does::of(code, address, hook));
        if does != Does::default() {
            each(&rashomon_symbolize::demangle(&name), does);
        }
    }
}

/// What an instrumented function does by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Does {
    locks: bool,
    asks_processor: bool,
}

impl Does {
    fn of(code: &[u8], address: u64, hook: Option<u64>) -> Self {
        const LOCK: u8 = 0xf0;
        const EXCHANGES: [u8; 2] = [0x86, 0x87];
        /// Second bytes of `rdtsc`, `rdtscp`, `rdrand` and `rdseed`, behind 0x0f.
        const ASKING: [u8; 3] = [0x31, 0x01, 0xc7];
        let may_lock = code.iter().any(|byte| *byte == LOCK || EXCHANGES.contains(byte));
        if !may_lock && !code.windows(2).any(|two| two[0] == 0x0f && ASKING.contains(&two[1])) {
            return Self::default();
        }
        let (mut instrumented, mut does) = (hook.is_none(), Self::default());
        for instruction in Decoder::with_ip(64, code, address, DecoderOptions::NONE) {
            let called = instruction.mnemonic() == Mnemonic::Call && instruction.op0_kind() == OpKind::NearBranch64;
            instrumented |= called && Some(instruction.near_branch64()) == hook;
            does.locks |= locks_memory(&instruction);
            does.asks_processor |=
                matches!(instruction.mnemonic(), Mnemonic::Rdtsc | Mnemonic::Rdtscp | Mnemonic::Rdrand | Mnemonic::Rdseed);
        }
        if instrumented { does } else { Self::default() }
    }
}

fn locks_memory(instruction: &Instruction) -> bool {
    let memory = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    let locks = instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg;
    memory && locks && instruction.memory_base() != Register::RSP
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0x1000;
    /// `call` of what lies right behind it.
    const CALL: [u8; 5] = [0xe8, 0, 0, 0, 0];
    const HOOK: Option<u64> = Some(AT + 5);

    fn function(body: &[u8]) -> Vec<u8> {
        [&CALL, body, &[0xc3]].concat()
    }

    #[test]
    fn only_what_locks_memory_of_instrumented_functions_counts() {
        let exchange = [0x87, 0x07]; // xchg [rdi], eax
        let compare = [0xf0, 0x0f, 0xb1, 0x37]; // lock cmpxchg [rdi], esi
        let barrier = [0xf0, 0x83, 0x0c, 0x24, 0x00]; // lock or dword [rsp], 0
        let registers = [0x87, 0xc8]; // xchg eax, ecx
        let constant = [0xb8, 0xf0, 0x0f, 0xb1, 0x37]; // mov eax, …
        for (body, expected) in
            [(&exchange[..], true), (&compare, true), (&barrier, false), (&registers, false), (&constant, false)]
        {
            assert_eq!(Does::of(&function(body), AT, HOOK).locks, expected, "{body:x?}");
            assert!(!Does::of(&function(body), AT, Some(0)).locks, "it calls no hook");
            assert_eq!(Does::of(body, AT, None).locks, expected, "{body:x?}");
        }
    }

    #[test]
    fn counters_and_random_numbers_of_the_processor_are_asked_for() {
        let counter = [0x0f, 0x31]; // rdtsc
        let with_number = [0x0f, 0x01, 0xf9]; // rdtscp
        let random = [0x0f, 0xc7, 0xf0]; // rdrand eax
        let constant = [0xb8, 0x0f, 0x31, 0x00, 0x00]; // mov eax, …
        let exchange = [0x0f, 0xc7, 0x0f]; // cmpxchg8b [rdi]
        for (body, expected) in
            [(&counter[..], true), (&with_number, true), (&random, true), (&constant, false), (&exchange, false)]
        {
            assert_eq!(Does::of(&function(body), AT, HOOK).asks_processor, expected, "{body:x?}");
            assert!(!Does::of(&function(body), AT, Some(0)).asks_processor, "it calls no hook");
        }
    }
}
