//! What LLVM calls.
#![allow(unsafe_code, reason = "functions that C++ calls by name")]

use crate::ir::Module;
use crate::{Mode, instrument};
use llvm_sys::prelude::LLVMModuleRef;
use rashomon_abi::record::{self, counted};
use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;

/// `llvm::PassPluginLibraryInfo`.
#[repr(C)]
pub struct PluginInfo {
    api: u32,
    name: *const c_char,
    version: *const c_char,
    register: *const c_void,
}

unsafe extern "C" {
    fn rashomon_plugin_info(out: *mut PluginInfo);
}

/// What a plugin of LLVM has to export.
#[unsafe(no_mangle)]
pub extern "C" fn llvmGetPassPluginInfo() -> PluginInfo {
    let mut info = MaybeUninit::uninit();
    // SAFETY: it fills in all of it.
    unsafe {
        rashomon_plugin_info(info.as_mut_ptr());
        info.assume_init()
    }
}

/// The pass; 1 if it changed anything.
///
/// # Safety
/// The module is valid, and nobody else uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rashomon_instrument(module: LLVMModuleRef, wait_loops_only: c_int) -> c_int {
    let mode = if wait_loops_only != 0 { Mode::WaitLoops } else { Mode::Full };
    // SAFETY: by the caller.
    let module = unsafe { Module::new(module) };
    c_int::from(instrument(module, mode))
}

/// Words of plans of counted loops, whose form is that of records.
#[unsafe(no_mangle)]
pub extern "C" fn rashomon_counted_segment(number: u64) -> u64 {
    record::word(0, record::SEGMENT, number)
}

/// # Safety
/// The name has that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rashomon_counted_access(name: *const c_char, length: usize, base: u64, stride: i64) -> u64 {
    // SAFETY: by the caller.
    let name = unsafe { std::slice::from_raw_parts(name.cast::<u8>(), length) };
    crate::access::kind_of_hook(name).map_or(0, |kind| record::word(base, kind, stride as u64))
}

#[unsafe(no_mangle)]
pub extern "C" fn rashomon_counted_most_operations() -> u64 {
    counted::MOST_OPERATIONS as u64
}

#[unsafe(no_mangle)]
pub extern "C" fn rashomon_counted_most_bases() -> u64 {
    counted::MOST_BASES as u64
}
