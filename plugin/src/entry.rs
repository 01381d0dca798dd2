//! What LLVM calls.
#![allow(unsafe_code, reason = "functions that C++ calls by name")]

use crate::ir::Module;
use crate::{Mode, instrument};
use llvm_sys::prelude::LLVMModuleRef;
use rashomon_abi::{nest, record};
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

/// Words of plans of counted loops ([`rashomon_abi::nest`]).
#[unsafe(no_mangle)]
pub extern "C" fn rashomon_nest_segment(number: u64) -> u64 {
    record::word(0, record::SEGMENT, number)
}

/// # Safety
/// The name has that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rashomon_nest_access(name: *const c_char, length: usize, value: u64, loops: u64) -> u64 {
    // SAFETY: by the caller.
    let name = unsafe { std::slice::from_raw_parts(name.cast::<u8>(), length) };
    crate::access::kind_of_hook(name).map_or(0, |kind| nest::access(kind, value, loops))
}

#[unsafe(no_mangle)]
pub extern "C" fn rashomon_nest_begins(width: u64, varies: c_int, words: u64, value: u64, loops: u64) -> u64 {
    nest::begins(width, varies != 0, words, value, loops)
}

#[unsafe(no_mangle)]
pub extern "C" fn rashomon_nest_exit() -> u64 {
    record::word(0, nest::EXIT, 0)
}

#[unsafe(no_mangle)]
pub extern "C" fn rashomon_nest_end() -> u64 {
    record::word(0, nest::END, 0)
}

#[unsafe(no_mangle)]
pub extern "C" fn rashomon_nest_amount(constant: i64) -> u64 {
    nest::amount(constant)
}

#[unsafe(no_mangle)]
pub extern "C" fn rashomon_nest_amount_of_value(value: u64) -> u64 {
    nest::amount_of_value(value)
}

#[unsafe(no_mangle)]
pub extern "C" fn rashomon_nest_most_words() -> u64 {
    nest::MOST_WORDS as u64
}

#[unsafe(no_mangle)]
pub extern "C" fn rashomon_nest_most_values() -> u64 {
    nest::MOST_VALUES as u64
}

#[unsafe(no_mangle)]
pub extern "C" fn rashomon_nest_most_loops() -> u64 {
    nest::MOST_LOOPS as u64
}
