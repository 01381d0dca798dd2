//! What LLVM calls.
#![allow(unsafe_code, reason = "functions that C++ calls by name")]

use crate::ir::Module;
use crate::{Mode, instrument};
use llvm_sys::prelude::LLVMModuleRef;
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
