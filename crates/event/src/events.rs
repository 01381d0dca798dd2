//! The events of a trace, packed: about eight bytes each where most of them are plain accesses, 48 as [`Event`]s.
//!
//! An event is a *row*: the number of a *shape* and the low half of an address. A shape is all else that an event says of itself,
//! its site, its operation and the high half of the address, and is kept once, as the same code does the same again and again.
//! Its thread, context and ordinal are those of its *stretch*, consecutive events that share all three. What has no such form, or
//! comes in too many shapes, is kept whole.
//!
//! Cost: [`Events::at`] looks a stretch up in a directory, at most [`DIRECTORY_STEP`] steps; iteration does not.

use crate::event::{Access, Event, EventKind};
use crate::event_set::EventSet;
use crate::ids::{Address, ContextId, EventIndex, SiteId, ThreadId};
use crate::program_order::ProgramOrder;
use rustc_hash::FxHashMap;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

/// Events from one entry of the directory to the next.
pub const DIRECTORY_STEP: usize = 16;
/// In the place of a shape: the event is kept whole.
const WHOLE: u32 = u32::MAX;
/// So many shapes are always allowed; beyond them one for every [`EVENTS_A_SHAPE`] events.
const SHAPES: usize = 1 << 12;
const EVENTS_A_SHAPE: usize = 16;
/// Slots of the table of shapes that came last.
const RECENT: usize = 1 << 10;
const LOW: u64 = u32::MAX as u64;

/// What many events have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Shape {
    site: SiteId,
    /// Without the low half of its address, and without an atomic's value.
    kind: EventKind,
}

#[derive(Clone, Copy)]
struct Row {
    /// Or [`WHOLE`].
    shape: u32,
    /// The low half of an address; of an atomic, or of what is kept whole, where that lies.
    low: u32,
}

/// Consecutive events of one thread, context and ordinal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    first: u32,
    thread: ThreadId,
    context: ContextId,
    ordinal: u32,
}

/// What an atomic adds to its shape: four bytes of its address and eight of its value.
type Atomic = [u32; 3];

/// The shape that the last of some accesses had, which differ in their addresses alone.
#[derive(Clone, Copy, Debug)]
pub struct Like {
    /// Or [`WHOLE`]: there was none.
    shape: u32,
    /// Of the address.
    high: u64,
}

impl Default for Like {
    fn default() -> Self {
        Self { shape: WHOLE, high: 0 }
    }
}

/// A sequence of events.
#[derive(Clone, Default)]
pub struct Events {
    rows: Vec<Row>,
    shapes: Vec<Shape>,
    numbers: FxHashMap<Shape, u32>,
    /// Numbers of shapes by a hash of site and operation; a wrong one is recognised.
    recent: Vec<u32>,
    atomics: Vec<Atomic>,
    whole: Vec<Shape>,
    stretches: Vec<Stretch>,
    /// The stretch of every [`DIRECTORY_STEP`]th event.
    directory: Vec<u32>,
    /// The events that are no plain accesses, and maybe some that have become one.
    others: EventSet,
    /// Once somebody has asked for it.
    order: OnceLock<ProgramOrder>,
}

/// The address of an event that has one, and may have another that is not this one.
const fn address_of(kind: &mut EventKind) -> Option<&mut Address> {
    match kind {
        EventKind::Access(access) | EventKind::Atomic { access, .. } => Some(&mut access.address),
        EventKind::Acquire { lock, .. } | EventKind::Release { lock, .. } | EventKind::Request { lock, .. } => Some(lock),
        EventKind::WaitBegin { condition, .. } | EventKind::Signal { condition, .. } => Some(condition),
        EventKind::Post { semaphore } | EventKind::Take { semaphore } => Some(semaphore),
        EventKind::OnceBegin { once } | EventKind::OnceDone { once } | EventKind::OnceSeen { once } => Some(once),
        EventKind::ReleaseObject { object } | EventKind::AcquireObject { object } => Some(object),
        EventKind::Blocked { on } => Some(on),
        EventKind::Fence { .. }
        | EventKind::Start
        | EventKind::End
        | EventKind::Fork { .. }
        | EventKind::Join { .. }
        | EventKind::WaitEnd { .. }
        | EventKind::BarrierEnter { .. }
        | EventKind::BarrierExit { .. }
        | EventKind::Other(_) => None,
    }
}

/// Whether the numbers in it differ from one event to the next.
const fn is_kept_whole(kind: &EventKind) -> bool {
    matches!(kind, EventKind::WaitEnd { .. } | EventKind::BarrierEnter { .. } | EventKind::BarrierExit { .. })
}

impl Events {
    pub fn new() -> Self {
        Self::default()
    }

    pub const fn len(&self) -> usize {
        self.rows.len()
    }

    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// # Panics
    /// If there are 2^32 − 1 events already: they are numbered with 32 bits.
    #[inline]
    pub fn push(&mut self, event: Event) {
        let Event { thread, site, context, ordinal, kind } = event;
        let place = self.begin(thread, context, ordinal);
        self.note(place, &kind);
        let row = self.row(site, kind);
        self.rows.push(row);
    }

    /// As [`Self::push`], of a plain access. All that come with one `like` are of the same site, size and class.
    ///
    /// # Panics
    /// As [`Self::push`].
    #[inline]
    pub fn push_like(&mut self, like: &mut Like, of: (ThreadId, ContextId, u32), site: SiteId, access: Access) {
        self.begin(of.0, of.1, of.2);
        let high = access.address.0 & !LOW;
        if like.shape == WHOLE || like.high != high {
            let row = self.row(site, EventKind::Access(access));
            *like = Like { shape: row.shape, high };
            self.rows.push(row);
            return;
        }
        debug_assert_eq!(self.shapes[like.shape as usize].site, site, "the same site, size and class");
        self.rows.push(Row { shape: like.shape, low: (access.address.0 & LOW) as u32 });
    }

    /// The stretch of the next event, and its place.
    #[inline]
    fn begin(&mut self, thread: ThreadId, context: ContextId, ordinal: u32) -> usize {
        let place = self.rows.len();
        assert!(place < u32::MAX as usize, "events are numbered with 32 bits");
        match self.stretches.last() {
            Some(last) if (last.thread, last.context, last.ordinal) == (thread, context, ordinal) => {}
            _ => self.stretches.push(Stretch { first: place as u32, thread, context, ordinal }),
        }
        if place.is_multiple_of(DIRECTORY_STEP) {
            self.directory.push(self.stretches.len() as u32 - 1);
        }
        self.order.take();
        place
    }

    #[inline]
    fn note(&mut self, place: usize, kind: &EventKind) {
        if !matches!(kind, EventKind::Access(_)) {
            self.others.insert(EventIndex(place as u32));
        }
    }

    #[inline]
    fn row(&mut self, site: SiteId, kind: EventKind) -> Row {
        if is_kept_whole(&kind) {
            return self.whole(site, kind);
        }
        let (mut form, mut low, mut atomic) = (kind, 0, None);
        if let Some(address) = address_of(&mut form) {
            low = (address.0 & LOW) as u32;
            address.0 &= !LOW;
        }
        if let EventKind::Atomic { value, .. } = &mut form {
            atomic = Some([low, (*value & LOW) as u32, (*value >> 32) as u32]);
            *value = 0;
        }
        let Some(shape) = self.number(Shape { site, kind: form }) else { return self.whole(site, kind) };
        if let Some(atomic) = atomic {
            low = self.atomics.len() as u32;
            self.atomics.push(atomic);
        }
        Row { shape, low }
    }

    #[cold]
    fn whole(&mut self, site: SiteId, kind: EventKind) -> Row {
        self.whole.push(Shape { site, kind });
        Row { shape: WHOLE, low: self.whole.len() as u32 - 1 }
    }

    /// `None`: it is new, and there are too many.
    #[inline]
    fn number(&mut self, shape: Shape) -> Option<u32> {
        let of_kind = match &shape.kind {
            EventKind::Access(Access { size, class, .. }) => *size << 2 | *class as u32,
            _ => 1 << 8,
        };
        let slot = (shape.site.0 ^ of_kind << 6) as usize % RECENT;
        if let Some(&number) = self.recent.get(slot)
            && self.shapes.get(number as usize) == Some(&shape)
        {
            return Some(number);
        }
        self.number_slowly(shape, slot)
    }

    #[inline(never)]
    fn number_slowly(&mut self, shape: Shape, slot: usize) -> Option<u32> {
        let next = self.shapes.len();
        let number = match self.numbers.get(&shape) {
            Some(&number) => number,
            None if next >= SHAPES + self.rows.len() / EVENTS_A_SHAPE => return None,
            None => {
                self.numbers.insert(shape, next as u32);
                self.shapes.push(shape);
                next as u32
            }
        };
        self.recent.resize(RECENT, WHOLE);
        self.recent[slot] = number;
        Some(number)
    }

    /// Plain accesses, which most events are, are put together where they are asked for.
    #[inline]
    fn shape(&self, place: usize) -> Shape {
        let row = self.rows[place];
        match self.shapes.get(row.shape as usize) {
            Some(&Shape { site, kind: EventKind::Access(access) }) => {
                let address = Address(access.address.0 | u64::from(row.low));
                Shape { site, kind: EventKind::Access(Access { address, ..access }) }
            }
            Some(shape) => self.with(shape, row.low),
            None => self.whole[row.low as usize],
        }
    }

    /// A shape that is not of a plain access, with what a row adds to it.
    #[inline(never)]
    fn with(&self, shape: &Shape, mut low: u32) -> Shape {
        let Shape { site, mut kind } = *shape;
        if let EventKind::Atomic { value, .. } = &mut kind {
            let [address, below, above] = self.atomics[low as usize];
            *value = u64::from(below) | u64::from(above) << 32;
            low = address;
        }
        if let Some(address) = address_of(&mut kind) {
            address.0 |= u64::from(low);
        }
        Shape { site, kind }
    }

    #[inline]
    fn stretch(&self, place: usize) -> usize {
        self.stretch_from(0, place)
    }

    /// The stretch of an event, which is not before a known one.
    #[inline]
    fn stretch_from(&self, known: usize, place: usize) -> usize {
        let mut stretch = known.max(self.directory[place / DIRECTORY_STEP] as usize);
        while self.stretches.get(stretch + 1).is_some_and(|next| next.first as usize <= place) {
            stretch += 1;
        }
        stretch
    }

    /// # Panics
    /// If there are not so many.
    #[inline]
    pub fn at(&self, place: usize) -> Event {
        let Shape { site, kind } = self.shape(place);
        let Stretch { thread, context, ordinal, .. } = self.stretches[self.stretch(place)];
        Event { thread, site, context, ordinal, kind }
    }

    #[inline]
    pub fn get(&self, place: usize) -> Option<Event> {
        (place < self.len()).then(|| self.at(place))
    }

    pub fn last(&self) -> Option<Event> {
        self.len().checked_sub(1).map(|last| self.at(last))
    }

    /// What the event says of itself, without a look at who it is of.
    ///
    /// # Panics
    /// If there are not so many.
    #[inline]
    pub fn kind(&self, place: usize) -> EventKind {
        self.shape(place).kind
    }

    #[inline]
    pub fn iter(&self) -> Iter<'_> {
        self.range(0..self.len())
    }

    /// The events of a range, of which what lies behind the end is left out.
    pub fn range(&self, range: Range<usize>) -> Iter<'_> {
        let end = range.end.min(self.len());
        Iter { events: self, next: range.start.min(end), end, stretch: usize::MAX }
    }

    /// The events that are no plain accesses. Of those that were none once some may be in it.
    pub const fn besides_accesses(&self) -> &EventSet {
        &self.others
    }

    /// Where each event is in its thread.
    pub fn program_order(&self) -> &ProgramOrder {
        self.order.get_or_init(|| ProgramOrder::of(self))
    }

    /// The events that are in any of the sets, in their order.
    ///
    /// # Panics
    /// If one is of another trace, which has more events.
    pub fn select<'a, const N: usize>(
        &'a self,
        sets: [&'a EventSet; N],
    ) -> impl Iterator<Item = (EventIndex, Event)> + use<'a, N> {
        let mut stretch = 0;
        EventSet::union(sets).map(move |index| {
            stretch = self.stretch_from(stretch, index.index());
            let Shape { site, kind } = self.shape(index.index());
            let Stretch { thread, context, ordinal, .. } = self.stretches[stretch];
            (index, Event { thread, site, context, ordinal, kind })
        })
    }

    /// Consecutive events of one thread each: the first of them, and whose they are.
    pub fn runs(&self) -> impl Iterator<Item = (EventIndex, ThreadId)> + '_ {
        let mut before = None;
        self.stretches.iter().filter_map(move |stretch| {
            let is_other = before.replace(stretch.thread) != Some(stretch.thread);
            is_other.then_some((EventIndex(stretch.first), stretch.thread))
        })
    }

    /// Whether one of the events may be of such a kind, or was until [`Self::set_kind`]; what `is_such` is told of it may lack
    /// addresses and values. `false` is certain.
    pub fn may_have(&self, is_such: impl Fn(&EventKind) -> bool) -> bool {
        self.shapes.iter().chain(&self.whole).any(|shape| is_such(&shape.kind))
    }

    /// The greatest number of a thread that has events.
    pub fn last_thread(&self) -> Option<ThreadId> {
        self.stretches.iter().map(|stretch| stretch.thread).max()
    }

    /// Puts another operation in the place of that of an event.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn set_kind(&mut self, place: usize, kind: EventKind) {
        let site = self.shape(place).site;
        self.note(place, &kind);
        self.rows[place] = self.row(site, kind);
    }

    /// The same number of events, each as `change` leaves it, which is told its place as well.
    pub fn change(&mut self, mut change: impl FnMut(usize, &mut Event)) {
        let changed = self.iter().enumerate().map(|(place, mut event)| {
            change(place, &mut event);
            event
        });
        *self = changed.collect();
    }
}

impl FromIterator<Event> for Events {
    fn from_iter<I: IntoIterator<Item = Event>>(events: I) -> Self {
        let mut all = Self::new();
        all.extend(events);
        all
    }
}

impl Extend<Event> for Events {
    fn extend<I: IntoIterator<Item = Event>>(&mut self, events: I) {
        for event in events {
            self.push(event);
        }
    }
}

impl From<Vec<Event>> for Events {
    fn from(events: Vec<Event>) -> Self {
        events.into_iter().collect()
    }
}

impl PartialEq for Events {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Events {}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl<'a> IntoIterator for &'a Events {
    type Item = Event;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Events in their order.
#[derive(Clone)]
pub struct Iter<'a> {
    events: &'a Events,
    next: usize,
    end: usize,
    /// Of the event before; `usize::MAX`: not known.
    stretch: usize,
}

impl Iterator for Iter<'_> {
    type Item = Event;

    #[inline]
    fn next(&mut self) -> Option<Event> {
        let place = self.next;
        if place >= self.end {
            return None;
        }
        self.next += 1;
        if self.stretch == usize::MAX {
            self.stretch = self.events.stretch(place);
        } else if self.events.stretches.get(self.stretch + 1).is_some_and(|next| next.first as usize == place) {
            self.stretch += 1;
        }
        let Shape { site, kind } = self.events.shape(place);
        let Stretch { thread, context, ordinal, .. } = self.events.stretches[self.stretch];
        Some(Event { thread, site, context, ordinal, kind })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end - self.next;
        (left, Some(left))
    }

    fn nth(&mut self, count: usize) -> Option<Event> {
        if count > 0 {
            self.next = self.next.saturating_add(count).min(self.end);
            self.stretch = usize::MAX;
        }
        self.next()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Event> {
        (self.next < self.end).then(|| {
            self.end -= 1;
            self.events.at(self.end)
        })
    }
}

impl ExactSizeIterator for Iter<'_> {}
