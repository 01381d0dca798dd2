//! What the compiler's plugin tells ([`rashomon_abi::deep`]): wait loops, activations of functions, and which way they go.
//!
//! Nothing here is a scheduling point: programs take the same turns with the plugin as without, but for the accesses that it
//! tells and ThreadSanitizer's pass would have left out.
//!
//! A segment makes each of its accesses once. So that none is left out as a repetition, the filter has one entry while segments
//! are recorded ([`flow::begins`]), which each of them empties.

use crate::detect;
use crate::record::counted::{self, Plan, Told};
use crate::record::{flow, recorder};
use crate::system::thread::Runtime;
use crate::system::tls::{self, caller, hot};
use core::arch::naked_asm;
use rashomon_abi::record::{self, Op};

/// # Safety
/// `table` is the address of a loop's table.
unsafe fn wait_loop(op: Op, table: *const u8, condition: u64) {
    if let Some(runtime) = Runtime::try_enter()
        && !detect::on()
    {
        // SAFETY: the table is two bytes long, version and kind.
        let kind = unsafe { *table.add(1) };
        recorder::sync(runtime.thread(), op, table as u64, kind as u16, caller(), &[condition]);
    }
}

unsafe extern "C" fn enter_loop(table: *const u8, condition: u64) {
    // SAFETY: the plugin's table.
    unsafe { wait_loop(Op::LoopEnter, table, condition) }
}

unsafe extern "C" fn leave_loop(table: *const u8, condition: u64) {
    // SAFETY: the plugin's table.
    unsafe { wait_loop(Op::LoopExit, table, condition) }
}

interpose! {
    __rashomon_loop_enter => enter_loop;
    __rashomon_loop_exit => leave_loop;
}

/// A function begins. The result names its activation: 0 if that is not recorded.
#[unsafe(no_mangle)]
#[unsafe(naked)]
#[unsafe(link_section = "rashomon_hooks")]
pub unsafe extern "C" fn __rashomon_activation(_table: *const u8) -> u64 {
    naked_asm!(
        "mov r8, qword ptr [rip + rashomon_hot@GOTTPOFF]",
        "cmp qword ptr fs:[r8 + {deep}], 0",
        "je 1f",
        "mov rax, fs:[r8 + {activations}]",
        "inc rax",
        "mov fs:[r8 + {activations}], rax",
        "mov r10, fs:[r8 + {cursor}]",
        "lea r11, [r10 + 8]",
        "cmp r11, fs:[r8 + {end}]",
        "ja 2f",
        "mov rdx, rax",
        "shr rdx, {process}",
        "shl rdx, {top}",
        "movabs rcx, {kind}",
        "or rdx, rcx",
        "or rdx, rdi",
        "mov [r10], rdx",
        "mov fs:[r8 + {cursor}], r11",
        "mov rcx, fs:[r8 + {filter}]",
        "mov qword ptr [rcx + 8], 0",
        "ret",
        "1: xor eax, eax",
        "ret",
        "2: jmp {slow}",
        deep = const tls::DEEP, activations = const tls::ACTIVATIONS, cursor = const tls::CURSOR,
        end = const tls::END, filter = const tls::FILTER, process = const record::PROCESS_SHIFT,
        top = const record::TOP_SHIFT, kind = const record::word(0, record::ACTIVATION, 0), slow = sym activation,
    )
}

/// The innermost activation goes on with this segment.
#[unsafe(no_mangle)]
#[unsafe(naked)]
#[unsafe(link_section = "rashomon_hooks")]
pub unsafe extern "C" fn __rashomon_segment(_segment: u64) {
    naked_asm!(
        "mov rax, qword ptr [rip + rashomon_hot@GOTTPOFF]",
        "cmp qword ptr fs:[rax + {deep}], 0",
        "je 1f",
        "mov r10, fs:[rax + {cursor}]",
        "lea r11, [r10 + 8]",
        "cmp r11, fs:[rax + {end}]",
        "ja 2f",
        "movabs rcx, {kind}",
        "or rcx, rdi",
        "mov [r10], rcx",
        "mov fs:[rax + {cursor}], r11",
        "mov rcx, fs:[rax + {filter}]",
        "mov qword ptr [rcx + 8], 0",
        "1: ret",
        "2: jmp {slow}",
        deep = const tls::DEEP, cursor = const tls::CURSOR, end = const tls::END, filter = const tls::FILTER,
        kind = const record::word(0, record::SEGMENT, 0), slow = sym segment,
    )
}

/// The chunk is full, or nothing is kept.
unsafe extern "C" fn activation(table: u64) -> u64 {
    if let Some(runtime) = Runtime::try_enter() {
        flow::activation(runtime.thread(), table);
    }
    hot().activations.get()
}

unsafe extern "C" fn segment(segment: u64) {
    if let Some(runtime) = Runtime::try_enter() {
        flow::segment(runtime.thread(), segment);
    }
}

/// Control comes back to an activation, which goes on with this segment: a call returned a second time, or an exception is
/// caught.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __rashomon_resume(activation: u64, segment: u64) {
    if hot().deep.get() != 0
        && let Some(runtime) = Runtime::try_enter()
    {
        flow::resume(runtime.thread(), activation, segment);
    }
}

/// A nest of counted loops is about to run. 1: all of it is told; else its hooks tell it, and what is not 0 asks for its sites.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn __rashomon_counted(_plan: *const u64, _values: *const u64) -> u64 {
    naked_asm!(
        "mov rax, qword ptr [rip + rashomon_hot@GOTTPOFF]",
        "cmp qword ptr fs:[rax + {deep}], 0",
        "je 1f",
        "mov rdx, [rsp]",
        "jmp {told}",
        "1: xor eax, eax",
        "ret",
        deep = const tls::DEEP,
        told = sym counted,
    )
}

unsafe extern "C" fn counted(plan: *const u64, values: *const u64, place: u64) -> u64 {
    let Some(runtime) = Runtime::try_enter() else { return 0 };
    // SAFETY: the plugin's.
    match counted::tell(runtime.thread(), unsafe { Plan::new(plan, values) }, place) {
        Told::All => 1,
        Told::No => 0,
        Told::Undefined => place,
    }
}

/// The same once more, with the sites of its accesses and what [`__rashomon_counted`] said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __rashomon_counted_defined(plan: *const u64, values: *const u64, sites: *const u64, place: u64) -> u64 {
    if place != 0
        && let Some(runtime) = Runtime::try_enter()
    {
        // SAFETY: the plugin's.
        let told = unsafe {
            let plan = Plan::new(plan, values);
            counted::define(runtime.thread(), plan, sites, place) && counted::tell(runtime.thread(), plan, place) == Told::All
        };
        return told.into();
    }
    0
}

/// The site of an access of a loop that has two versions: where this is called.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn __rashomon_site() -> u64 {
    naked_asm!("mov rax, [rsp]", "ret")
}
