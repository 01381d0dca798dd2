//! Synchronisation in inline assembly: compilers put a call of the runtime in the place of every atomic operation of instrumented
//! code, so an instruction that locks memory there was written by hand, and nobody has seen what it ordered.
//!
//! An instrumented function is one with a direct call of the runtime's hook at a function's begin; in a file that the runtime is
//! not linked into, where calls go through a table, every function is taken for one. Locked memory of the stack is a barrier that
//! orders no two threads by itself. Limits: files without symbols; functions of assembly alone, which no hook is called in; locks
//! that do without such an instruction.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};
use rashomon_symbolize::CachedObject;
use std::collections::{BTreeMap, HashMap};
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

/// Which functions of an instrumented file synchronise by inline assembly, in words. `None`: none is known to.
pub fn synchronises(path: &Path) -> Option<String> {
    static KNOWN: Mutex<Option<HashMap<File, Option<String>>>> = Mutex::new(None);
    let status = std::fs::metadata(path).ok()?;
    let file = (path.to_path_buf(), status.len(), status.modified().ok());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    known.entry(file).or_insert_with(|| rashomon_symbolize::with_object(path, |file| Ok(in_words(file))).unwrap_or(None)).clone()
}

fn in_words(file: &CachedObject<'_>) -> Option<String> {
    let names = locking(file);
    let first = names.first()?;
    Some(match names.len() {
        1 => first.clone(),
        more => format!("{first} and {} more of its functions", more - 1),
    })
}

/// Names of the functions that lock memory by themselves, sorted.
fn locking(file: &CachedObject<'_>) -> Vec<String> {
    let hook = file.symbols().find(|symbol| symbol.is_definition() && symbol.name() == Ok(ENTRY_HOOK)).map(|it| it.address());
    let functions: BTreeMap<u64, (u64, String)> = file
        .symbols()
        .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text && symbol.size() > 0)
        .filter_map(|symbol| Some((symbol.address(), (symbol.size().min(MAX_FUNCTION), symbol.name().ok()?.to_owned()))))
        .filter(|(_, (_, name))| !name.contains(RUNTIME))
        .collect();
    let mut left = MAX_FILE;
    let mut names = Vec::new();
    for (address, (size, name)) in functions {
        let Some(rest) = left.checked_sub(size) else { break };
        left = rest;
        let code = file.sections().find_map(|section| section.data_range(address, size).ok().flatten());
        if code.is_some_and(|code| locks(code, address, hook)) {
            names.push(rashomon_symbolize::demangle(&name));
        }
    }
    names.sort();
    names.dedup();
    names
}

/// Whether a function is instrumented and locks memory by itself.
fn locks(code: &[u8], address: u64, hook: Option<u64>) -> bool {
    const LOCK: u8 = 0xf0;
    const EXCHANGES: [u8; 2] = [0x86, 0x87];
    if !code.iter().any(|byte| *byte == LOCK || EXCHANGES.contains(byte)) {
        return false;
    }
    let (mut instrumented, mut locked) = (hook.is_none(), false);
    for instruction in Decoder::with_ip(64, code, address, DecoderOptions::NONE) {
        let called = instruction.mnemonic() == Mnemonic::Call && instruction.op0_kind() == OpKind::NearBranch64;
        instrumented |= called && Some(instruction.near_branch64()) == hook;
        locked |= locks_memory(&instruction);
    }
    instrumented && locked
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
            assert_eq!(locks(&function(body), AT, HOOK), expected, "{body:x?}");
            assert!(!locks(&function(body), AT, Some(0)), "it calls no hook");
            assert_eq!(locks(body, AT, None), expected, "{body:x?}");
        }
    }
}
