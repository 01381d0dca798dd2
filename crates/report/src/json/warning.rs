//! A warning as one line: an object, `"format": "rashomon-warning"`, `"version": 1`.
//!
//! The fields are listed here and not derived from the model, so that the model may change without changing the format. A field
//! may be added without a new version; one that changes its meaning or goes away needs one. Addresses are texts, as they do not
//! fit into the numbers of every reader.

use crate::warning::{Access, Frame, Kind, Location, Place, Stack, Thread, Warning};
use rashomon_event::harmless::harmless_json;
use schemars::JsonSchema;
use serde::Serialize;

pub const FORMAT: &str = "rashomon-warning";
pub const VERSION: u32 = 1;

/// A warning of online detection.
#[derive(Serialize, JsonSchema)]
pub struct View<'a> {
    #[schemars(extend("const" = FORMAT))]
    format: &'static str,
    #[schemars(extend("const" = VERSION))]
    version: u32,
    kind: Kind,
    title: &'a str,
    process: u64,
    #[serde(skip_serializing_if = "is_zero")]
    signal: u64,
    /// Threads like the one shown.
    count: u64,
    accesses: Vec<AccessView<'a>>,
    stacks: Vec<Vec<FrameView<'a>>>,
    locations: Vec<LocationView<'a>>,
    mutexes: Vec<MutexView<'a>>,
    threads: Vec<ThreadView<'a>>,
    /// Threads of a cycle's edges.
    cycle: &'a [u64],
    slept: Option<Vec<FrameView<'a>>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Access")]
struct AccessView<'a> {
    thread: u64,
    write: bool,
    atomic: bool,
    free: bool,
    address: String,
    size: u64,
    object: Option<&'a str>,
    locks: Vec<LockView>,
    stack: Vec<FrameView<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Lock")]
struct LockView {
    mutex: usize,
    exclusive: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Frame")]
struct FrameView<'a> {
    function: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    column: Option<u32>,
    module: Option<&'a str>,
    offset: String,
    inlined: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Location")]
struct LocationView<'a> {
    kind: Place,
    address: String,
    start: String,
    size: u64,
    name: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    thread: Option<u64>,
    descriptor: Option<u64>,
    closed: bool,
    object: Option<&'a str>,
    stack: Vec<FrameView<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Mutex")]
struct MutexView<'a> {
    address: String,
    destroyed: bool,
    /// Otherwise `created` is its first use.
    initialised: bool,
    created: Vec<FrameView<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Thread")]
struct ThreadView<'a> {
    number: u64,
    path: Option<String>,
    id: u64,
    name: Option<&'a str>,
    running: bool,
    parent: Option<u64>,
    created: Vec<FrameView<'a>>,
}

fn hexadecimal(number: u64) -> String {
    format!("{number:#x}")
}

fn frame(frame: &Frame) -> FrameView<'_> {
    FrameView {
        function: frame.function.as_deref(),
        file: frame.file.as_deref(),
        line: frame.line,
        column: frame.column,
        module: frame.module.as_deref(),
        offset: hexadecimal(frame.offset),
        inlined: frame.inlined,
    }
}

fn frames(stack: &Stack) -> Vec<FrameView<'_>> {
    stack.frames.iter().map(frame).collect()
}

fn access<'a>(warning: &'a Warning, access: &'a Access) -> AccessView<'a> {
    AccessView {
        thread: access.thread,
        write: access.is_write(),
        atomic: access.is_atomic(),
        free: access.is_free(),
        address: hexadecimal(access.address),
        size: access.size,
        object: warning.object_type(access.tag),
        locks: access.held.iter().map(|held| LockView { mutex: held.mutex, exclusive: held.write }).collect(),
        stack: frames(&access.stack),
    }
}

fn location<'a>(warning: &'a Warning, location: &'a Location) -> LocationView<'a> {
    let variable = location.variable.as_ref();
    let (start, size) = variable.map_or((location.start, location.size), |variable| (variable.start, variable.size));
    LocationView {
        kind: location.place,
        address: hexadecimal(location.address),
        start: hexadecimal(start),
        size,
        name: variable.map(|variable| variable.name.as_str()),
        file: variable.and_then(|variable| variable.file.as_deref()),
        line: variable.and_then(|variable| variable.line),
        thread: (location.place != Place::Static).then_some(location.thread),
        descriptor: (location.place == Place::Descriptor).then_some(location.descriptor),
        closed: location.closed,
        object: warning.object_type(location.tag),
        stack: frames(&location.stack),
    }
}

fn thread<'a>(warning: &Warning, thread: &'a Thread) -> ThreadView<'a> {
    ThreadView {
        number: thread.number,
        path: warning.path_of(thread.number),
        id: thread.id,
        name: Some(thread.name.as_str()).filter(|name| !name.is_empty()),
        running: thread.is_running(),
        parent: (thread.number != 0).then_some(thread.parent),
        created: frames(&thread.created),
    }
}

pub fn render(warning: &Warning, process: u64) -> String {
    let mutexes = warning.mutexes.iter();
    let view = View {
        format: FORMAT,
        version: VERSION,
        kind: warning.kind,
        title: warning.title(),
        process,
        signal: warning.signal,
        count: warning.count,
        accesses: warning.accesses.iter().map(|one| access(warning, one)).collect(),
        stacks: warning.stacks.iter().map(frames).collect(),
        locations: warning.locations.iter().map(|one| location(warning, one)).collect(),
        mutexes: mutexes
            .map(|mutex| MutexView {
                address: hexadecimal(mutex.address),
                destroyed: mutex.destroyed,
                initialised: mutex.initialised,
                created: frames(&mutex.created),
            })
            .collect(),
        threads: warning.threads.iter().map(|told| thread(warning, told)).collect(),
        cycle: &warning.unique_threads,
        slept: warning.sleep.as_ref().map(frames),
    };
    // Plain data: serialising it cannot fail.
    let line = serde_json::to_string(&view).unwrap_or_default();
    if line.is_empty() { line } else { harmless_json(&line).into_owned() + "\n" }
}
