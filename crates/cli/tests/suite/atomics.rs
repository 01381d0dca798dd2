//! Atomic operations of every width, order and kind: that of 16 bytes in the runtime's own object code at every level of
//! optimisation, and all of them as programs call them.

use crate::support::place::{Place, is_installed};
use std::process::Command;

/// Functions in which the compiler has few registers left, and the address lies in one that calls preserve.
const PRESSED: &str = r#"
#[path = "WIDE"]
mod wide;
use std::hint::black_box;

#[inline(never)]
fn opaque(value: u64) -> u64 { black_box(value) }

/// Nothing but the address lives across the calls: it gets the first of the preserved registers, which is RBX.
#[inline(never)]
fn address_only(cell: *mut u128) {
    opaque(1);
    unsafe { wide::cmpxchg16b(cell, 9, 5) };
    opaque(2);
    unsafe { wide::cmpxchg16b(cell, 5, 6) };
    opaque(3);
}

/// The address, and all else that lives across the calls, is in preserved registers.
#[inline(never)]
fn across_calls(cell: *mut u128, a: u64, b: u64, c: u64, d: u64) -> (u128, u64) {
    let before = opaque(a);
    let old = unsafe { wide::cmpxchg16b(cell, 5, 7 << 64 | 9) };
    let after = opaque(b) + opaque(c) + opaque(d) + opaque(before);
    let seen = unsafe { wide::cmpxchg16b(cell, old, old) };
    assert_eq!(seen, unsafe { wide::load(cell) });
    (old, after + a + b + c + d + seen as u64)
}

/// More values than registers live across the operation, in a loop.
#[inline(never)]
fn pressed(cells: &mut [u128; 4], v: [u64; 14]) -> u64 {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h, mut i, mut j, mut k, mut l, mut m, mut n] = v;
    for round in 0..100u64 {
        let cell = &raw mut cells[(round % 4) as usize];
        let mut old = unsafe { wide::load(cell) };
        loop {
            let new = old.wrapping_add((a as u128) << 64 | b as u128);
            let seen = unsafe { wide::cmpxchg16b(cell, old, new) };
            if seen == old { break; }
            old = seen;
        }
        (a, b, c, d, e, f, g) = (b ^ round, c + 1, d.rotate_left(3), e ^ old as u64, f.wrapping_mul(3), g ^ a, h + round);
        (h, i, j, k, l, m, n) = (i ^ b, j + c, k.rotate_left(7), l ^ d, m.wrapping_add(e), n ^ f, g ^ (old >> 64) as u64);
    }
    a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i ^ j ^ k ^ l ^ m ^ n
}

/// The same without atomic operations.
fn expected(cells: &mut [u128; 4], v: [u64; 14]) -> u64 {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h, mut i, mut j, mut k, mut l, mut m, mut n] = v;
    for round in 0..100u64 {
        let cell = &mut cells[(round % 4) as usize];
        let old = *cell;
        *cell = old.wrapping_add((a as u128) << 64 | b as u128);
        (a, b, c, d, e, f, g) = (b ^ round, c + 1, d.rotate_left(3), e ^ old as u64, f.wrapping_mul(3), g ^ a, h + round);
        (h, i, j, k, l, m, n) = (i ^ b, j + c, k.rotate_left(7), l ^ d, m.wrapping_add(e), n ^ f, g ^ (old >> 64) as u64);
    }
    a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i ^ j ^ k ^ l ^ m ^ n
}

fn main() {
    let mut cell = 9u128;
    address_only(&raw mut cell);
    assert_eq!(cell, 6);
    let mut cell = 5u128;
    assert_eq!(across_calls(&raw mut cell, 1, 2, 3, 4), (5, 1 + 2 + 3 + 4 + 10 + 9));
    assert_eq!(cell, 7 << 64 | 9);
    let values = std::array::from_fn(|at| black_box(at as u64 * 0x9e37_79b9_7f4a_7c15 >> 4));
    let (mut ours, mut theirs) = ([1u128 << 100, 2, 3, 4], [1u128 << 100, 2, 3, 4]);
    assert_eq!(pressed(&mut ours, values), expected(&mut theirs, values));
    assert_eq!(ours, theirs);
}
"#;

#[test]
fn wide_operations_at_every_level() {
    let place = Place::new();
    let wide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime/src/intercept/wide.rs");
    let source = place.write("pressed.rs", PRESSED.replace("WIDE", wide));
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    for level in ["0", "1", "2", "3", "s"] {
        let program = place.path(&format!("pressed{level}"));
        let output = Command::new(&compiler)
            .args(["--edition", "2024", "-A", "warnings", "-C", "overflow-checks=off", "-C", &format!("opt-level={level}"), "-o"])
            .args([&program, &source])
            .output()
            .expect("rustc can be started");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let output = Command::new(&program).output().expect("the program can be started");
        assert!(output.status.success(), "level {level}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
}

/// Every operation of every width with every order, against the same done plainly; the values that each needs are live across the
/// next.
const OPERATIONS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
typedef unsigned char a8; typedef unsigned short a16; typedef unsigned int a32; typedef unsigned long a64;
typedef unsigned __int128 a128;
static int failures;
#define CHECK(what) do { if (!(what)) { failures++; printf("line %d order %d: %s\n", __LINE__, order, #what); } } while (0)
#define DECLARE(n) a##n __tsan_atomic##n##_load(const volatile a##n *, int); \
    void __tsan_atomic##n##_store(volatile a##n *, a##n, int); \
    a##n __tsan_atomic##n##_exchange(volatile a##n *, a##n, int); \
    a##n __tsan_atomic##n##_fetch_add(volatile a##n *, a##n, int); \
    a##n __tsan_atomic##n##_fetch_sub(volatile a##n *, a##n, int); \
    a##n __tsan_atomic##n##_fetch_and(volatile a##n *, a##n, int); \
    a##n __tsan_atomic##n##_fetch_or(volatile a##n *, a##n, int); \
    a##n __tsan_atomic##n##_fetch_xor(volatile a##n *, a##n, int); \
    a##n __tsan_atomic##n##_fetch_nand(volatile a##n *, a##n, int); \
    int __tsan_atomic##n##_compare_exchange_strong(volatile a##n *, a##n *, a##n, int, int); \
    int __tsan_atomic##n##_compare_exchange_weak(volatile a##n *, a##n *, a##n, int, int); \
    a##n __tsan_atomic##n##_compare_exchange_val(volatile a##n *, a##n, a##n, int, int); \
    static a##n cell##n; static a##n random##n(void) { a##n v = 0; \
        for (unsigned i = 0; i < sizeof v; i++) v = (a##n)((a128)v << 8 | (rand() & 255)); return v; } \
    static void test##n(int order) { \
        a##n x = random##n(), y = random##n(), z = random##n(), e; \
        __tsan_atomic##n##_store(&cell##n, x, order); CHECK(cell##n == x); CHECK(__tsan_atomic##n##_load(&cell##n, order) == x); \
        CHECK(__tsan_atomic##n##_exchange(&cell##n, y, order) == x); CHECK(cell##n == y); \
        CHECK(__tsan_atomic##n##_fetch_add(&cell##n, z, order) == y); CHECK(cell##n == (a##n)(y + z)); \
        CHECK(__tsan_atomic##n##_fetch_sub(&cell##n, z, order) == (a##n)(y + z)); CHECK(cell##n == y); \
        CHECK(__tsan_atomic##n##_fetch_and(&cell##n, x, order) == y); CHECK(cell##n == (a##n)(x & y)); \
        CHECK(__tsan_atomic##n##_fetch_or(&cell##n, z, order) == (a##n)(x & y)); CHECK(cell##n == (a##n)((x & y) | z)); \
        __tsan_atomic##n##_store(&cell##n, x, order); \
        CHECK(__tsan_atomic##n##_fetch_xor(&cell##n, y, order) == x); CHECK(cell##n == (a##n)(x ^ y)); \
        CHECK(__tsan_atomic##n##_fetch_nand(&cell##n, z, order) == (a##n)(x ^ y)); CHECK(cell##n == (a##n)~((x ^ y) & z)); \
        __tsan_atomic##n##_store(&cell##n, x, order); e = x; \
        CHECK(__tsan_atomic##n##_compare_exchange_strong(&cell##n, &e, y, order, order)); CHECK(cell##n == y); CHECK(e == x); \
        e = (a##n)~y; CHECK(!__tsan_atomic##n##_compare_exchange_strong(&cell##n, &e, z, order, order)); CHECK(cell##n == y); \
            CHECK(e == y); \
        CHECK(__tsan_atomic##n##_compare_exchange_weak(&cell##n, &e, z, order, order)); CHECK(cell##n == z); \
        CHECK(__tsan_atomic##n##_compare_exchange_val(&cell##n, z, x, order, order) == z); CHECK(cell##n == x); \
        CHECK(__tsan_atomic##n##_compare_exchange_val(&cell##n, (a##n)~x, y, order, order) == x); CHECK(cell##n == x); \
    } \
    static void *add##n(void *count) { for (long i = (long)count; i > 0; i--) __tsan_atomic##n##_fetch_add(&cell##n, 1, 5); \
        return 0; }
#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"
DECLARE(8) DECLARE(16) DECLARE(32) DECLARE(64) DECLARE(128)
#define ADDED(n) do { pthread_t t[2]; cell##n = (a##n)-100; \
    for (int i = 0; i < 2; i++) pthread_create(t + i, 0, add##n, (void *)150l); \
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0); CHECK(cell##n == 200); } while (0)
int main(void) {
    for (int order = 0; order < 6; order++)
        for (int i = 0; i < 3; i++) { test8(order); test16(order); test32(order); test64(order); test128(order); }
    { int order = -1; ADDED(8); ADDED(16); ADDED(32); ADDED(64); ADDED(128); }
    return failures ? 1 : 0;
}
"#;

#[test]
fn every_operation_as_programs_call_it() {
    let place = Place::new();
    place.write("operations.c", OPERATIONS);
    let compilers: &[&str] = if is_installed("clang-19") { &["gcc", "clang-19"] } else { &["gcc"] };
    for compiler in compilers {
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            let mut compile = place.tool(&["cc", level, "-g", "-pthread", "-o", "operations", "operations.c"]);
            compile.env("RASHOMON_CC", compiler);
            place.run(compile).expect(0, &[]);
            place.rashomon(&["detect", "--", "./operations"]).expect(0, &[]);
        }
    }
    place.rashomon(&["record", "--", "./operations"]).expect(0, &[]);
    place.rashomon(&["record", "--policy", "free", "--", "./operations"]).expect(0, &[]);
}
