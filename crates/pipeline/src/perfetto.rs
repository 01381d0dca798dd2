//! A recording as a Perfetto trace, for ui.perfetto.dev and the trace processor.
//!
//! **Time** is the number of the event: event n takes the microsecond from n on. A recording has no other time that would mean
//! anything, as its executions are serial and their clocks virtual.
//!
//! **Tracks.** One for each thread, with a slice from its start to its end, in it its synchronisation: each operation is a slice,
//! and from the request of a lock, the begin of a wait or the entrance of a barrier there is a slice `waits` up to where the
//! thread goes on. Below it are lanes for the locks that it holds; locks need not be released in the order of a stack, so each
//! takes the first lane that is free.
//!
//! **Flows** go from what releases to what acquires, where the trace says which of them belong together: creation and start, end
//! and join, the release of a lock and its next acquisition by another thread, a signal and the wait that it ended, the entrances
//! of a barrier and what leaves it, a write and the next atomic read of another thread, and the last release of an object before
//! an acquisition. Limit: which of several posts of a semaphore a thread takes is not recorded; the flow comes from the last.
//!
//! **Findings** are instants of category `finding` on the threads of their sides, at accesses of that thread at that place. Other
//! plain accesses are left out.

pub(crate) mod flows;
mod message;
mod tracks;

use crate::findings::describe::{Describer, access_words, place_words};
use crate::findings::symbols::Symbols;
use flows::Flows;
use message::{Kind, TrackEvent};
use rashomon_event::{Access, Address, AtomicOp, Event, EventIndex, EventKind, Finding, Frame, OtherOp, SiteId, ThreadId, Trace};
use rashomon_trace::LoadedTrace;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use tracks::{Lanes, thread_track};

/// Of time, in nanoseconds, an event takes: the rest of its microsecond is the gap to the next.
const TICK: u64 = 1_000;
const LENGTH: u64 = 800;

/// What was written, to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    pub threads: u64,
    pub slices: u64,
    pub flows: u64,
    /// Accesses of findings.
    pub accesses: u64,
}

/// Writes a recording, and in it where the findings are.
pub fn export<S: Symbols + ?Sized>(
    loaded: &LoadedTrace,
    findings: &[Finding],
    symbols: &S,
    out: &mut dyn Write,
) -> io::Result<Exported> {
    let describer = Describer::new(&loaded.trace, &loaded.sync_objects, symbols).with_frames(&loaded.frames).with_ends(loaded);
    let trace = &loaded.trace;
    let mut exporter = Exporter {
        trace,
        describer,
        out,
        lanes: Lanes::default(),
        waiting: vec![false; trace.threads.len()],
        alive: vec![false; trace.threads.len()],
        flows: Flows::of(trace),
        sides: sides(findings),
        places: HashMap::new(),
        names: HashMap::new(),
        done: Exported::default(),
    };
    exporter.tracks()?;
    for index in trace.indices() {
        exporter.event(index)?;
    }
    exporter.close()?;
    Ok(exporter.done)
}

/// Places of findings: of a thread, by module and offset, with what is said there.
type Sides<'a> = BTreeMap<(&'a str, &'a str, u64), Vec<(&'a Finding, &'a str)>>;

fn sides(findings: &[Finding]) -> Sides<'_> {
    let mut sides: Sides<'_> = BTreeMap::new();
    for finding in findings {
        for side in &finding.sides {
            if let Some(frame) = side.stack.first() {
                let place = (side.thread.as_str(), frame.module.as_str(), frame.offset);
                sides.entry(place).or_default().push((finding, side.action.as_str()));
            }
        }
    }
    sides
}

struct Exporter<'a, S: ?Sized> {
    trace: &'a Trace,
    describer: Describer<'a, S>,
    out: &'a mut dyn Write,
    lanes: Lanes,
    /// Whether the thread's track has an open slice of a wait.
    waiting: Vec<bool>,
    /// The same of its life.
    alive: Vec<bool>,
    flows: Flows,
    sides: Sides<'a>,
    /// The innermost frame of each site.
    places: HashMap<SiteId, Option<Frame>>,
    names: HashMap<Address, String>,
    done: Exported,
}

const fn time(index: EventIndex) -> u64 {
    index.0 as u64 * TICK
}

impl<S: Symbols + ?Sized> Exporter<'_, S> {
    fn tracks(&mut self) -> io::Result<()> {
        let program = self.trace.modules.first().map_or("program", |module| module.path.rsplit('/').next().unwrap_or_default());
        message::write_process(self.out, tracks::PROCESS, tracks::PID, program)?;
        for (number, thread) in (0..).zip(&self.trace.threads) {
            let name = thread.path.words();
            message::write_thread(self.out, thread_track(ThreadId(number)), tracks::PID, u64::from(number) + 1, &name)?;
            self.done.threads += 1;
        }
        Ok(())
    }

    fn event(&mut self, index: EventIndex) -> io::Result<()> {
        let event = self.trace.event(index);
        self.live(event.thread, time(index))?;
        match event.kind {
            EventKind::Access(access) => return self.access(index, &event, &access),
            EventKind::Atomic { access, .. } => self.access(index, &event, &access)?,
            _ => {}
        }
        if self.waiting[event.thread.index()] && !matches!(event.kind, EventKind::Request { .. }) {
            self.end(thread_track(event.thread), time(index))?;
            self.waiting[event.thread.index()] = false;
        }
        self.holds(index, &event)?;
        if let EventKind::Request { .. } | EventKind::Blocked { .. } | EventKind::Other(OtherOp::CallsUnseen) = event.kind {
            let name = self.describer.action(&event);
            let name = if matches!(event.kind, EventKind::Request { .. }) { format!("waits, {name}") } else { name };
            return self.wait(index, &event, &name);
        }
        self.operation(index, &event)?;
        if let EventKind::WaitBegin { .. } | EventKind::BarrierEnter { .. } = event.kind {
            let name = format!("waits, {}", self.describer.action(&event));
            self.wait_from(event.thread, time(index) + LENGTH, &name)?;
        }
        if event.kind == EventKind::End {
            self.end(thread_track(event.thread), time(index) + LENGTH)?;
            self.alive[event.thread.index()] = false;
        }
        Ok(())
    }

    /// The slice of the thread's life begins with its first event.
    fn live(&mut self, thread: ThreadId, time: u64) -> io::Result<()> {
        if !std::mem::replace(&mut self.alive[thread.index()], true) {
            let name = self.trace.thread(thread).path.words();
            self.done.slices += 1;
            TrackEvent::new(Kind::Begin, thread_track(thread), time).named("thread", &name).write(self.out)?;
        }
        Ok(())
    }

    /// A slice of one operation, with its flows.
    fn operation(&mut self, index: EventIndex, event: &Event) -> io::Result<()> {
        let name = match event.kind {
            EventKind::Atomic { access, op, .. } => format!("atomic {}", atomic_words(op, &access)),
            _ => self.describer.action(event),
        };
        let track = thread_track(event.thread);
        let mut begin = TrackEvent::new(Kind::Begin, track, time(index)).named("synchronisation", &name);
        for flow in self.flows.from(index) {
            begin = begin.begins_flow(*flow);
        }
        for flow in self.flows.to(index) {
            begin = begin.ends_flow(*flow);
            self.done.flows += 1;
        }
        self.placed(begin.with_number("event", u64::from(index.0)), event.site).write(self.out)?;
        self.done.slices += 1;
        self.end(track, time(index) + LENGTH)
    }

    fn wait(&mut self, index: EventIndex, event: &Event, name: &str) -> io::Result<()> {
        self.wait_from(event.thread, time(index), name)
    }

    fn wait_from(&mut self, thread: ThreadId, time: u64, name: &str) -> io::Result<()> {
        if !std::mem::replace(&mut self.waiting[thread.index()], true) {
            self.done.slices += 1;
            TrackEvent::new(Kind::Begin, thread_track(thread), time).named("wait", name).write(self.out)?;
        }
        Ok(())
    }

    fn end(&mut self, track: u64, time: u64) -> io::Result<()> {
        TrackEvent::new(Kind::End, track, time).write(self.out)
    }

    /// The event's place, where it is known.
    fn placed(&mut self, event: TrackEvent, site: SiteId) -> TrackEvent {
        match self.place(site) {
            Some(frame) => {
                let words = place_words(frame);
                event.with_text("place", &words)
            }
            None => event,
        }
    }

    fn place(&mut self, site: SiteId) -> Option<&Frame> {
        if site.index() >= self.trace.sites.len() {
            return None;
        }
        let describer = &self.describer;
        self.places.entry(site).or_insert_with(|| describer.site(site).into_iter().next()).as_ref()
    }

    /// Locks that the thread holds from here on, or no longer.
    fn holds(&mut self, index: EventIndex, event: &Event) -> io::Result<()> {
        match event.kind {
            EventKind::Acquire { lock, .. } | EventKind::WaitEnd { mutex: lock, .. } => {
                let (track, is_new) = self.lanes.take(event.thread, lock);
                if is_new {
                    message::write_lane(self.out, track, thread_track(event.thread), "locks held")?;
                }
                let describer = &self.describer;
                let name = self.names.entry(lock).or_insert_with(|| describer.lock(lock));
                self.done.slices += 1;
                TrackEvent::new(Kind::Begin, track, time(index)).named("lock", name).write(self.out)
            }
            EventKind::Release { lock, .. } | EventKind::WaitBegin { mutex: lock, .. } => {
                match self.lanes.give_back(event.thread, lock) {
                    Some(track) => self.end(track, time(index) + LENGTH),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// An access is shown where a finding has it.
    fn access(&mut self, index: EventIndex, event: &Event, access: &Access) -> io::Result<()> {
        if self.sides.is_empty() {
            return Ok(());
        }
        let thread = self.trace.thread(event.thread).path.to_string();
        let Some(frame) = self.place(event.site).cloned() else { return Ok(()) };
        let Some(found) = self.sides.get(&(thread.as_str(), frame.module.as_str(), frame.offset)).cloned() else {
            return Ok(());
        };
        for (finding, action) in found {
            let name = format!("{}: {action}", finding.id);
            let instant = TrackEvent::new(Kind::Instant, thread_track(event.thread), time(index)).named("finding", &name);
            let instant = instant
                .with_text("subject", &finding.subject)
                .with_text("verdict", finding.verdict.name())
                .with_text("access", &access_words(access))
                .with_text("place", &place_words(&frame))
                .with_number("event", u64::from(index.0));
            instant.write(self.out)?;
            self.done.accesses += 1;
        }
        Ok(())
    }

    /// What is open at the end of the recording ends there.
    fn close(&mut self) -> io::Result<()> {
        let at = self.trace.events.len() as u64 * TICK;
        for track in self.lanes.held() {
            self.end(track, at)?;
        }
        for number in 0..self.trace.threads.len() {
            let track = thread_track(ThreadId(number as u32));
            for _ in 0..usize::from(self.waiting[number]) + usize::from(self.alive[number]) {
                self.end(track, at)?;
            }
        }
        self.out.flush()
    }
}

fn atomic_words(op: AtomicOp, access: &Access) -> String {
    let name = match op {
        AtomicOp::Load => "load",
        AtomicOp::Store => "store",
        AtomicOp::Rmw => "read-modify-write",
        AtomicOp::CasFailed => "failed compare-exchange",
    };
    let bytes = if access.size == 1 { "byte" } else { "bytes" };
    format!("{name} of {} {bytes}", access.size)
}
