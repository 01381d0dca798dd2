//! The pass that `rashomon cc --deep` has clang 19 load.
//!
//! It tells the runtime of *wait loops* (`wait`), and, unless asked for these alone, of *dependences* (`dependences`): then the
//! program's accesses are told by it and not by ThreadSanitizer's pass. What is known when the program is compiled goes into
//! tables in sections of
//! the object file ([`rashomon_abi::deep`]); what is told at run time are numbers.
//!
//! The pass runs before functions are inlined and loops are rotated. All that it asks of LLVM is in `ir`; the rest does not use
//! `unsafe`.
#![deny(unsafe_code)]

mod access;
mod dependences;
mod entry;
mod graph;
mod insert;
mod ir;
mod roots;
mod table;
mod wait;

/// What one module is told to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    WaitLoops,
    Full,
}

/// Whether anything was changed.
pub(crate) fn instrument(module: ir::Module, mode: Mode) -> bool {
    let mut inserter = insert::Inserter::new(module);
    let functions: Vec<ir::Function> =
        module.functions().filter(|function| function.is_instrumented() && !function.is_coroutine()).collect();
    let (effects, callees) = (wait::Effects::default(), dependences::Callees::default());
    // What functions do is looked at before anything is added to any.
    let found: Vec<(ir::Code, Vec<wait::WaitLoop>)> = functions
        .iter()
        .map(|function| {
            let code = ir::Code::of(*function);
            let loops = wait::find(&code, &effects);
            (code, loops)
        })
        .collect();
    for (code, loops) in found {
        if mode == Mode::Full {
            dependences::instrument(&code, &callees, &mut inserter);
        }
        wait::mark(&code, &loops, &mut inserter);
    }
    if mode == Mode::Full {
        // Their activations are not told, but what they access is.
        for function in module.functions().filter(|function| function.is_instrumented() && function.is_coroutine()) {
            access::instrument(&ir::Code::of(function), &mut inserter);
        }
    }
    !functions.is_empty()
}
