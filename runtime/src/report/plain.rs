//! Warnings without a reporter: ThreadSanitizer's text with modules and offsets in place of names. Nothing is suppressed.

use super::output::{self, texts};
use super::reporter::{bytes, hexadecimal, module_of};
use crate::system::sys::{self, Decimal};
use rashomon_abi::report::{HEAD_WORDS, Items, Reader, access, item, location, thread, warning};

/// Which items of a kind are printed when.
const ORDER: [u32; 6] = [item::STACK, item::ACCESS, item::SLEEP, item::LOCATION, item::MUTEX, item::THREAD];

pub fn name(kind: u64) -> &'static [u8] {
    match kind {
        warning::VPTR_RACE => b"data race on vptr (ctor/dtor vs virtual call)",
        warning::USE_AFTER_FREE => b"heap-use-after-free",
        warning::VPTR_USE_AFTER_FREE => b"heap-use-after-free (virtual call vs free)",
        warning::EXTERNAL_RACE => b"race on external object",
        warning::THREAD_LEAK => b"thread leak",
        warning::MUTEX_DESTROY_LOCKED => b"destroy of a locked mutex",
        warning::MUTEX_DOUBLE_LOCK => b"double lock of a mutex",
        warning::MUTEX_INVALID => b"use of an invalid mutex (e.g. uninitialized or destroyed)",
        warning::MUTEX_BAD_UNLOCK => b"unlock of an unlocked mutex (or by a wrong thread)",
        warning::MUTEX_BAD_READ_LOCK => b"read lock of a write locked mutex",
        warning::MUTEX_BAD_READ_UNLOCK => b"read unlock of a write locked mutex",
        warning::SIGNAL_UNSAFE => b"signal-unsafe call inside of a signal",
        warning::ERRNO_IN_SIGNAL => b"signal handler spoils errno",
        warning::DEADLOCK => b"lock-order-inversion (potential deadlock)",
        warning::DEADLOCKED => b"deadlock",
        warning::STUCK => b"every thread waits",
        warning::MUTEX_WRONG_CONTEXT => b"mutex held in the wrong context",
        _ => b"data race",
    }
}

pub fn print(message: &[u64]) {
    let Some(body) = message.get(HEAD_WORDS..) else { return };
    let of = |wanted: u32| Items::new(body).filter(move |&(code, _)| code == wanted).map(|(_, words)| words);
    let kind = of(item::HEAD).next().map_or(0, |mut head| head.word());
    // Cut where it is, the text of a program's image does not look like a report to whoever searches for one.
    texts(&[
        b"==================\nWARNING: ThreadSanitizer:",
        b" ",
        name(kind),
        b" (pid=",
        Decimal::new(u64::from(sys::process_id())).bytes(),
        b")\n",
    ]);
    for code in ORDER {
        for (index, words) in of(code).enumerate() {
            part(code, index, words);
        }
    }
    texts(&[b"SUMMARY: ThreadSanitizer: ", name(kind), b"\n==================\n"]);
}

fn part(code: u32, index: usize, mut words: Reader<'_>) {
    match code {
        item::STACK => {
            if index > 0 {
                output::text(b"  and:\n");
            }
            words.word();
        }
        item::ACCESS => {
            let (flags, address, size, by) = (words.word(), words.word(), words.word(), words.word());
            words.word();
            texts(&[b"  ", operation(flags, index > 0), b" of size ", Decimal::new(size).bytes(), b" at "]);
            number(address);
            texts(&[b" by "]);
            name_of_thread(by);
            let locks = words.words();
            for (place, &lock) in locks.iter().enumerate() {
                texts(&[if place == 0 { b" (mutexes: " } else { b", " }, if lock & 1 != 0 { b"write M" } else { b"read M" }]);
                output::text(Decimal::new(lock >> 1).bytes());
            }
            output::text(if locks.is_empty() { b":\n" } else { b"):\n" });
        }
        item::SLEEP => output::text(b"  As if synchronized via sleep:\n"),
        item::LOCATION => {
            if !place(&mut words) {
                return;
            }
        }
        item::MUTEX => {
            texts(&[b"  Mutex M", Decimal::new(index as u64).bytes(), b" ("]);
            number(words.word());
            words.word();
            output::text(b") created at:\n");
        }
        _ => {
            let (number, id, flags, parent) = (words.word(), words.word(), words.word(), words.word());
            if number == 0 {
                return;
            }
            texts(&[b"  Thread T", Decimal::new(number).bytes()]);
            match bytes(words.packed_text()) {
                b"" => {}
                name => texts(&[b" '", name, b"'"]),
            }
            texts(&[b" (tid=", Decimal::new(id).bytes(), b", "]);
            output::text(if flags & thread::RUNNING != 0 { b"running" } else { b"finished" });
            output::text(b") created by ");
            name_of_thread(parent);
            output::text(b" at:\n");
        }
    }
    stack_of(words);
}

/// False: no stack belongs to it.
fn place(words: &mut Reader<'_>) -> bool {
    let (kind, address, start, size) = (words.word(), words.word(), words.word(), words.word());
    let (by, descriptor, closed) = (words.word(), words.word(), words.word());
    words.word();
    match kind {
        location::HEAP => {
            texts(&[b"  Location is heap block of size ", Decimal::new(size).bytes(), b" at "]);
            number(start);
            output::text(b" allocated by ");
            name_of_thread(by);
            output::text(b":\n");
            return true;
        }
        location::DESCRIPTOR => {
            texts(&[b"  Location is file descriptor ", Decimal::new(descriptor).bytes()]);
            output::text(if closed & 1 != 0 { b" destroyed by " } else { b" created by " });
            name_of_thread(by);
            output::text(b" at:\n");
            return true;
        }
        location::STACK | location::TLS => {
            output::text(if kind == location::STACK { b"  Location is stack of " } else { b"  Location is TLS of " });
            name_of_thread(by);
            output::text(b".\n\n");
        }
        _ => {
            output::text(b"  Location is global '<null>' at ");
            number(address);
            output::text(b" ");
            module_and_offset(address);
            output::text(b"\n\n");
        }
    }
    false
}

fn operation(flags: u64, previous: bool) -> &'static [u8] {
    match (previous, flags & access::ATOMIC != 0, flags & access::WRITE != 0) {
        (false, false, true) => b"Write",
        (false, false, false) => b"Read",
        (false, true, true) => b"Atomic write",
        (false, true, false) => b"Atomic read",
        (true, false, true) => b"Previous write",
        (true, false, false) => b"Previous read",
        (true, true, true) => b"Previous atomic write",
        (true, true, false) => b"Previous atomic read",
    }
}

fn name_of_thread(number: u64) {
    match number {
        0 => output::text(b"main thread"),
        _ => texts(&[b"thread T", Decimal::new(number).bytes()]),
    }
}

fn number(value: u64) {
    output::text(hexadecimal(value, &mut [0; 18]));
}

fn module_and_offset(address: u64) {
    let mut path = [0_u8; 256];
    match module_of(address, &mut path) {
        Some((length, offset)) => texts(&[b"(", &path[..length], b"+", hexadecimal(offset, &mut [0; 18]), b")"]),
        None => texts(&[b"(", hexadecimal(address, &mut [0; 18]), b")"]),
    }
}

fn stack_of(mut words: Reader<'_>) {
    frames(words.stack());
}

/// A stack of its own.
pub fn stack(stack: &[u64]) {
    frames(stack.iter().copied());
}

fn frames(addresses: impl ExactSizeIterator<Item = u64>) {
    if addresses.len() == 0 {
        output::text(b"    [failed to restore the stack]\n\n");
        return;
    }
    for (index, address) in addresses.enumerate() {
        texts(&[b"    #", Decimal::new(index as u64).bytes(), b" <null> <null> "]);
        module_and_offset(address.saturating_sub(1));
        output::text(b"\n");
    }
    output::text(b"\n");
}
