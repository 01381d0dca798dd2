//! Atomic operations as compilers emit them: each is a synchronisation event with its memory order and value.
//!
//! In free mode operation and sequence number are taken under one of a few locks chosen by address, so that the order of events
//! is the modification order. In serial mode the turn does that.

use crate::detect;
use crate::provoke;
use crate::record::recorder;
use crate::serial::replay::AccessAt;
use crate::serial::{explore, sched};
use crate::system::thread::Runtime;
use crate::system::tls::caller;
use crate::system::{config, stripes};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};
use rashomon_abi::record::{AccessClass, Op, atomic_aux};

/// What an operation did: the operation that it turned out to be, and its values.
enum Done {
    Load(u64),
    Store(u64),
    Rmw(u64, u64),
    CasFailed(u64),
}

impl Done {
    fn leaves_the_value(&self) -> bool {
        matches!(self, Self::Rmw(old, new) if old == new)
    }
    fn operation(&self) -> Op {
        match self {
            Self::Load(_) => Op::AtomicLoad,
            Self::Store(_) => Op::AtomicStore,
            Self::Rmw(..) => Op::AtomicRmw,
            Self::CasFailed(_) => Op::AtomicCasFailed,
        }
    }
}

/// The frame of every atomic load. `read` reads the value, perhaps twice; `low` are its low 64 bits.
#[inline]
fn atomic_load<R: Copy>(address: u64, log2: u16, order: c_int, read: impl Fn() -> R, low: impl Fn(R) -> u64) -> R {
    if detect::on() {
        let Some(runtime) = Runtime::try_enter() else { return read() };
        return runtime.with_own(|own| detect::atomics::load(own, address, log2, order, caller(), read));
    }
    atomic(address, log2, order, 0, Op::AtomicLoad, || {
        let value = read();
        (value, Done::Load(low(value)))
    })
}

/// The frame of every other atomic operation. `execute` performs it, once.
#[inline]
fn atomic<R>(address: u64, log2: u16, order: c_int, failure: c_int, op: Op, execute: impl FnOnce() -> (R, Done)) -> R {
    let Some(runtime) = Runtime::try_enter() else { return execute().0 };
    let site = caller();
    if detect::on() {
        return runtime.with_own(|own| {
            detect::atomics::modify(own, (address, log2), order, failure, site, || {
                let (result, done) = execute();
                (result, done.operation())
            })
        });
    }
    let class = match op {
        Op::AtomicLoad => AccessClass::Read,
        Op::AtomicStore => AccessClass::Write,
        _ => AccessClass::ReadWrite,
    };
    if provoke::on() {
        provoke::gate(&runtime, &AccessAt { address, bytes: 1 << log2, class: class as u64, atomic: true, site });
        let (result, done) = execute();
        runtime.thread().ordinal.set(runtime.thread().ordinal.get() + 1);
        provoke::made(
            runtime.thread(),
            address,
            site,
            !matches!(done, Done::Load(_) | Done::CasFailed(_)) && !done.leaves_the_value(),
        );
        return result;
    }
    sched::point_atomic(&runtime, op, AccessAt { address, bytes: 1 << log2, class: class as u64, atomic: true, site }, site);
    let (result, done, sequence) = if config::serial() {
        let (result, done) = execute();
        (result, done, recorder::next_sequence(runtime.thread()))
    } else {
        stripes::of(address).with(|| {
            let (result, done) = execute();
            (result, done, recorder::next_sequence(runtime.thread()))
        })
    };
    let thread = runtime.thread();
    let aux = atomic_aux::pack(log2, (order & 7) as u16, (failure & 7) as u16);
    match done {
        Done::Load(value) => recorder::sync_at(thread, Op::AtomicLoad, address, aux, site, &[value], sequence),
        Done::Store(value) => recorder::sync_at(thread, Op::AtomicStore, address, aux, site, &[value], sequence),
        Done::Rmw(old, new) => {
            if explore::on() {
                // One that left the value as it was is a poll.
                if old == new { explore::polls(thread) } else { explore::changes(thread) }
            }
            recorder::sync_at(thread, Op::AtomicRmw, address, aux, site, &[old, new], sequence)
        }
        Done::CasFailed(value) => {
            sched::polled(thread);
            recorder::sync_at(thread, Op::AtomicCasFailed, address, aux, site, &[value], sequence)
        }
    }
    result
}

macro_rules! atomics {
    (
        $atomic:ident $word:ident $log2:literal: $load:ident $store:ident $exchange:ident $add:ident $sub:ident $and:ident
        $or:ident $xor:ident $nand:ident $strong:ident $weak:ident $value:ident
    ) => {
        pub mod $word {
            use super::*;

            unsafe fn cell<'a>(address: *mut $word) -> &'a $atomic {
                // SAFETY: the program's own atomic object, aligned by its type.
                unsafe { $atomic::from_ptr(address) }
            }

            fn exchange(address: *mut $word, order: c_int, compute: impl Fn($word) -> $word) -> $word {
                atomic(address as u64, $log2, order, 0, Op::AtomicRmw, || {
                    // SAFETY: by the caller of the entry point.
                    let cell = unsafe { cell(address) };
                    let mut old = cell.load(Ordering::Relaxed);
                    while let Err(seen) = cell.compare_exchange_weak(old, compute(old), Ordering::SeqCst, Ordering::SeqCst) {
                        old = seen;
                    }
                    (old, Done::Rmw(old as u64, compute(old) as u64))
                })
            }

            fn compare(
                address: *mut $word,
                expected: $word,
                desired: $word,
                order: c_int,
                failure: c_int,
            ) -> Result<$word, $word> {
                atomic(address as u64, $log2, order, failure, Op::AtomicRmw, || {
                    // SAFETY: by the caller of the entry point.
                    let result = unsafe { cell(address) }.compare_exchange(expected, desired, Ordering::SeqCst, Ordering::SeqCst);
                    (
                        result,
                        match result {
                            Ok(old) => Done::Rmw(old as u64, desired as u64),
                            Err(seen) => Done::CasFailed(seen as u64),
                        },
                    )
                })
            }

            pub unsafe extern "C" fn load(address: *mut $word, order: c_int) -> $word {
                // SAFETY: as above.
                let read = || unsafe { cell(address) }.load(Ordering::SeqCst);
                atomic_load(address as u64, $log2, order, read, |value| value as u64)
            }
            pub unsafe extern "C" fn store(address: *mut $word, value: $word, order: c_int) {
                atomic(address as u64, $log2, order, 0, Op::AtomicStore, || {
                    // SAFETY: as above.
                    let cell = unsafe { cell(address) };
                    // What is more than a release takes as long as a read-modify-write.
                    let total = order as u16 & 7 == atomic_aux::SEQ_CST;
                    if total {
                        cell.store(value, Ordering::SeqCst)
                    } else {
                        cell.store(value, Ordering::Release)
                    }
                    ((), Done::Store(value as u64))
                })
            }
            pub unsafe extern "C" fn swap(address: *mut $word, value: $word, order: c_int) -> $word {
                exchange(address, order, |_| value)
            }
            pub unsafe extern "C" fn add(address: *mut $word, value: $word, order: c_int) -> $word {
                exchange(address, order, |old| old.wrapping_add(value))
            }
            pub unsafe extern "C" fn sub(address: *mut $word, value: $word, order: c_int) -> $word {
                exchange(address, order, |old| old.wrapping_sub(value))
            }
            pub unsafe extern "C" fn and(address: *mut $word, value: $word, order: c_int) -> $word {
                exchange(address, order, |old| old & value)
            }
            pub unsafe extern "C" fn or(address: *mut $word, value: $word, order: c_int) -> $word {
                exchange(address, order, |old| old | value)
            }
            pub unsafe extern "C" fn xor(address: *mut $word, value: $word, order: c_int) -> $word {
                exchange(address, order, |old| old ^ value)
            }
            pub unsafe extern "C" fn nand(address: *mut $word, value: $word, order: c_int) -> $word {
                exchange(address, order, |old| !(old & value))
            }
            pub unsafe extern "C" fn compare_exchange(
                address: *mut $word,
                expected: *mut $word,
                desired: $word,
                order: c_int,
                failure: c_int,
            ) -> c_int {
                // SAFETY: the caller's own variable.
                match compare(address, unsafe { *expected }, desired, order, failure) {
                    Ok(_) => 1,
                    Err(seen) => {
                        // SAFETY: as above.
                        unsafe { *expected = seen };
                        0
                    }
                }
            }
            pub unsafe extern "C" fn compare_value(
                address: *mut $word,
                expected: $word,
                desired: $word,
                order: c_int,
                failure: c_int,
            ) -> $word {
                compare(address, expected, desired, order, failure).unwrap_or_else(|seen| seen)
            }
        }
        crate::intercept::interpose_in! { "rashomon_polls";
            $load => $word::load;
            $store => $word::store;
            $exchange => $word::swap;
            $add => $word::add;
            $sub => $word::sub;
            $and => $word::and;
            $or => $word::or;
            $xor => $word::xor;
            $nand => $word::nand;
            $strong => $word::compare_exchange;
            $weak => $word::compare_exchange;
            $value => $word::compare_value;
        }
    };
}

atomics!(
    AtomicU8 u8 0: __tsan_atomic8_load __tsan_atomic8_store __tsan_atomic8_exchange __tsan_atomic8_fetch_add
    __tsan_atomic8_fetch_sub __tsan_atomic8_fetch_and __tsan_atomic8_fetch_or __tsan_atomic8_fetch_xor
    __tsan_atomic8_fetch_nand __tsan_atomic8_compare_exchange_strong __tsan_atomic8_compare_exchange_weak
    __tsan_atomic8_compare_exchange_val
);
atomics!(
    AtomicU16 u16 1: __tsan_atomic16_load __tsan_atomic16_store __tsan_atomic16_exchange __tsan_atomic16_fetch_add
    __tsan_atomic16_fetch_sub __tsan_atomic16_fetch_and __tsan_atomic16_fetch_or __tsan_atomic16_fetch_xor
    __tsan_atomic16_fetch_nand __tsan_atomic16_compare_exchange_strong __tsan_atomic16_compare_exchange_weak
    __tsan_atomic16_compare_exchange_val
);
atomics!(
    AtomicU32 u32 2: __tsan_atomic32_load __tsan_atomic32_store __tsan_atomic32_exchange __tsan_atomic32_fetch_add
    __tsan_atomic32_fetch_sub __tsan_atomic32_fetch_and __tsan_atomic32_fetch_or __tsan_atomic32_fetch_xor
    __tsan_atomic32_fetch_nand __tsan_atomic32_compare_exchange_strong __tsan_atomic32_compare_exchange_weak
    __tsan_atomic32_compare_exchange_val
);
atomics!(
    AtomicU64 u64 3: __tsan_atomic64_load __tsan_atomic64_store __tsan_atomic64_exchange __tsan_atomic64_fetch_add
    __tsan_atomic64_fetch_sub __tsan_atomic64_fetch_and __tsan_atomic64_fetch_or __tsan_atomic64_fetch_xor
    __tsan_atomic64_fetch_nand __tsan_atomic64_compare_exchange_strong __tsan_atomic64_compare_exchange_weak
    __tsan_atomic64_compare_exchange_val
);

/// 128-bit cells: `cmpxchg16b` is all the hardware has, so every operation is a compare-exchange.
pub mod u128 {
    use super::*;
    use crate::intercept::wide::{self, cmpxchg16b};

    fn exchange(address: *mut u128, order: c_int, compute: impl Fn(u128) -> u128) -> u128 {
        atomic(address as u64, 4, order, 0, Op::AtomicRmw, || {
            let mut old = 0;
            loop {
                // SAFETY: the program's own atomic object.
                let seen = unsafe { cmpxchg16b(address, old, compute(old)) };
                if seen == old {
                    return (old, Done::Rmw(old as u64, compute(old) as u64));
                }
                old = seen;
            }
        })
    }

    fn compare(address: *mut u128, expected: u128, desired: u128, order: c_int, failure: c_int) -> Result<u128, u128> {
        atomic(address as u64, 4, order, failure, Op::AtomicRmw, || {
            // SAFETY: the program's own atomic object.
            let seen = unsafe { cmpxchg16b(address, expected, desired) };
            if seen == expected {
                (Ok(seen), Done::Rmw(seen as u64, desired as u64))
            } else {
                (Err(seen), Done::CasFailed(seen as u64))
            }
        })
    }

    pub unsafe extern "C" fn load(address: *mut u128, order: c_int) -> u128 {
        // SAFETY: the program's own atomic object.
        let read = || unsafe { wide::load(address) };
        atomic_load(address as u64, 4, order, read, |value| value as u64)
    }
    pub unsafe extern "C" fn store(address: *mut u128, value: u128, order: c_int) {
        atomic(address as u64, 4, order, 0, Op::AtomicStore, || {
            let mut old = 0;
            loop {
                // SAFETY: the program's own atomic object.
                let seen = unsafe { cmpxchg16b(address, old, value) };
                if seen == old {
                    return ((), Done::Store(value as u64));
                }
                old = seen;
            }
        })
    }
    pub unsafe extern "C" fn swap(address: *mut u128, value: u128, order: c_int) -> u128 {
        exchange(address, order, |_| value)
    }
    pub unsafe extern "C" fn add(address: *mut u128, value: u128, order: c_int) -> u128 {
        exchange(address, order, |old| old.wrapping_add(value))
    }
    pub unsafe extern "C" fn sub(address: *mut u128, value: u128, order: c_int) -> u128 {
        exchange(address, order, |old| old.wrapping_sub(value))
    }
    pub unsafe extern "C" fn and(address: *mut u128, value: u128, order: c_int) -> u128 {
        exchange(address, order, |old| old & value)
    }
    pub unsafe extern "C" fn or(address: *mut u128, value: u128, order: c_int) -> u128 {
        exchange(address, order, |old| old | value)
    }
    pub unsafe extern "C" fn xor(address: *mut u128, value: u128, order: c_int) -> u128 {
        exchange(address, order, |old| old ^ value)
    }
    pub unsafe extern "C" fn nand(address: *mut u128, value: u128, order: c_int) -> u128 {
        exchange(address, order, |old| !(old & value))
    }
    pub unsafe extern "C" fn compare_exchange(
        address: *mut u128,
        expected: *mut u128,
        desired: u128,
        order: c_int,
        failure: c_int,
    ) -> c_int {
        // SAFETY: the caller's own variable.
        match compare(address, unsafe { *expected }, desired, order, failure) {
            Ok(_) => 1,
            Err(seen) => {
                // SAFETY: as above.
                unsafe { *expected = seen };
                0
            }
        }
    }
    pub unsafe extern "C" fn compare_value(
        address: *mut u128,
        expected: u128,
        desired: u128,
        order: c_int,
        failure: c_int,
    ) -> u128 {
        compare(address, expected, desired, order, failure).unwrap_or_else(|seen| seen)
    }
}

pub unsafe extern "C" fn thread_fence(order: c_int) {
    fence(Ordering::SeqCst);
    let Some(runtime) = Runtime::try_enter() else { return };
    let site = caller();
    if detect::on() {
        runtime.with_own(|own| detect::atomics::fence(own, order));
        return;
    }
    sched::point(&runtime, Op::Fence, 0, site);
    recorder::sync(runtime.thread(), Op::Fence, 0, atomic_aux::pack(0, (order & 7) as u16, 0), site, &[]);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_atomic_signal_fence(_order: c_int) {
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
}

crate::intercept::interpose_in! { "rashomon_polls";
    __tsan_atomic_thread_fence => thread_fence;
    __tsan_atomic128_load => u128::load;
    __tsan_atomic128_store => u128::store;
    __tsan_atomic128_exchange => u128::swap;
    __tsan_atomic128_fetch_add => u128::add;
    __tsan_atomic128_fetch_sub => u128::sub;
    __tsan_atomic128_fetch_and => u128::and;
    __tsan_atomic128_fetch_or => u128::or;
    __tsan_atomic128_fetch_xor => u128::xor;
    __tsan_atomic128_fetch_nand => u128::nand;
    __tsan_atomic128_compare_exchange_strong => u128::compare_exchange;
    __tsan_atomic128_compare_exchange_weak => u128::compare_exchange;
    __tsan_atomic128_compare_exchange_val => u128::compare_value;
}
