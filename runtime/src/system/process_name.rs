//! What a process is called where nothing is recorded, but an order of synchronisation is for one of the processes that a program
//! makes.
//!
//! Processes are named as in recordings (`record/process_tree.rs`): each counts the calls by which it makes others, and a process
//! is the list of these numbers that lead to it. A forked child knows its own from its parent's; a program that is started, or
//! that takes the place of this one, finds it in the environment.
//!
//! Limit: programs that libc starts by itself (`system`, `popen`), and those below programs without instrumentation, are called
//! what their nearest instrumented ancestor is called.

use crate::system::{real, sys};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use rashomon_abi::ENFORCED_PROCESS_VARIABLE;

/// Bytes of the longest name.
const LONGEST: usize = 512;

/// Numbers with dots between them; empty: the process that the host started.
pub struct Name {
    text: [u8; LONGEST],
    length: usize,
}

impl Name {
    pub fn bytes(&self) -> &[u8] {
        &self.text[..self.length]
    }

    fn push(&mut self, bytes: &[u8]) {
        // A longer name is that of no recorded process, cut or not.
        let taken = bytes.len().min(LONGEST - self.length);
        self.text[self.length..self.length + taken].copy_from_slice(&bytes[..taken]);
        self.length += taken;
    }

    fn descend(&mut self, place: u64) {
        if self.length > 0 {
            self.push(b".");
        }
        self.push(sys::Decimal::new(place).bytes());
    }
}

static mut OWN: Name = Name { text: [0; LONGEST], length: 0 };
/// Processes that this one made.
static PLACES: AtomicU64 = AtomicU64::new(0);
static COUNTED: AtomicBool = AtomicBool::new(false);

/// The name of this process.
pub fn own() -> &'static [u8] {
    let own = &raw const OWN;
    // SAFETY: written at the start, and in a child that has one thread.
    unsafe { (*own).bytes() }
}

/// At the start of a program: from here on processes are counted.
pub fn begin() {
    if let Some(named) = real::environment(ENFORCED_PROCESS_VARIABLE.as_bytes()) {
        let own = &raw mut OWN;
        // SAFETY: at the start, on the only thread.
        unsafe { (*own).push(named) };
    }
    COUNTED.store(true, Relaxed);
}

/// Whether processes are counted.
pub fn counted() -> bool {
    COUNTED.load(Relaxed)
}

/// In a forked child, which is the one of that number.
///
/// # Safety
/// In a child that has one thread.
pub unsafe fn forked(place: u64) {
    let own = &raw mut OWN;
    // SAFETY: by the contract.
    unsafe { (*own).descend(place) };
    PLACES.store(0, Relaxed);
}

/// The number of the process that is about to be made.
pub fn next() -> u64 {
    PLACES.fetch_add(1, Relaxed)
}

/// The name of the process of that number.
pub fn of(place: u64) -> Name {
    let own = &raw const OWN;
    // SAFETY: as in `own`.
    let mut name = unsafe { Name { text: (*own).text, length: (*own).length } };
    name.descend(place);
    name
}
