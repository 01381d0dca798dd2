//! Trace files: in any format, or recordings seen as packed events.

use super::super::Ui;
use super::loaded;
use crate::arguments::{FileFormat, Reading, ShapeOptions};
use crate::exit::Exit;
use crate::progress::Counter;
use crate::terminal::{output, print, say};
use anyhow::{Context as _, Result, bail};
use rashomon_pipeline::Recorded;
use rashomon_pipeline::trace::file::{
    CheckOptions, Checked, Event, Generator, Names, OpenOptions, Sink, Source, Space, TraceError, WriteOptions, copy, create,
    open,
};
use std::io::Write;
use std::path::Path;

/// Whether it is a trace file, and no recording.
pub fn is_file(path: &Path) -> bool {
    path == Path::new("-") || path.exists() && !path.is_dir()
}

/// A trace file, checked as it is read.
pub fn open_checked(trace: &Path, reading: &Reading) -> Result<Box<dyn Source + Send>, TraceError> {
    let (options, checks) = how_to_read(reading);
    Ok(Box::new(Checked::new(open(trace, &options)?, checks)))
}

/// What the options ask for.
pub fn how_to_read(reading: &Reading) -> (OpenOptions, CheckOptions) {
    let options = OpenOptions {
        format: reading.format.map(Into::into),
        bare_threads: reading.bare_threads,
        lenient: reading.lenient,
        ..OpenOptions::default()
    };
    (options, CheckOptions { lenient: reading.lenient, reentrant: reading.reentrant })
}

/// What is done with a source, once its kind is known.
fn with_source<T>(trace: &Path, reading: &Reading, act: impl FnOnce(&mut dyn Source) -> Result<T>) -> Result<T> {
    if is_file(trace) {
        return act(&mut open_checked(trace, reading)?);
    }
    let loaded = loaded(trace)?;
    if loaded.header.notes.filtered() {
        say!("recorded with a filter: of analyses only happens-before, lock sets and the hybrid say the same as without");
    }
    act(&mut Recorded::new(&loaded.trace)?)
}

/// Tells what was noticed on the way.
pub fn tell_notices(source: &dyn Source) {
    for notice in source.notices() {
        say!("{notice}");
    }
}

/// Everything from a source into a new file. What is not finished is no trace, and packed files say so when they are read.
fn write(ui: Ui, source: &mut dyn Source, output: &Path, to: FileFormat, options: WriteOptions) -> Result<Exit> {
    if to == FileFormat::Rapidbin && output == Path::new("-") {
        bail!("RapidBin's header is written last, so it needs a file: name one with -o");
    }
    let mut sink = create(output, to.into(), options, source)?;
    let mut counter = Counter::new(ui.quiet, "events", source.events());
    let result = copy(source, &mut sink, |events| counter.reached(events));
    counter.finish();
    tell_notices(source);
    match result {
        Ok(events) => {
            if !ui.quiet {
                let left_out = match sink.left_out() {
                    0 => String::new(),
                    count => format!(", {count} of them left out"),
                };
                say!("{events} events{left_out} → {}", output.display());
            }
            Ok(Exit::Success)
        }
        // A reader that went away has seen enough.
        Err(TraceError::Io { source, .. }) if source.kind() == std::io::ErrorKind::BrokenPipe => Ok(Exit::Success),
        Err(error) => Err(error.into()),
    }
}

pub fn export(ui: Ui, trace: &Path, reading: &Reading, output: &Path, to: FileFormat, options: WriteOptions) -> Result<Exit> {
    if trace == output && trace != Path::new("-") {
        bail!("{} cannot be read and written at the same time", trace.display());
    }
    with_source(trace, reading, |source| write(ui, source, output, to, options))
}

pub fn generate(ui: Ui, shape: &ShapeOptions, output: &Path, to: FileFormat) -> Result<Exit> {
    let mut source = Generator::new(shape.shape()).map_err(anyhow::Error::msg)?;
    write(ui, &mut source, output, to, WriteOptions::default())
}

/// Counts of everything.
struct Statistics {
    ops: [u64; rashomon_pipeline::trace::file::Op::COUNT as usize],
    /// By space, whether a number was used.
    used: [Vec<bool>; Space::COUNT],
    /// Locks held by each thread, and the most there were.
    held: Vec<u32>,
    deepest: u32,
}

impl Statistics {
    fn new() -> Self {
        Self { ops: [0; _], used: Default::default(), held: Vec::new(), deepest: 0 }
    }

    fn mark(&mut self, space: Space, number: u32) {
        let used = &mut self.used[space as usize];
        if used.len() <= number as usize {
            used.resize(number as usize + 1, false);
        }
        used[number as usize] = true;
    }

    fn count(&mut self, event: &Event) {
        use rashomon_pipeline::trace::file::Op;
        self.ops[event.op as usize] += 1;
        self.mark(Space::Thread, event.thread.into());
        if event.location != 0 {
            self.mark(Space::Location, event.location);
        }
        if let Some(space) = event.op.space() {
            self.mark(space, event.target);
        }
        let thread = event.thread as usize;
        if matches!(event.op, Op::Acquire | Op::AcquireShared | Op::Release | Op::ReleaseShared) && self.held.len() <= thread {
            self.held.resize(thread + 1, 0);
        }
        match event.op {
            Op::Acquire | Op::AcquireShared => {
                self.held[thread] += 1;
                self.deepest = self.deepest.max(self.held[thread]);
            }
            Op::Release | Op::ReleaseShared => self.held[thread] = self.held[thread].saturating_sub(1),
            _ => {}
        }
    }

    fn render(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, count: u64| text.push_str(&format!("{name:<16} {count:>14}\n"));
        line("events", self.ops.iter().sum());
        for space in Space::ALL {
            let count = self.used[space as usize].iter().filter(|used| **used).count() as u64;
            if count > 0 {
                line(&format!("{}s", space.noun()), count);
            }
        }
        line("locks held", self.deepest.into());
        for (number, count) in self.ops.iter().enumerate().filter(|(_, count)| **count > 0) {
            line(rashomon_pipeline::trace::file::Op::from_number(number as u8).expect("counted").name(), *count);
        }
        text
    }
}

/// Every block of a source.
fn each_block(ui: Ui, source: &mut dyn Source, mut act: impl FnMut(&[Event], &Names) -> Result<()>) -> Result<u64> {
    let mut counter = Counter::new(ui.quiet, "events", source.events());
    let (mut block, mut events) = (Vec::new(), 0);
    loop {
        source.next(&mut block)?;
        if block.is_empty() {
            counter.finish();
            tell_notices(source);
            return Ok(events);
        }
        act(&block, source.names())?;
        events += block.len() as u64;
        counter.reached(events);
    }
}

pub fn stat(ui: Ui, trace: &Path, reading: &Reading) -> Result<Exit> {
    let mut statistics = Statistics::new();
    with_source(trace, reading, |source| {
        each_block(ui, source, |block, _| {
            block.iter().for_each(|event| statistics.count(event));
            Ok(())
        })
    })?;
    print(&statistics.render())?;
    Ok(Exit::Success)
}

pub fn dump(trace: &Path, reading: &Reading) -> Result<Exit> {
    let mut out = output();
    let quiet = Ui { colour: crate::arguments::Colour::Never, quiet: true };
    let mut number = 0_u64;
    let written = with_source(trace, reading, |source| {
        each_block(quiet, source, |block, names| {
            for event in block {
                let thread = names.get(Space::Thread, event.thread.into());
                write!(out, "{number:>8} {thread} {}", event.op.name())?;
                if let Some(space) = event.op.space() {
                    write!(out, " {}", names.get(space, event.target))?;
                }
                if event.order != 0 {
                    write!(out, " order {}", event.order)?;
                }
                if event.location != 0 {
                    write!(out, " at {}", names.get(Space::Location, event.location))?;
                }
                writeln!(out)?;
                number += 1;
            }
            Ok(())
        })
    });
    let flushed = out.flush().context("cannot write to standard output");
    match written.map(|_| ()).and(flushed) {
        // A reader that went away has seen enough.
        Err(error)
            if error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) =>
        {
            Ok(Exit::Success)
        }
        result => result.map(|()| Exit::Success),
    }
}

pub fn verify(ui: Ui, trace: &Path, reading: &Reading) -> Result<Exit> {
    match with_source(trace, reading, |source| each_block(ui, source, |_, _| Ok(()))) {
        Ok(events) => {
            print(&format!("whole and well-formed: {events} events\n"))?;
            Ok(Exit::Success)
        }
        Err(error) => {
            say!("{error:#}");
            Ok(Exit::Different)
        }
    }
}
