//! Our own text, in the form of the reports of `rashomon check`.

use super::{names, thread_words};
use crate::format::Options;
use crate::frame::{base_name, clean, strip_prefix};
use crate::tsan::{thread_name, waits};
use crate::warning::{Access, Frame, Kind, Location, Place, Stack, Thread, Warning};
use rashomon_event::counted;
use std::fmt::Write as _;

struct Printer<'a> {
    text: String,
    warning: &'a Warning,
    options: &'a Options,
}

pub fn render(warning: &Warning, process: u64, options: &Options) -> String {
    let mut printer = Printer { text: String::new(), warning, options };
    printer.head(process);
    for (index, access) in warning.accesses.iter().enumerate() {
        printer.access(access, index == 0);
    }
    if warning.kind == Kind::Deadlock {
        printer.cycle()
    } else if matches!(warning.kind, Kind::Deadlocked | Kind::Stuck) {
        printer.waits()
    } else {
        printer.calls()
    }
    for location in &warning.locations {
        printer.location(location);
    }
    for thread in warning.threads.iter().filter(|thread| thread.number != 0) {
        printer.thread(thread);
    }
    if let Some(sleep) = &warning.sleep {
        printer.heading("as if ordered by sleeping at");
        printer.stack(sleep, 4);
    }
    if warning.kind == Kind::ThreadLeak && warning.count > 1 {
        let _ = writeln!(printer.text, "  = and {} more from the same place", warning.count - 1);
    }
    printer.text.push('\n');
    printer.text
}

/// What the accesses are about, in one phrase.
fn subject(warning: &Warning) -> Option<String> {
    let location = warning.locations.first()?;
    Some(match (location.place, &location.variable) {
        (Place::Static, Some(variable)) => clean(&variable.phrase()),
        (Place::Static, None) => return None,
        (Place::Heap, _) => {
            format!("{} of {}", clean(warning.object_type(location.tag).unwrap_or("heap block")), counted(location.size, "byte"))
        }
        (Place::Stack, _) => format!("stack of {}", thread_called(warning, location.thread)),
        (Place::Tls, _) => format!("thread-local storage of {}", thread_called(warning, location.thread)),
        (Place::Descriptor, _) => format!("file descriptor {}", location.descriptor),
    })
}

/// As a report of a recorded execution calls it, if that is known.
fn thread_called(warning: &Warning, number: u64) -> String {
    warning.path_of(number).map_or_else(|| thread_name(number), |path| thread_words(&path))
}

impl Printer<'_> {
    fn paint(&self, code: &str, text: &str) -> String {
        if self.options.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn heading(&mut self, text: &str) {
        let text = self.paint("1", text);
        let _ = writeln!(self.text, "  {text}");
    }

    fn head(&mut self, process: u64) {
        let title = self.paint("1;31", &clean(self.warning.title()));
        let process = self.paint("2", &format!("[process {process}]"));
        let subject = subject(self.warning).map_or(String::new(), |subject| format!(": {}", self.paint("1", &subject)));
        let _ = writeln!(self.text, "{title} {process}{subject}");
    }

    fn path(&self, file: &str) -> String {
        clean(&names::path(strip_prefix(file, &self.options.strip_path_prefix), &self.options.folder))
    }

    fn frame(&self, frame: &Frame) -> String {
        let place = match (&frame.file, frame.line, frame.column) {
            (Some(file), Some(line), Some(column)) => format!("{}:{line}:{column}", self.path(file)),
            (Some(file), Some(line), None) => format!("{}:{line}", self.path(file)),
            (Some(file), None, _) => self.path(file),
            (None, _, _) => match &frame.module {
                Some(module) => format!("({}+{:#x})", clean(base_name(module)), frame.offset),
                None => format!("({:#x})", frame.address),
            },
        };
        let inlined = if frame.inlined { " (inlined)" } else { "" };
        match &frame.function {
            Some(function) => format!("{} {place}{inlined}", clean(function)),
            None => format!("{place}{inlined}"),
        }
    }

    fn stack(&mut self, stack: &Stack, indent: usize) {
        if stack.frames.is_empty() {
            let _ = writeln!(self.text, "{:indent$}(not known)", "");
        }
        for (number, frame) in stack.frames.iter().enumerate() {
            let frame = self.frame(frame);
            let _ = writeln!(self.text, "{:indent$}#{number} {frame}", "");
        }
    }

    fn mutex(&self, index: usize) -> String {
        match self.warning.mutexes.get(index) {
            Some(mutex) => format!("mutex M{index} at {:#x}", mutex.address),
            None => format!("mutex M{index}"),
        }
    }

    fn access(&mut self, access: &Access, first: bool) {
        let atomic = if access.is_atomic() { "atomic " } else { "" };
        let what = match (access.is_free(), access.is_write()) {
            (true, _) => "release".to_owned(),
            (false, true) => format!("{atomic}write of {}", counted(access.size, "byte")),
            (false, false) => format!("{atomic}read of {}", counted(access.size, "byte")),
        };
        let earlier = if first { "" } else { "earlier " };
        self.heading(&format!("{}: {earlier}{what} at {:#x}", thread_called(self.warning, access.thread), access.address));
        self.stack(&access.stack, 4);
        for held in &access.held {
            let (mutex, shared) = (self.mutex(held.mutex), if held.write { "" } else { " (shared)" });
            match self.warning.mutexes.get(held.mutex) {
                Some(known) if !known.created.frames.is_empty() => {
                    let _ = writeln!(self.text, "    holding {mutex}{shared}, {}", known.origin());
                    self.stack(&known.created, 6);
                }
                _ => {
                    let _ = writeln!(self.text, "    holding {mutex}{shared}");
                }
            }
        }
    }

    /// The calls that a misuse consists of, and the locks that it is about.
    fn calls(&mut self) {
        let warning = self.warning;
        for (index, stack) in warning.stacks.iter().enumerate() {
            self.heading(if index == 0 { "at" } else { "and before that at" });
            self.stack(stack, 4);
        }
        if warning.accesses.is_empty() {
            self.mutexes();
        }
    }

    fn mutexes(&mut self) {
        let warning = self.warning;
        for (index, mutex) in warning.mutexes.iter().enumerate() {
            let destroyed = if mutex.destroyed { " (destroyed)" } else { "" };
            self.heading(&format!("{}{destroyed}, {}", self.mutex(index), mutex.origin()));
            self.stack(&mutex.created, 4);
        }
    }

    fn waits(&mut self) {
        let warning = self.warning;
        let told = waits(warning, |number| thread_called(warning, number), |index| self.mutex(index));
        for (words, stack) in told {
            self.heading(&words);
            self.stack(stack, 4);
        }
        self.mutexes();
    }

    fn cycle(&mut self) {
        let warning = self.warning;
        let count = warning.mutexes.len();
        let each = if self.options.second_deadlock_stack { 2 } else { 1 };
        let nothing = Stack::default();
        for index in 0..count {
            let thread = thread_called(warning, warning.unique_threads.get(index).copied().unwrap_or(0));
            let (next, own) = (self.mutex((index + 1) % count), self.mutex(index));
            self.heading(&format!("{thread}: takes {next} while holding {own}"));
            self.stack(warning.stacks.get(each * index).unwrap_or(&nothing), 4);
            if each == 2 {
                let _ = writeln!(self.text, "    holding {own}, taken at");
                self.stack(warning.stacks.get(2 * index + 1).unwrap_or(&nothing), 6);
            }
        }
    }

    fn location(&mut self, location: &Location) {
        let by = thread_called(self.warning, location.thread);
        match location.place {
            Place::Static => {
                if let Some(variable) = &location.variable
                    && let (Some(file), Some(line)) = (&variable.file, variable.line)
                {
                    let file = self.path(file);
                    self.heading(&format!("{} is declared at {file}:{line}", clean(&variable.name)));
                }
            }
            Place::Heap => {
                self.heading(&format!("the block at {:#x} was allocated by {by} at", location.start));
                self.stack(&location.stack, 4);
            }
            Place::Descriptor => {
                let made = if location.closed { "closed" } else { "created" };
                self.heading(&format!("the descriptor was {made} by {by} at"));
                self.stack(&location.stack, 4);
            }
            Place::Stack | Place::Tls => {}
        }
    }

    fn thread(&mut self, thread: &Thread) {
        let name = if thread.name.is_empty() { String::new() } else { format!(" '{}'", clean(&thread.name)) };
        let state = if thread.is_running() { "" } else { ", which has ended," };
        let (called, parent) = (thread_called(self.warning, thread.number), thread_called(self.warning, thread.parent));
        self.heading(&format!("{called}{name}{state} was created by {parent} at"));
        self.stack(&thread.created, 4);
    }
}
