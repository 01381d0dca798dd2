//! Accesses, which the plugin tells in the place of ThreadSanitizer's pass: each one that the source makes, by the same hooks.
//! Atomic operations remain that pass's affair.

use crate::insert::Inserter;
use crate::ir::{Code, Kind, Value};
use rashomon_abi::record::{AccessClass, access_kind};

/// A plain access that others may see.
pub fn is_told(access: Value) -> bool {
    let plain = matches!(access.kind(), Kind::Load | Kind::Store) && !access.is_atomic();
    plain && !access.is_left_alone() && !(access.kind() == Kind::Load && access.pointer().is_constant_variable())
}

/// The hook, and the number of bytes if it has to be told.
fn hook(access: Value, inserter: &Inserter) -> Option<(String, Option<u64>)> {
    let size = access.size(inserter.module);
    let what = if access.kind() == Kind::Load { "read" } else { "write" };
    match size {
        0 => None,
        1 | 2 | 4 | 8 | 16 => {
            let aligned = access.alignment() % size.min(8) == 0;
            Some((format!("__tsan_{}{what}{size}", if aligned { "" } else { "unaligned_" }), None))
        }
        other => Some((format!("__tsan_{what}_range"), Some(other))),
    }
}

/// The kind of record of a hook for an access of a power of two of bytes.
pub fn kind_of_hook(name: &[u8]) -> Option<u64> {
    let name = match name.strip_prefix(b"__tsan_") {
        Some(name) => name.strip_prefix(b"unaligned_").unwrap_or(name),
        // One that is given its site.
        None => name.strip_prefix(b"__rashomon_")?.strip_suffix(b"_at")?,
    };
    let (class, size) = match name.strip_prefix(b"read") {
        Some(size) => (AccessClass::Read, size),
        None => (AccessClass::Write, name.strip_prefix(b"write")?),
    };
    let log2 = [&b"1"[..], b"2", b"4", b"8", b"16"].iter().position(|one| *one == size)?;
    Some(access_kind(class, log2 as u32))
}

/// Whether the access is told now: it is, unless its size is not fixed.
pub fn tell(access: Value, inserter: &Inserter) -> bool {
    if access.is_vtable_access() && access.kind() == Kind::Store && access.operands()[0].is_pointer() {
        inserter.vtable_store(access);
        return true;
    }
    if access.is_vtable_access() && access.kind() == Kind::Load {
        inserter.access(access, "__tsan_vptr_read", None);
        return true;
    }
    let Some((name, bytes)) = hook(access, inserter) else { return false };
    inserter.access(access, &name, bytes);
    true
}

/// What LLVM has instructions of its own for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryCall {
    Copy(&'static str),
    Fill,
}

impl MemoryCall {
    pub fn of(call: Value) -> Option<Self> {
        let name = call.callee_name();
        let begins = |prefix: &str| name.starts_with(prefix.as_bytes());
        if begins("llvm.memcpy.") {
            Some(Self::Copy("__tsan_memcpy"))
        } else if begins("llvm.memmove.") {
            Some(Self::Copy("__tsan_memmove"))
        } else if begins("llvm.memset.") {
            Some(Self::Fill)
        } else {
            None
        }
    }

    pub const fn function(self) -> &'static str {
        match self {
            Self::Copy(name) => name,
            Self::Fill => "__tsan_memset",
        }
    }
}

/// Of a function whose dependences are not told.
pub fn instrument(code: &Code, inserter: &Inserter) {
    for &instruction in code.instructions.iter().flatten() {
        match instruction.kind() {
            Kind::Load | Kind::Store if is_told(instruction) => _ = tell(instruction, inserter),
            Kind::Call => {
                if let Some(call) = MemoryCall::of(instruction) {
                    inserter.replace_memory_call(instruction, call.function());
                }
            }
            _ => {}
        }
    }
}
