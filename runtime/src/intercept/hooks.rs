//! The entry points that compilers emit for memory accesses and function boundaries: assembly, because the site is the return
//! address on the stack and because these few instructions run for every access of the program.
//!
//! An access hook counts the quantum down, asks the filter, and appends one word to the stream; whatever else there is
//! to do is a tail jump to [`access_quantum`] or [`access_record`]. All hooks lie in the section `rashomon_hooks`: a signal that
//! arrives inside it is deferred, so no handler ever sees a half-written record.
//!
//! When detecting ([`crate::detect`]), a hook compares the four cells of the word with what covers the access, and is done if one
//! does.

use crate::detect::{self, shadow};
use crate::provoke;
use crate::record::filter;
use crate::record::recorder;
use crate::serial::explore;
use crate::serial::replay::AccessAt;
use crate::serial::sched;
use crate::serial::visible;
use crate::system::glibc;
use crate::system::loader;
use crate::system::thread::Runtime;
use crate::system::tls::{self, caller, hot};
use core::arch::naked_asm;
use rashomon_abi::record::{AccessClass, SITE_BIAS, access_kind, access_of_kind};

const READ: AccessClass = AccessClass::Read;
const WRITE: AccessClass = AccessClass::Write;
const BOTH: AccessClass = AccessClass::ReadWrite;

/// For each offset in a word the bits of an access's bytes, four times; an access that leaves the word looks like no cell.
#[repr(C, align(16))]
struct ByteBits([[u32; 4]; 8]);

const fn byte_bits(bytes: u32) -> ByteBits {
    let mut table = [[shadow::NEVER; 4]; 8];
    let mut at = 0;
    while at + bytes <= 8 {
        table[at as usize] = [((1 << bytes) - 1) << at; 4];
        at += 1;
    }
    ByteBits(table)
}

static BYTES1: ByteBits = byte_bits(1);
static BYTES2: ByteBits = byte_bits(2);
static BYTES4: ByteBits = byte_bits(4);
static BYTES8: ByteBits = byte_bits(8);
static BYTES16: ByteBits = byte_bits(8);

macro_rules! access_hooks {
    (@compare BYTES8) => { "/* {bytes} is for smaller accesses */ test dil, 7; jnz 5f; lea rdx, [rdi + rdi]; \
        and rdx, fs:[rax + {shadow_mask}]; movdqa xmm1, [rcx + rdx]; psubd xmm1, fs:[rax + {window}]; \
        pand xmm1, fs:[rax + {covers}]; pcmpeqd xmm1, fs:[rax + {whole_word}]" };
    // Sixteen bytes are two words.
    (@compare BYTES16) => { "/* {bytes} is for smaller accesses */ test dil, 7; jnz 5f; lea r9, [rdi + rdi]; \
        and r9, fs:[rax + {shadow_mask}]; movdqa xmm2, fs:[rax + {covers}]; movdqa xmm3, fs:[rax + {window}]; \
        movdqa xmm1, [rcx + r9]; psubd xmm1, xmm3; pand xmm1, xmm2; pcmpeqd xmm1, fs:[rax + {whole_word}]" };
    (@compare $bytes:ident) => { "/* {whole_word} is for larger ones */ mov edx, edi; and edx, 7; shl edx, 4; \
        lea r8, [rip + {bytes}]; movdqa xmm2, [r8 + rdx]; lea r9, [rdi + rdi]; and r9, fs:[rax + {shadow_mask}]; \
        movdqa xmm3, fs:[rax + {covers}]; por xmm3, xmm2; movdqa xmm1, [rcx + r9]; psubd xmm1, fs:[rax + {window}]; \
        pand xmm1, xmm3; pcmpeqd xmm1, xmm2" };
    // Where the site comes from.
    (@site caller) => { "mov rsi, [rsp]" };
    (@site given) => { "" };
    (@second BYTES16) => { "movdqa xmm1, [rcx + r9 + 16]; psubd xmm1, xmm3; pand xmm1, xmm2; \
        pcmpeqd xmm1, fs:[rax + {whole_word}]; pmovmskb edx, xmm1; test edx, edx; jz 5f" };
    (@second $bytes:ident) => { "" };
    ($site:ident: $($name:ident $class:ident $log2:literal $bytes:ident $slow:ident;)*) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        #[unsafe(link_section = "rashomon_hooks")]
        pub unsafe extern "C" fn $name(_address: *const u8) {
            naked_asm!(
                "mov rax, qword ptr [rip + rashomon_hot@GOTTPOFF]",
                "mov rcx, fs:[rax + {shadow}]",
                "test rcx, rcx",
                "jz 4f",
                // Detection: does one of the word's cells hold an access of this span that covers these bytes?
                access_hooks!(@compare $bytes),
                "pmovmskb edx, xmm1",
                "test edx, edx",
                "jz 5f",
                access_hooks!(@second $bytes),
                "ret",
                "5:",
                access_hooks!(@site $site),
                "jmp {slow_detect}",
                "4:",
                access_hooks!(@site $site),
                "dec qword ptr fs:[rax + {quantum}]",
                "js 2f",
                // `filter::slot`
                "lea r8, [rdi + rdi]",
                "imul r9d, esi, {spread}",
                "shr r9d, 4",
                "xor r8, r9",
                "and r8, fs:[rax + {filter_mask}]",
                "add r8, fs:[rax + {filter}]",
                "mov rcx, fs:[rax + {span}]",
                "add rcx, rdi",
                "movabs rdx, {kind_high}",
                "or rdx, rsi",
                "xor rdx, fs:[rax + {locks}]",
                "mov r10, [r8 + 8]",
                "mov r11, r10",
                "xor r11, rdx",
                "shl r11, 11",
                "jnz 1f",
                "mov r9, [r8]",
                "xor r9, rcx",
                "jz 9f",
                "shl r9, 16",
                "jnz 1f",
                // The same access in an earlier span.
                "cmp r10, fs:[rax + {cap}]",
                "jae 8f",
                "mov r9d, 1",
                "shl r9, {times}",
                "add r10, r9",
                "mov rdx, r10",
                "1:",
                "cmp qword ptr fs:[rax + {dirty}], 0",
                "jne 3f",
                "mov r9, rsi",
                "sub r9, fs:[rax + {previous}]",
                "add r9, {bias}",
                "cmp r9, 2047",
                "ja 3f",
                "mov r10, fs:[rax + {cursor}]",
                "lea r11, [r10 + 8]",
                "cmp r11, fs:[rax + {end}]",
                "ja 3f",
                "mov [r8], rcx",
                "mov [r8 + 8], rdx",
                "mov fs:[rax + {previous}], rsi",
                "shl r9, 5",
                "or r9, {kind}",
                "shl r9, 48",
                "or r9, rdi",
                "mov [r10], r9",
                "mov fs:[rax + {cursor}], r11",
                "9:",
                "ret",
                "8:",
                "mov qword ptr fs:[rax + {capped}], 1",
                "ret",
                "2:",
                "mov edx, {kind}",
                "jmp {slow_quantum}",
                "3:",
                "mov edx, {kind}",
                "jmp {slow_record}",
                // The next one begins a cache line, and so they all do: its fast way is one line long, and how fast it is must
                // not depend on where the linker puts them (7 % between the best place and the worst).
                ".p2align 6",
                quantum = const tls::QUANTUM, span = const tls::SPAN, filter = const tls::FILTER,
                filter_mask = const tls::FILTER_MASK, cap = const tls::CAP, capped = const tls::CAPPED,
                locks = const tls::LOCKS, spread = const filter::SPREAD as i32, times = const filter::TIMES_SHIFT,
                dirty = const tls::DIRTY, previous = const tls::PREVIOUS_SITE, bias = const SITE_BIAS,
                cursor = const tls::CURSOR, end = const tls::END, kind = const access_kind($class, $log2),
                kind_high = const access_kind($class, $log2) << 48, slow_quantum = sym access_quantum,
                slow_record = sym access_record, shadow = const tls::SHADOW, shadow_mask = const tls::SHADOW_MASK,
                covers = const tls::covers($class as u64 == READ as u64, $log2 >= 3),
                window = const tls::WINDOW, whole_word = const tls::WHOLE_WORD, bytes = sym $bytes,
                slow_detect = sym detect::$slow,
            )
        }
    )* };
}

access_hooks! {
    caller:
    __tsan_read1 READ 0 BYTES1 read1; __tsan_read2 READ 1 BYTES2 read2; __tsan_read4 READ 2 BYTES4 read4;
    __tsan_read8 READ 3 BYTES8 read8; __tsan_read16 READ 4 BYTES16 read16;
    __tsan_write1 WRITE 0 BYTES1 write1; __tsan_write2 WRITE 1 BYTES2 write2; __tsan_write4 WRITE 2 BYTES4 write4;
    __tsan_write8 WRITE 3 BYTES8 write8; __tsan_write16 WRITE 4 BYTES16 write16;
    __tsan_unaligned_read2 READ 1 BYTES2 read2; __tsan_unaligned_read4 READ 2 BYTES4 read4;
    __tsan_unaligned_read8 READ 3 BYTES8 read8; __tsan_unaligned_read16 READ 4 BYTES16 read16;
    __tsan_unaligned_write2 WRITE 1 BYTES2 write2; __tsan_unaligned_write4 WRITE 2 BYTES4 write4;
    __tsan_unaligned_write8 WRITE 3 BYTES8 write8; __tsan_unaligned_write16 WRITE 4 BYTES16 write16;
    __tsan_volatile_read1 READ 0 BYTES1 read1; __tsan_volatile_read2 READ 1 BYTES2 read2;
    __tsan_volatile_read4 READ 2 BYTES4 read4; __tsan_volatile_read8 READ 3 BYTES8 read8;
    __tsan_volatile_read16 READ 4 BYTES16 read16;
    __tsan_volatile_write1 WRITE 0 BYTES1 write1; __tsan_volatile_write2 WRITE 1 BYTES2 write2;
    __tsan_volatile_write4 WRITE 2 BYTES4 write4; __tsan_volatile_write8 WRITE 3 BYTES8 write8;
    __tsan_volatile_write16 WRITE 4 BYTES16 write16;
    __tsan_unaligned_volatile_read2 READ 1 BYTES2 read2; __tsan_unaligned_volatile_read4 READ 2 BYTES4 read4;
    __tsan_unaligned_volatile_read8 READ 3 BYTES8 read8; __tsan_unaligned_volatile_read16 READ 4 BYTES16 read16;
    __tsan_unaligned_volatile_write2 WRITE 1 BYTES2 write2; __tsan_unaligned_volatile_write4 WRITE 2 BYTES4 write4;
    __tsan_unaligned_volatile_write8 WRITE 3 BYTES8 write8; __tsan_unaligned_volatile_write16 WRITE 4 BYTES16 write16;
    __tsan_read_write1 BOTH 0 BYTES1 write1; __tsan_read_write2 BOTH 1 BYTES2 write2; __tsan_read_write4 BOTH 2 BYTES4 write4;
    __tsan_read_write8 BOTH 3 BYTES8 write8; __tsan_read_write16 BOTH 4 BYTES16 write16;
    __tsan_unaligned_read_write2 BOTH 1 BYTES2 write2; __tsan_unaligned_read_write4 BOTH 2 BYTES4 write4;
    __tsan_unaligned_read_write8 BOTH 3 BYTES8 write8; __tsan_unaligned_read_write16 BOTH 4 BYTES16 write16;
    __tsan_vptr_read READ 3 BYTES8 vptr_read;
    rashomon_vptr_written WRITE 3 BYTES8 vptr_write;
}

// Of loops that the compiler's plugin has given a second version (`deep`): the site is the second argument.
access_hooks! {
    given:
    __rashomon_read1_at READ 0 BYTES1 read1; __rashomon_read2_at READ 1 BYTES2 read2; __rashomon_read4_at READ 2 BYTES4 read4;
    __rashomon_read8_at READ 3 BYTES8 read8; __rashomon_read16_at READ 4 BYTES16 read16;
    __rashomon_write1_at WRITE 0 BYTES1 write1; __rashomon_write2_at WRITE 1 BYTES2 write2;
    __rashomon_write4_at WRITE 2 BYTES4 write4; __rashomon_write8_at WRITE 3 BYTES8 write8;
    __rashomon_write16_at WRITE 4 BYTES16 write16;
}

/// A constructor stores the vtable pointer; storing the value that is there already is no race anybody means.
#[unsafe(no_mangle)]
#[unsafe(naked)]
#[unsafe(link_section = "rashomon_hooks")]
pub unsafe extern "C" fn __tsan_vptr_update(_slot: *mut *const u8, _value: *const u8) {
    naked_asm!("cmp [rdi], rsi", "jne {write}", "ret", write = sym rashomon_vptr_written)
}

#[unsafe(no_mangle)]
#[unsafe(naked)]
#[unsafe(link_section = "rashomon_hooks")]
pub unsafe extern "C" fn __tsan_func_entry(_call_site: *const u8) {
    naked_asm!(
        "mov rax, qword ptr [rip + rashomon_hot@GOTTPOFF]",
        "mov rcx, fs:[rax + {top}]",
        "cmp rcx, fs:[rax + {limit}]",
        "jae 1f",
        "mov [rcx], rdi",
        "mov [rcx + 8], rsp",
        "add rcx, 16",
        "mov fs:[rax + {top}], rcx",
        "mov qword ptr fs:[rax + {dirty}], 1",
        "ret",
        "1: inc qword ptr fs:[rax + {overflow}]",
        "ret",
        top = const tls::TOP, limit = const tls::LIMIT, dirty = const tls::DIRTY, overflow = const tls::OVERFLOW,
    )
}

#[unsafe(no_mangle)]
#[unsafe(naked)]
#[unsafe(link_section = "rashomon_hooks")]
pub unsafe extern "C" fn __tsan_func_exit() {
    naked_asm!(
        "mov rax, qword ptr [rip + rashomon_hot@GOTTPOFF]",
        "cmp qword ptr fs:[rax + {overflow}], 0",
        "jne 2f",
        "mov rcx, fs:[rax + {top}]",
        "cmp rcx, fs:[rax + {bottom}]",
        "jbe 1f",
        "sub rcx, 16",
        "mov fs:[rax + {top}], rcx",
        "mov qword ptr fs:[rax + {dirty}], 1",
        "cmp rcx, fs:[rax + {lowest}]",
        "jae 1f",
        "mov fs:[rax + {lowest}], rcx",
        "1: ret",
        "2: dec qword ptr fs:[rax + {overflow}]",
        "ret",
        top = const tls::TOP, bottom = const tls::BOTTOM, lowest = const tls::LOWEST, dirty = const tls::DIRTY,
        overflow = const tls::OVERFLOW,
    )
}

/// The quantum is used up, or the schedule wants to see this access: the access has been counted but not made.
unsafe extern "C" fn access_quantum(address: u64, site: u64, kind: u64) {
    let block = hot();
    // SAFETY: the block is this thread's; a known thread outlives its hooks.
    unsafe {
        if provoke::on() {
            let (class, log2) = access_of_kind(kind).map_or((0, 0), |(class, log2)| (class as u64, log2));
            provoke::access(block, address, site, 1 << log2, class);
            return;
        }
        if block.thread.get().is_none() || block.nesting.get() > 0 {
            // Not counted; an unknown thread comes here every time.
            block.quantum.set(block.quantum.get() + 1);
            return;
        }
        if block.thread.get().is_some_and(|thread| visible::overlooks(thread, site)) {
            return;
        }
        let runtime = Runtime::enter();
        if block.ignored.get() > 0 {
            sched::reload_quantum(runtime.thread());
            return;
        }
        sched::at_access(&runtime, address, kind, site);
        recorder::access(runtime.thread(), address, site, kind);
    }
}

/// The fast path could not write the record: far site, changed call stack, or a full chunk.
unsafe extern "C" fn access_record(address: u64, site: u64, kind: u64) {
    // SAFETY: only threads with a stream get here: others have a quantum of zero.
    unsafe {
        if hot().thread.get().is_none() || hot().nesting.get() > 0 || hot().ignored.get() > 0 {
            return;
        }
        let runtime = Runtime::enter();
        recorder::access(runtime.thread(), address, site, kind);
    }
}

macro_rules! range_hooks {
    ($($name:ident $class:ident;)*) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        #[unsafe(link_section = "rashomon_hooks")]
        pub unsafe extern "C" fn $name(_address: *const u8, _bytes: usize) {
            naked_asm!("mov rdx, [rsp]", "mov ecx, {class}", "jmp {range}", class = const $class as u64, range = sym access_range)
        }
    )* };
}

range_hooks! { __tsan_read_range READ; __tsan_write_range WRITE; }

/// An access of any length, by the program's own code.
pub unsafe extern "C" fn access_range(address: u64, bytes: u64, site: u64, class: u64) {
    // SAFETY: by the caller.
    unsafe { range(address, bytes, site, class, 0) }
}

/// The same by an interposed function that was called from `site`.
pub unsafe fn access_by_call(address: u64, bytes: u64, site: u64, class: u64) {
    if detect::on() && detect::ranges::is_covered(hot(), address, bytes, class) {
        return;
    }
    if glibc::calls_from(site) {
        return;
    }
    // SAFETY: by the caller; this thread's block.
    unsafe { range(address, bytes, site, class, hot().callee.get()) }
}

/// The same by a call of `function` that may be long since.
pub unsafe fn access_within(address: u64, bytes: u64, site: u64, class: u64, function: u64) {
    // SAFETY: by the caller.
    unsafe { range(address, bytes, site, class, function) }
}

/// A call from `site` is about to end the life of some bytes, of which the first [`MOST_ENDING`] count: for whoever still touches
/// them it writes them. Online detection and exploration have their own ways to see that.
pub fn ends(address: u64, bytes: u64, site: u64) {
    if !glibc::cxx_calls_from(site) {
        of_object(address, bytes.min(MOST_ENDING), site, AccessClass::End);
    }
}

/// Freeing much memory is not to cost as much as touching it.
const MOST_ENDING: u64 = 64 << 10;

/// The same for any access to something that is no memory of the program's.
pub fn of_object(address: u64, bytes: u64, site: u64, class: AccessClass) {
    if detect::on() || explore::on() || glibc::calls_from(site) || loader::calls_from(site) {
        return;
    }
    // SAFETY: only the numbers are used; this thread's block.
    unsafe { range(address, bytes, site, class as u64, 0) }
}

#[inline(always)]
unsafe fn range(address: u64, bytes: u64, site: u64, class: u64, function: u64) {
    let block = hot();
    // SAFETY: as in `access_quantum`.
    unsafe {
        if bytes == 0 || block.thread.get().is_none() || block.nesting.get() > 0 || block.ignored.get() > 0 {
            return;
        }
        let runtime = Runtime::enter();
        let thread = runtime.thread();
        if detect::on() {
            thread.with_own(|own| detect::access_range(own, address, bytes, site, class, function));
            return;
        }
        if provoke::on() {
            provoke::gate(&runtime, &AccessAt { address, bytes, class, atomic: false, site });
            return;
        }
        block.quantum.set(block.quantum.get() - 1);
        if block.quantum.get() < 0 {
            sched::at_range(&runtime, address, bytes, class, site);
        }
        recorder::range(thread, address, bytes, site, class);
    }
}

/// The access hooks with the site as an argument.
unsafe extern "C" fn access_from<const CLASS: u64, const LOG2: u64>(address: u64, site: u64) {
    // SAFETY: as the hook itself.
    unsafe { access_range(address, 1 << LOG2, code_at(site), CLASS) }
}

/// Those of any length.
unsafe extern "C" fn access_range_from<const CLASS: u64>(address: u64, bytes: u64, site: u64) {
    // SAFETY: as the hook itself.
    unsafe { access_range(address, bytes, code_at(site), CLASS) }
}

/// A site that is given. A virtual machine's may be a number that only the program has a name for (`kExternalPCBit`): online
/// detection asks the program, while a recording has the code that gave the number.
fn code_at(site: u64) -> u64 {
    if detect::on() || is_code(site) { site } else { caller() }
}

/// Whether a number can be an address of the program's.
pub fn is_code(site: u64) -> bool {
    (1..1 << 47).contains(&site)
}

const R: u64 = READ as u64;
const W: u64 = WRITE as u64;

interpose! {
    __tsan_read1_pc => access_from::<R, 0>; __tsan_read2_pc => access_from::<R, 1>; __tsan_read4_pc => access_from::<R, 2>;
    __tsan_read8_pc => access_from::<R, 3>; __tsan_read16_pc => access_from::<R, 4>;
    __tsan_write1_pc => access_from::<W, 0>; __tsan_write2_pc => access_from::<W, 1>; __tsan_write4_pc => access_from::<W, 2>;
    __tsan_write8_pc => access_from::<W, 3>; __tsan_write16_pc => access_from::<W, 4>;
    __tsan_read_range_pc => access_range_from::<R>; __tsan_write_range_pc => access_range_from::<W>;
}
