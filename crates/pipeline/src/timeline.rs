//! Executions as timelines of a report: what orders threads, and the accesses of a finding.
//!
//! **Moments** are the synchronisation of all threads, atomic accesses too, and accesses at the places of the finding. Other
//! plain accesses are left out, and so are operations that order nothing.
//!
//! **The accesses of a finding** are told by thread and place, as the finding has them; no event numbers are kept with findings.
//! Of several executions of a place by its thread those are taken that are closest to the other side's.

use crate::findings::compose::Composer;
use crate::findings::describe::access_class;
use crate::findings::misuse::misuse_like;
use crate::findings::symbols::Symbols;
use crate::perfetto::flows::Latest;
use rashomon_event::{
    Access, Address, ContextId, Event, EventIndex, EventKind, Finding, FindingKind, Frame, Side, SiteId, Trace,
};
use rashomon_report::timeline::{Moment, Timeline};
use std::collections::HashMap;

/// Moments of a timeline of one finding at most, and of these behind the finding's accesses.
const AROUND: usize = 100;
const BEHIND: usize = 12;
/// Moments before the end that a timeline begins with at most, so that both accesses of a pair are in it.
const FARTHEST: usize = 400;
/// Moments of the timeline of a whole recording at most: the last ones.
pub const LONGEST: usize = 1_000_000;

/// A moment, before it is put in words.
#[derive(Clone, Copy)]
struct Found {
    index: EventIndex,
    /// The side of the finding that this is an access of.
    side: Option<usize>,
}

/// An execution that timelines are drawn of.
pub struct Drawing<'c, 'a, S: ?Sized> {
    composer: &'c Composer<'a, S>,
}

impl<'c, 'a, S: Symbols + ?Sized> Drawing<'c, 'a, S> {
    pub const fn of(composer: &'c Composer<'a, S>) -> Self {
        Self { composer }
    }

    /// The recording around the accesses of a finding. `None`: they are not in it.
    pub fn around(&self, finding: &Finding) -> Option<Timeline> {
        let all = self.moments(std::slice::from_ref(finding));
        if let Some(timeline) = self.to_misuse(finding, &all) {
            return Some(timeline);
        }
        let (_, last) = closest(&all)?;
        let to = all.len().min(last + 1 + BEHIND);
        let mut timeline = self.drawn(&all, to.saturating_sub(AROUND), to);
        if to == all.len() {
            self.stand(&mut timeline);
        }
        Some(timeline)
    }

    /// The execution that showed a finding, to where it shows it.
    pub fn to_its_end(&self, finding: &Finding) -> Timeline {
        let mut all = self.moments(std::slice::from_ref(finding));
        if let Some(timeline) = self.to_misuse(finding, &all) {
            return timeline;
        }
        let loaded = self.composer.loaded;
        // Where threads are blocked is told behind everything else.
        all.retain(|found| !matches!(loaded.trace.kind(found.index), EventKind::Blocked { .. }));
        // A failure is where the execution ends, and so is where threads stand.
        let is_end = finding.kind == FindingKind::Failure || !loaded.goals.is_empty() || !loaded.blocked.is_empty();
        let to = match closest(&all) {
            Some((_, last)) if !is_end => all.len().min(last + 1 + BEHIND),
            _ => all.len(),
        };
        let mut timeline = self.drawn(&all, to.saturating_sub(AROUND), to);
        self.stand(&mut timeline);
        timeline
    }

    /// A misuse that is no event of its own, behind what comes before it.
    fn to_misuse(&self, finding: &Finding, all: &[Found]) -> Option<Timeline> {
        let misuse = misuse_like(self.composer.loaded, finding)?;
        let to = all.partition_point(|found| found.index < misuse.at.before);
        if all.get(to).is_some_and(|found| found.index == misuse.at.before && found.side.is_some()) {
            return None;
        }
        let mut timeline = self.drawn(all, to.saturating_sub(AROUND), to);
        add_behind(&mut timeline, finding.sides.iter().take(1).cloned());
        Some(timeline)
    }

    /// The execution to these two accesses, which alone are shown.
    pub fn to_pair(&self, pair: [EventIndex; 2]) -> Timeline {
        let all = self.found(|index| pair.iter().position(|access| *access == index));
        let (first, last) = closest(&all).unwrap_or((0, all.len().saturating_sub(1)));
        let to = all.len().min(last + 1 + BEHIND);
        let from = to.saturating_sub(AROUND).min(first).max(to.saturating_sub(FARTHEST));
        self.drawn(&all, from, to)
    }

    /// The execution that ends with two threads before their accesses, which its trace does not tell.
    pub fn to_meeting(&self, sides: Vec<Side>) -> Timeline {
        let all = self.found(|_| None);
        let mut timeline = self.drawn(&all, all.len().saturating_sub(AROUND), all.len());
        add_behind(&mut timeline, sides.into_iter().map(before_its_access));
        timeline
    }

    /// All of the execution; of a longer one than [`LONGEST`] moments the end.
    pub fn whole(&self, findings: &[Finding]) -> Timeline {
        let all = self.moments(findings);
        self.drawn(&all, all.len().saturating_sub(LONGEST), all.len())
    }

    fn moments(&self, findings: &[Finding]) -> Vec<Found> {
        let trace = self.composer.trace();
        let mut sides: HashMap<(&str, u64), Vec<(&str, usize)>> = HashMap::new();
        for (number, side) in findings.iter().flat_map(|finding| finding.sides.iter().enumerate()) {
            if let Some(frame) = side.stack.first() {
                sides.entry((&frame.module, frame.offset)).or_default().push((&side.thread, number));
            }
        }
        let paths: Vec<String> = trace.threads.iter().map(|thread| thread.path.to_string()).collect();
        let mut at: HashMap<SiteId, Option<Frame>> = HashMap::new();
        let mut side_of = |index: EventIndex| {
            let event = trace.event(index);
            let first = || self.composer.describer.site(event.site).into_iter().next();
            let is_known = event.site.index() < trace.sites.len();
            let frame = at.entry(event.site).or_insert_with(|| if is_known { first() } else { None }).as_ref()?;
            let here = sides.get(&(frame.module.as_str(), frame.offset))?;
            here.iter().find(|(thread, _)| paths.get(event.thread.index()).is_some_and(|path| path == thread)).map(|it| it.1)
        };
        self.found(|index| if sides.is_empty() { None } else { side_of(index) })
    }

    /// What orders threads, and the accesses that are of a side.
    fn found(&self, mut side_of: impl FnMut(EventIndex) -> Option<usize>) -> Vec<Found> {
        let trace = self.composer.trace();
        let found = trace.indices().filter_map(|index| {
            let side = side_of(index);
            let is_shown = match trace.kind(index) {
                EventKind::Access(_) => side.is_some(),
                EventKind::Other(_) => false,
                _ => true,
            };
            is_shown.then_some(Found { index, side })
        });
        found.collect()
    }

    fn drawn(&self, all: &[Found], from: usize, to: usize) -> Timeline {
        let mut pen = Pen::new(self.composer);
        let shown = &all[from..to];
        let begin = shown.first().map_or(EventIndex(u32::MAX), |found| found.index);
        let mut next = shown.iter().peekable();
        for index in self.composer.trace().indices() {
            if index == begin {
                pen.begin();
            }
            let Some(found) = next.peek() else { break };
            let moment = (index == found.index).then_some(**found);
            pen.event(index, moment);
            if moment.is_some() {
                next.next();
            }
        }
        pen.finish(from, all.len() - to)
    }

    /// Where threads stand at the end of the execution: before accesses that did not happen, or blocked.
    fn stand(&self, timeline: &mut Timeline) {
        let goals = self.composer.goal_sides().unwrap_or_default().into_iter().map(before_its_access);
        add_behind(timeline, goals.chain(self.composer.blocked_sides()));
    }
}

fn before_its_access(side: Side) -> Side {
    Side { action: format!("stands before its {}", side.action), ..side }
}

/// What is no event, behind the last moment.
fn add_behind(timeline: &mut Timeline, sides: impl Iterator<Item = Side>) {
    for side in sides {
        let thread = number_of(&mut timeline.threads, &side.thread);
        timeline.held_before.resize(timeline.threads.len(), 0);
        let last = timeline.moments.iter().rev().find(|moment| moment.thread == thread);
        let holds = last.map(|moment| moment.holds);
        let holds = holds.unwrap_or_else(|| timeline.held_before[thread as usize]);
        let place = Frame::best_known(&side.stack).cloned().map(|frame| {
            timeline.places.push(frame);
            timeline.places.len() as u32 - 1
        });
        let does = number_of(&mut timeline.words, &side.action);
        timeline.moments.push(Moment { number: 0, thread, does, place, after: None, holds, is_of_finding: true });
    }
}

fn number_of(texts: &mut Vec<String>, text: &str) -> u32 {
    let at = texts.iter().position(|known| known == text).unwrap_or_else(|| {
        texts.push(text.to_owned());
        texts.len() - 1
    });
    at as u32
}

/// The accesses of two sides with the least between them, the last such; where only one side is there, its last access.
fn closest(all: &[Found]) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize)> = None;
    let mut before: Option<(usize, usize)> = None;
    for (at, side) in all.iter().enumerate().filter_map(|(at, found)| Some((at, found.side?))) {
        if let Some((earlier, _)) = before.filter(|(_, other)| *other != side)
            && best.is_none_or(|(first, last)| at - earlier <= last - first)
        {
            best = Some((earlier, at));
        }
        before = Some((at, side));
    }
    best.or(before.map(|(at, _)| (at, at)))
}

/// What two events of the same words share: the operation, its object and its size.
type Key = (std::mem::Discriminant<EventKind>, u64, u64);

/// Puts moments in words, and each word once.
struct Pen<'c, 'a, S: ?Sized> {
    composer: &'c Composer<'a, S>,
    trace: &'a Trace,
    latest: Latest,
    /// By thread of the trace, with how often each is held.
    held: Vec<Vec<Address>>,
    /// By thread of the trace, its number in the timeline.
    columns: Vec<Option<u32>>,
    timeline: Timeline,
    held_at_begin: Vec<u32>,
    words: HashMap<Key, u32>,
    places: HashMap<(SiteId, ContextId), Option<u32>>,
    sets: HashMap<Vec<Address>, u32>,
}

impl<'c, 'a, S: Symbols + ?Sized> Pen<'c, 'a, S> {
    fn new(composer: &'c Composer<'a, S>) -> Self {
        let trace = composer.trace();
        let threads = trace.threads.len();
        Self {
            composer,
            trace,
            latest: Latest::default(),
            held: vec![Vec::new(); threads],
            columns: vec![None; threads],
            timeline: Timeline { held: vec![Vec::new()], ..Timeline::default() },
            held_at_begin: vec![0; threads],
            words: HashMap::new(),
            places: HashMap::new(),
            sets: HashMap::from([(Vec::new(), 0)]),
        }
    }

    fn begin(&mut self) {
        self.held_at_begin = (0..self.held.len()).map(|thread| self.set_of(thread)).collect();
    }

    fn event(&mut self, index: EventIndex, moment: Option<Found>) {
        let event = self.trace.event(index);
        let thread = event.thread.index();
        match event.kind {
            EventKind::Acquire { lock, .. } | EventKind::WaitEnd { mutex: lock, .. } => self.held[thread].push(lock),
            EventKind::Release { lock, .. } | EventKind::WaitBegin { mutex: lock, .. } => {
                if let Some(at) = self.held[thread].iter().rposition(|held| *held == lock) {
                    self.held[thread].remove(at);
                }
            }
            _ => {}
        }
        if let Some(found) = moment {
            let others = self.latest.before(&event).into_iter().filter(|source| self.trace.event(*source).thread != event.thread);
            let after = others.max().map(|source| (source, self.trace.event(source).thread.index()));
            let after = after.map(|(source, thread)| (u64::from(source.0) + 1, self.column(thread)));
            let moment = Moment {
                number: u64::from(index.0) + 1,
                thread: self.column(thread),
                does: self.words(&event),
                place: self.place(&event),
                after,
                holds: self.set_of(thread),
                is_of_finding: found.side.is_some(),
            };
            self.timeline.moments.push(moment);
        }
        self.latest.remember(index, &event);
    }

    fn column(&mut self, thread: usize) -> u32 {
        let threads = &mut self.timeline.threads;
        *self.columns[thread].get_or_insert_with(|| {
            threads.push(self.trace.threads[thread].path.to_string());
            threads.len() as u32 - 1
        })
    }

    fn set_of(&mut self, thread: usize) -> u32 {
        if let Some(known) = self.sets.get(&self.held[thread]) {
            return *known;
        }
        let names = self.held[thread].iter().map(|lock| self.composer.describer.lock(*lock)).collect();
        self.timeline.held.push(names);
        let number = self.timeline.held.len() as u32 - 1;
        self.sets.insert(self.held[thread].clone(), number);
        number
    }

    fn words(&mut self, event: &Event) -> u32 {
        let (timeline, composer) = (&mut self.timeline, self.composer);
        *self.words.entry(key(event)).or_insert_with(|| {
            timeline.words.push(in_words(composer, event));
            timeline.words.len() as u32 - 1
        })
    }

    fn place(&mut self, event: &Event) -> Option<u32> {
        if event.site.index() >= self.trace.sites.len() {
            return None;
        }
        let (timeline, composer) = (&mut self.timeline, self.composer);
        *self.places.entry((event.site, event.context)).or_insert_with(|| {
            let stack = composer.describer.stack(event.site, event.context);
            // What the runtime says of itself has no place.
            let place = Frame::best_known(&stack).filter(|frame| frame.module != "??")?;
            timeline.places.push(place.clone());
            Some(timeline.places.len() as u32 - 1)
        })
    }

    /// The columns in the order of threads.
    fn finish(mut self, earlier: usize, later: usize) -> Timeline {
        let mut new = vec![0; self.timeline.threads.len()];
        let mut threads = Vec::new();
        for (thread, column) in self.columns.iter().enumerate() {
            if let Some(column) = column {
                new[*column as usize] = threads.len() as u32;
                threads.push(self.trace.threads[thread].path.to_string());
                self.timeline.held_before.push(self.held_at_begin[thread]);
            }
        }
        for moment in &mut self.timeline.moments {
            moment.thread = new[moment.thread as usize];
            moment.after = moment.after.map(|(number, thread)| (number, new[thread as usize]));
        }
        Timeline { threads, earlier: earlier as u64, later: later as u64, ..self.timeline }
    }
}

fn in_words<S: Symbols + ?Sized>(composer: &Composer<'_, S>, event: &Event) -> String {
    match event.kind {
        EventKind::Access(access) | EventKind::Atomic { access, .. } => {
            let touched = composer.describer.data(access.address, u64::from(access.size));
            format!("{} of {touched}", access_class(&access))
        }
        EventKind::Request { .. } => composer.describer.action(event).replacen("acquires", "waits for", 1),
        _ => composer.describer.action(event),
    }
}

fn key(event: &Event) -> Key {
    let of_access = |access: Access| (access.address.0, u64::from(access.size) << 8 | access.class as u64);
    let (object, detail) = match event.kind {
        EventKind::Access(access) | EventKind::Atomic { access, .. } => of_access(access),
        EventKind::Fork { child } | EventKind::Join { child, .. } => (u64::from(child.0), 0),
        EventKind::Acquire { lock, mode, .. } | EventKind::Request { lock, mode } => (lock.0, mode as u64),
        EventKind::Release { lock: object, .. }
        | EventKind::WaitBegin { condition: object, .. }
        | EventKind::WaitEnd { condition: object, .. }
        | EventKind::BarrierEnter { barrier: object, .. }
        | EventKind::BarrierExit { barrier: object, .. }
        | EventKind::Post { semaphore: object }
        | EventKind::Take { semaphore: object }
        | EventKind::OnceBegin { once: object }
        | EventKind::OnceDone { once: object }
        | EventKind::OnceSeen { once: object }
        | EventKind::ReleaseObject { object }
        | EventKind::AcquireObject { object }
        | EventKind::Blocked { on: object } => (object.0, 0),
        EventKind::Signal { condition, broadcast } => (condition.0, u64::from(broadcast)),
        EventKind::Fence { .. } | EventKind::Start | EventKind::End | EventKind::Other(_) => (0, 0),
    };
    (std::mem::discriminant(&event.kind), object, detail)
}
