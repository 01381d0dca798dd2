//! The message of a warning, in a buffer of its own. Locks and threads that come up several times are told once.

use super::EXTERNAL;
use super::sources::{self, DEEPEST};
use super::{Access, Descriptor, Lock, hooks, names, tags};
use crate::system::sys;
use crate::system::thread::NO_THREAD;
use core::sync::atomic::{AtomicPtr, Ordering::*};
use rashomon_abi::report::{Writer, item, kind, location, mutex, thread};

const BUFFER_WORDS: usize = 1 << 17;
/// Locks and threads of one warning.
const MOST: usize = 64;

static BUFFER: AtomicPtr<u64> = AtomicPtr::new(core::ptr::null_mut());

/// Room for one message, and for a stack. Under the lock of reports.
fn buffers() -> (&'static mut [u64], &'static mut [u64]) {
    let mut buffer = BUFFER.load(Acquire);
    if buffer.is_null() {
        buffer = sys::map_anonymous((BUFFER_WORDS + DEEPEST) * 8).cast();
        if buffer.is_null() {
            sys::die(&[b"out of memory for a report"]);
        }
        BUFFER.store(buffer, Release);
    }
    // SAFETY: a mapping of that size for good; the lock of reports makes us its only user.
    unsafe { core::slice::from_raw_parts_mut(buffer, BUFFER_WORDS + DEEPEST).split_at_mut(BUFFER_WORDS) }
}

pub struct Builder {
    writer: Writer<'static>,
    /// Addresses of the locks told, in order.
    locks: [u64; MOST],
    lock_count: usize,
    threads: [u32; MOST],
    thread_count: usize,
    /// Addresses in stacks that the program names.
    named: [u64; MOST],
    named_count: usize,
    /// Room for an interned stack.
    walked: &'static mut [u64],
}

impl Builder {
    pub fn new() -> Self {
        let (message, walked) = buffers();
        Self {
            writer: Writer::new(message, kind::WARNING),
            locks: [0; MOST],
            lock_count: 0,
            threads: [0; MOST],
            thread_count: 0,
            named: [0; MOST],
            named_count: 0,
            walked,
        }
    }

    /// The message; empty if it did not fit.
    pub fn finish(mut self) -> &'static [u64] {
        for &address in &self.named[..self.named_count] {
            hooks::symbolize_external(address, |frame| {
                self.writer.item(item::NAMED);
                self.writer.word(address);
                self.writer.text(frame.function);
                self.writer.text(frame.file);
                self.writer.word(frame.line);
                self.writer.word(frame.column);
            });
        }
        self.writer.finish().unwrap_or_default()
    }

    fn words(&mut self, words: &[u64]) {
        words.iter().for_each(|&word| self.writer.word(word));
    }

    fn addresses(&mut self, stack: &[u64]) {
        let stack = sources::trimmed(&stack[..stack.len().min(DEEPEST)]);
        stack.iter().for_each(|&address| self.note(address));
        self.writer.stack(stack);
    }

    fn note(&mut self, address: u64) {
        if address & EXTERNAL != 0 && self.named_count < MOST && !self.named[..self.named_count].contains(&address) {
            self.named[self.named_count] = address;
            self.named_count += 1;
        }
    }

    fn interned(&mut self, stack: u32) {
        let count = if stack == 0 { 0 } else { sources::walk(stack, self.walked).min(DEEPEST) };
        (0..count).for_each(|at| self.note(self.walked[at]));
        self.writer.stack(&self.walked[..count]);
    }

    pub fn head(&mut self, warning: u64, count: u32, signal: u32, tag: u32) {
        self.writer.item(item::HEAD);
        self.words(&[warning, u64::from(count), u64::from(signal), u64::from(tag)]);
        self.tag(tag);
    }

    /// What the program told of a kind of external objects.
    fn tag(&mut self, tag: u32) {
        if let Some((object, header)) = tags::get(tag) {
            self.writer.item(item::TAG);
            self.writer.word(u64::from(tag));
            self.writer.text(object);
            self.writer.text(header);
        }
    }

    pub fn access(&mut self, access: &Access<'_>) {
        // The locks first: the access names them by their places.
        let mut held = [0; MOST];
        let mut count = 0;
        for lock in access.locks {
            if let Some(index) = self.lock(lock)
                && count < MOST
            {
                held[count] = (index as u64) << 1 | u64::from(lock.write);
                count += 1;
            }
        }
        self.writer.item(item::ACCESS);
        self.words(&[access.flags, access.address, u64::from(access.size), u64::from(access.thread), u64::from(access.tag)]);
        self.writer.stack(&held[..count]);
        self.addresses(access.stack);
    }

    pub fn stack(&mut self, stack: &[u64]) {
        self.writer.item(item::STACK);
        self.writer.word(1);
        self.addresses(stack);
    }

    /// The same, of a thread that waits for one of the locks told.
    pub fn stack_of_wait(&mut self, stack: &[u64], lock: Option<usize>) {
        self.writer.item(item::STACK);
        self.writer.word(1 | lock.map_or(0, |index| (index as u64 + 1) << 8));
        self.addresses(stack);
    }

    /// Its place among the locks told.
    pub fn lock(&mut self, lock: &Lock) -> Option<usize> {
        if let Some(index) = self.locks[..self.lock_count].iter().position(|&known| known == lock.address) {
            return Some(index);
        }
        if self.lock_count == MOST {
            return None;
        }
        self.writer.item(item::MUTEX);
        let flags = if lock.destroyed { mutex::DESTROYED } else { 0 } | if lock.initialised { 0 } else { mutex::NOT_INITIALISED };
        self.words(&[lock.address, flags]);
        self.interned(lock.created);
        self.locks[self.lock_count] = lock.address;
        self.lock_count += 1;
        Some(self.lock_count - 1)
    }

    pub fn thread(&mut self, number: u32, suppressable: bool) {
        if self.thread_count == MOST || self.threads[..self.thread_count].contains(&number) {
            return;
        }
        let Some(known) = sources::thread(number) else { return };
        self.threads[self.thread_count] = number;
        self.thread_count += 1;
        let mut flags = if suppressable { thread::SUPPRESSABLE } else { 0 };
        if sources::is_running(known) {
            flags |= thread::RUNNING;
        }
        flags |= (u64::from(known.spawn_ordinal.get()) + 1) << thread::ORDINAL;
        self.writer.item(item::THREAD);
        self.words(&[u64::from(number), u64::from(known.kernel_id.get()), flags, u64::from(known.parent.get())]);
        let mut name = [0; names::LONGEST];
        let length = names::get(number, &mut name);
        self.writer.text(&name[..length]);
        self.interned(sources::creation_stack(known));
    }

    /// The creators of the threads told, up to the initial thread.
    pub fn ancestors(&mut self) {
        let mut at = 0;
        while at < self.thread_count {
            let parent = sources::thread(self.threads[at]).map(|thread| thread.parent.get());
            if let Some(parent) = parent.filter(|&parent| parent != NO_THREAD) {
                self.thread(parent, false);
            }
            at += 1;
        }
    }

    pub fn unique_thread(&mut self, number: u32) {
        self.writer.item(item::UNIQUE_THREAD);
        self.writer.word(u64::from(number));
    }

    /// Where the address lies.
    pub fn location(&mut self, address: u64) {
        if address == 0 {
            return;
        }
        if let Some(block) = sources::heap(address) {
            self.place([location::HEAP, address, block.start, block.size, u64::from(block.thread), 0, 0, u64::from(block.tag)]);
            self.interned(block.stack);
            self.tag(block.tag);
            self.thread(block.thread, false);
            return;
        }
        match sources::owner(address) {
            Some((thread, stack)) => {
                let kind = if stack { location::STACK } else { location::TLS };
                self.place([kind, address, 0, 0, u64::from(thread), 0, 0, 0]);
                self.thread(thread, false);
            }
            None => self.place([location::STATIC, address, 0, 0, 0, 0, 0, 0]),
        }
    }

    pub fn descriptor(&mut self, address: u64, descriptor: &Descriptor) {
        let (thread, number, closed) = (u64::from(descriptor.thread), u64::from(descriptor.number), u64::from(descriptor.closed));
        self.place([location::DESCRIPTOR, address, 0, 0, thread, number, closed, 0]);
        self.interned(descriptor.stack);
        self.thread(descriptor.thread, false);
    }

    fn place(&mut self, words: [u64; 8]) {
        self.writer.item(item::LOCATION);
        self.words(&words);
    }

    pub fn slept(&mut self, stack: u32) {
        self.writer.item(item::SLEEP);
        self.interned(stack);
    }
}
