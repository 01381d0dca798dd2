//! ThreadSanitizer's text, as clang 19 prints it: for scripts, CTest and CodeChecker, and for eyes that are used to it.

mod findings;

use crate::format::{Format, Options, Rendered, Report};
use crate::frame::{self, base_name, clean, pointer};
use crate::warning::{Access, Frame, Kind, Location, Mutex, Place, Stack, Thread, Warning};
use std::fmt::Write as _;

const RULE: &str = "==================\n";

/// ThreadSanitizer's text.
#[derive(Clone, Copy, Debug)]
pub struct Tsan;

impl Format for Tsan {
    fn name(&self) -> &'static str {
        "tsan"
    }

    fn about(&self) -> &'static str {
        "As ThreadSanitizer prints, for scripts, CTest and CodeChecker"
    }

    fn report(&self, report: Report<'_>, options: &Options) -> String {
        findings::render(report, options)
    }

    fn warning(&self, warning: &Warning, process: u64, options: &Options) -> Rendered {
        render(warning, process, options)
    }
}

/// Colours by meaning.
mod colour {
    pub const WARNING: &str = "\x1b[1m\x1b[31m";
    pub const ACCESS: &str = "\x1b[1m\x1b[34m";
    pub const THREAD: &str = "\x1b[1m\x1b[36m";
    pub const LOCATION: &str = "\x1b[1m\x1b[32m";
    pub const SLEEP: &str = "\x1b[1m\x1b[33m";
    pub const MUTEX: &str = "\x1b[1m\x1b[35m";
    pub const PLAIN: &str = "\x1b[1m\x1b[0m";
}

struct Printer<'a> {
    text: String,
    warning: &'a Warning,
    options: &'a Options,
}

fn render(warning: &Warning, process: u64, options: &Options) -> Rendered {
    let mut printer = Printer { text: RULE.to_owned(), warning, options };
    printer.body(process);
    let summary = options.print_summary.then(|| summary(warning, options)).flatten();
    Rendered { text: printer.text, summary, tail: RULE.to_owned() }
}

fn summary(warning: &Warning, options: &Options) -> Option<String> {
    let stack = warning.main_stack()?;
    let mut frames = stack.frames.iter().filter(|frame| !is_of_library(frame));
    // Functions of the runtime, which say less than who called them, have no source.
    let first = frames.clone().next();
    let frame = frames.find(|frame| frame.file.is_some()).or(first)?;
    Some(format!("SUMMARY: ThreadSanitizer: {} {}", clean(warning.title()), frame::render("%L %F", 0, frame, options)))
}

/// Frames that say less than those they were called from.
fn is_of_library(frame: &Frame) -> bool {
    frame
        .file
        .as_deref()
        .is_some_and(|file| ["/compiler-rt/lib/", "/include/c++/", "/include/g++"].iter().any(|part| file.contains(part)))
        || frame.module.as_deref().is_some_and(|module| module.contains("clang_rt."))
}

pub fn thread_name(number: u64) -> String {
    if number == 0 { "main thread".to_owned() } else { format!("thread T{number}") }
}

/// What each thread of a deadlock waits for, in order.
pub fn waits(warning: &Warning, called: impl Fn(u64) -> String, mutex: impl Fn(usize) -> String) -> Vec<(String, &Stack)> {
    let threads = &warning.unique_threads;
    let wait = |(index, (&thread, stack)): (usize, (&u64, &'_ Stack))| {
        let (own, next) = (called(thread), called(threads[(index + 1) % threads.len()]));
        match (warning.kind, stack.awaits) {
            (Kind::Stuck, Some(lock)) => format!("{own} waits for {}", mutex(lock)),
            (Kind::Stuck, None) => format!("{own} waits"),
            (_, Some(lock)) => format!("{own} waits for {}, held by {next}", mutex(lock)),
            (_, None) => format!("{own} waits for {next} to end"),
        }
    };
    threads
        .iter()
        .zip(&warning.stacks)
        .enumerate()
        .map(|(index, (thread, stack))| (wait((index, (thread, stack))), stack))
        .collect()
}

impl Printer<'_> {
    fn paint(&self, colour: &'static str) -> &'static str {
        if self.options.colour { colour } else { "" }
    }

    fn line(&mut self, colour: &'static str, line: &str) {
        let (colour, plain) = (self.paint(colour), self.paint(colour::PLAIN));
        let _ = writeln!(self.text, "{colour}{line}{plain}");
    }

    /// Line ends stand before the colour's end.
    fn headed(&mut self, colour: &'static str, line: &str) {
        let (colour, plain) = (self.paint(colour), self.paint(colour::PLAIN));
        let _ = write!(self.text, "{colour}{line}\n{plain}");
    }

    fn stack(&mut self, stack: &Stack) {
        if stack.frames.is_empty() {
            self.text.push_str("    [failed to restore the stack]\n\n");
            return;
        }
        for (number, frame) in stack.frames.iter().enumerate() {
            self.text.push_str(&frame::render(&self.options.stack_trace_format, number, frame, self.options));
            self.text.push('\n');
        }
        self.text.push('\n');
    }

    fn body(&mut self, process: u64) {
        let warning = self.warning;
        self.headed(colour::WARNING, &format!("WARNING: ThreadSanitizer: {} (pid={process})", clean(warning.title())));
        if warning.kind == Kind::ErrnoInSignal {
            let _ = writeln!(self.text, "  Signal {} handler invoked at:", warning.signal);
        }
        if warning.kind == Kind::Deadlock {
            self.cycle();
        } else if matches!(warning.kind, Kind::Deadlocked | Kind::Stuck) {
            let mutex = |index: usize| match warning.mutexes.get(index) {
                Some(mutex) => format!("mutex M{index} ({})", pointer(mutex.address)),
                None => format!("mutex M{index}"),
            };
            for (words, stack) in waits(warning, thread_name, mutex) {
                self.headed(colour::THREAD, &format!("  {}{}:", words[..1].to_uppercase(), &words[1..]));
                self.stack(stack);
            }
        } else {
            for (index, stack) in warning.stacks.iter().enumerate() {
                if index > 0 {
                    self.text.push_str("  and:\n");
                }
                self.stack(stack);
            }
        }
        for (index, access) in warning.accesses.iter().enumerate() {
            self.access(access, index == 0);
        }
        if let Some(sleep) = &warning.sleep {
            self.headed(colour::SLEEP, "  As if synchronized via sleep:");
            self.stack(sleep);
        }
        for location in &warning.locations {
            self.location(location);
        }
        if warning.kind != Kind::Deadlock {
            for (index, mutex) in warning.mutexes.iter().enumerate() {
                self.headed(colour::MUTEX, &format!("  Mutex M{index} ({}) created at:", pointer(mutex.address)));
                self.stack(&mutex.created);
            }
        }
        for thread in &warning.threads {
            self.thread(thread);
        }
        if warning.kind == Kind::ThreadLeak && warning.count > 1 {
            let _ = writeln!(self.text, "  And {} more similar thread leaks.\n", warning.count - 1);
        }
    }

    fn mutex(&self, index: usize) -> String {
        format!("{}M{index}{}", self.paint(colour::MUTEX), self.paint(colour::PLAIN))
    }

    fn cycle(&mut self) {
        let warning = self.warning;
        let count = warning.mutexes.len();
        if count == 0 {
            return;
        }
        self.text.push_str("  Cycle in lock order graph: ");
        for (index, Mutex { address, .. }) in warning.mutexes.iter().enumerate() {
            let (colour, plain) = (self.paint(colour::MUTEX), self.paint(colour::PLAIN));
            let _ = write!(self.text, "{colour}M{index} ({}){plain} => ", pointer(*address));
        }
        let _ = write!(self.text, "{}\n\n", self.mutex(0));
        let each = if self.options.second_deadlock_stack { 2 } else { 1 };
        let nothing = Stack::default();
        for index in 0..count {
            let thread = thread_name(warning.unique_threads.get(index).copied().unwrap_or(0));
            let (next, own) = (self.mutex((index + 1) % count), self.mutex(index));
            let _ = write!(self.text, "  Mutex {next} acquired here while holding mutex {own} in ");
            self.headed(colour::THREAD, &format!("{thread}:"));
            self.stack(warning.stacks.get(each * index).unwrap_or(&nothing));
            if each == 2 {
                let _ = writeln!(self.text, "  Mutex {own} previously acquired by the same thread here:");
                self.stack(warning.stacks.get(2 * index + 1).unwrap_or(&nothing));
            } else if index == 0 {
                self.text
                    .push_str("    Hint: use TSAN_OPTIONS=second_deadlock_stack=1 to get more informative warning message\n\n");
            }
        }
    }

    fn access(&mut self, access: &Access, first: bool) {
        let by = thread_name(access.thread);
        let address = pointer(access.address);
        let mut line = if access.tag == 0 {
            format!("  {} of size {} at {address} by {by}", operation(access, first), access.size)
        } else {
            let object = self.warning.object_type(access.tag).unwrap_or("external object");
            let what = match (first, access.is_write()) {
                (true, true) => "Modifying",
                (true, false) => "Read-only",
                (false, true) => "Previous modifying",
                (false, false) => "Previous read-only",
            };
            format!("  {what} access of {} at {address} by {by}", clean(object))
        };
        for (index, held) in access.held.iter().enumerate() {
            line.push_str(if index == 0 { " (mutexes: " } else { ", " });
            let _ = write!(line, "{} M{}", if held.write { "write" } else { "read" }, held.mutex);
        }
        if !access.held.is_empty() {
            line.push(')');
        }
        line.push(':');
        self.headed(colour::ACCESS, &line);
        self.stack(&access.stack);
    }

    fn location(&mut self, location: &Location) {
        let by = thread_name(location.thread);
        match location.place {
            Place::Static => {
                let Some(variable) = &location.variable else { return };
                let size = if variable.size > 0 { format!(" of size {}", variable.size) } else { String::new() };
                let (name, start, module) = (clean(&variable.name), pointer(variable.start), clean(base_name(&variable.module)));
                self.line(
                    colour::LOCATION,
                    &format!("  Location is global '{name}'{size} at {start} ({module}+{:#x})\n", variable.offset),
                );
            }
            Place::Heap => {
                let what = self.warning.object_type(location.tag).unwrap_or("heap block");
                let (what, start) = (clean(what), pointer(location.start));
                self.headed(
                    colour::LOCATION,
                    &format!("  Location is {what} of size {} at {start} allocated by {by}:", location.size),
                );
                self.stack(&location.stack);
            }
            Place::Stack => self.line(colour::LOCATION, &format!("  Location is stack of {by}.\n")),
            Place::Tls => self.line(colour::LOCATION, &format!("  Location is TLS of {by}.\n")),
            Place::Descriptor => {
                let made = if location.closed { "destroyed" } else { "created" };
                self.headed(
                    colour::LOCATION,
                    &format!("  Location is file descriptor {} {made} by {by} at:", location.descriptor),
                );
                self.stack(&location.stack);
            }
        }
    }

    fn thread(&mut self, thread: &Thread) {
        // There is nothing to say of the main thread.
        if thread.number == 0 {
            return;
        }
        let name = if thread.name.is_empty() { String::new() } else { format!(" '{}'", clean(&thread.name)) };
        let state = if thread.is_running() { "running" } else { "finished" };
        let known = format!("  Thread T{}{name} (tid={}, {state})", thread.number, thread.id);
        if thread.is_worker() {
            self.headed(colour::THREAD, &format!("{known} is a GCD worker thread\n"));
            return;
        }
        let at = if thread.created.frames.is_empty() { "" } else { " at:" };
        self.headed(colour::THREAD, &format!("{known} created by {}{at}", thread_name(thread.parent)));
        self.stack(&thread.created);
    }
}

pub const fn operation(access: &Access, first: bool) -> &'static str {
    match (first, access.is_atomic(), access.is_write()) {
        (true, false, true) => "Write",
        (true, false, false) => "Read",
        (true, true, true) => "Atomic write",
        (true, true, false) => "Atomic read",
        (false, false, true) => "Previous write",
        (false, false, false) => "Previous read",
        (false, true, true) => "Previous atomic write",
        (false, true, false) => "Previous atomic read",
    }
}
