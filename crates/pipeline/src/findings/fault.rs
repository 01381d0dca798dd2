//! The story of the address at which an instruction failed: what lies there, what lay there and who ended it, or where the null
//! pointer came from.
//!
//! The kernel tells the address; the recording of the same execution knows every block, mapping and stack that ever had it, and
//! what threads did to them. Where nothing has the address the pointer itself was wrong: then the last use of freed memory is
//! told, from which such pointers come. Of an abort it is told if the last thing that the thread did was to free what was freed.
//!
//! Limits. Memory that libc gives back by itself (a thread's stack) ends with no event: of a stack the end of its thread
//! counts. Which value a plain read saw is not recorded: told are the last reads of a pointer's size before the null pointer
//! was followed, at most two, of the same call.

use crate::findings::compose::Composer;
use crate::findings::describe::{byte_count, place_words};
use crate::findings::symbols::Symbols;
use rashomon_event::{
    Access, AccessClass, Address, Event, EventIndex, EventKind, Mode, Object, ObjectKind, Side, ThreadId, Trace,
};
use rashomon_trace::{Crash, Misuse};

/// Sent to itself by a program that its allocator, an assertion or an exception ends.
const SIGABRT: u64 = 6;
/// Whoever runs past the end of a block, or of a stack, is not expected to come further.
const NEAR: u64 = 4096;
/// Of a thread's last events so many are looked at for what it read.
const RECENT: usize = 64;
const POINTER: u32 = 8;
/// Reads of a pointer's size that are told: which one gave the null pointer is not recorded.
const CANDIDATES: usize = 2;
/// The end of more bytes than these is recorded as one of so many.
const MOST_ENDING: u32 = 64 << 10;

/// What there is to tell.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub notes: Vec<String>,
    /// Of those who had to do with what lies there.
    pub sides: Vec<Side>,
}

impl<S: Symbols + ?Sized> Composer<'_, S> {
    /// `runner`: the thread that failed, where it is known.
    pub(crate) fn story(&self, runner: Option<ThreadId>) -> Story {
        let Some(crash) = self.loaded.header.crash else { return Story::default() };
        let mut story = match crash.place() {
            _ if crash.signal == SIGABRT => return runner.map(|runner| self.freed_twice(runner)).unwrap_or_default(),
            Some(_) if crash.is_near_null() => return runner.map(|runner| self.null(runner, &crash)).unwrap_or_default(),
            Some(place) => self.of_place(place, runner),
            None => Story::default(),
        };
        if crash.is_of_an_instruction() && story.sides.is_empty() {
            story.notes.extend(runner.and_then(|runner| self.used_freed(runner)));
        }
        story
    }

    fn who_and_where(&self, index: EventIndex) -> String {
        let trace = self.trace();
        let thread = trace.thread(trace.event(index).thread).path.words();
        match self.describer.place_of(index) {
            Some(frame) => format!("{thread} at {}", place_words(&frame)),
            None => thread,
        }
    }

    fn part(&self, index: EventIndex, action: &str) -> Side {
        let event = self.trace().event(index);
        self.describer.side(event.thread, action.to_owned(), event.site, event.context, Some(index))
    }

    /// What has the address, or had it; else what ends right before.
    fn of_place(&self, machine: u64, runner: Option<ThreadId>) -> Story {
        let trace = self.trace();
        let owner = owner(trace, machine);
        let end = owner.and_then(|owner| end_of(trace, owner, machine));
        let past = behind(trace, machine).filter(|past| end.is_some() || owner.is_none_or(|owner| owner.born < past.born));
        let mut story = match (owner, end) {
            (Some(owner), Some(end)) => self.of_ended(owner, machine, end),
            (Some(owner), None) if past.is_none() => Story {
                notes: vec![format!("at the address is {}, which nothing has ended", self.lies_at(owner, machine))],
                sides: owner.born.map(|born| self.part(born, "made it")).into_iter().collect(),
            },
            _ => Story::default(),
        };
        if let Some(past) = past {
            let by = match machine - end_address(past) {
                0 => "right behind".to_owned(),
                by => format!("{} past", byte_count(by)),
            };
            story.notes.push(format!("the address is {by} the end of {}", self.lies_at(past, past.machine_base)));
            story.sides.extend(past.born.map(|born| self.part(born, "made what it is past the end of")));
        }
        if story.notes.is_empty() {
            story.notes.push(match below_stack(trace, machine, runner) {
                Some((thread, by)) => {
                    let thread = trace.thread(thread).path.words();
                    format!("the address is {} below the stack of {thread}: it has overflowed", byte_count(by))
                }
                None => "at the address nothing ever was that the recording knows: the pointer itself is wrong".to_owned(),
            });
        }
        story
    }

    /// Of a block, a mapping or a stack that was no more.
    fn of_ended(&self, owner: &Object, machine: u64, end: EventIndex) -> Story {
        let was = format!("at the address was {}", self.lies_at(owner, machine));
        let (note, began, ended) = match owner.kind {
            ObjectKind::Stack { thread } => {
                let trace = self.trace();
                let joins = |index: &EventIndex| matches!(trace.kind(*index), EventKind::Join { child, .. } if child == thread);
                let join = trace.indices().find(joins);
                let joined = join.map(|join| format!(", and which {} had joined", self.who_and_where(join)));
                let note = format!("{was}, which had ended{}", joined.unwrap_or_default());
                (note, None, join.map(|join| self.part(join, "had joined the thread whose stack it was")))
            }
            ObjectKind::Mapping { .. } => {
                let note = format!("{was}; it was unmapped before by {}", self.who_and_where(end));
                (note, owner.born.map(|born| self.part(born, "mapped it")), Some(self.part(end, "unmapped it")))
            }
            _ => {
                let note = format!("{was}; it was freed before by {}", self.who_and_where(end));
                (note, owner.born.map(|born| self.part(born, "allocated it")), Some(self.part(end, "freed it")))
            }
        };
        Story { notes: vec![note], sides: began.into_iter().chain(ended).collect() }
    }

    fn lies_at(&self, object: &Object, machine: u64) -> String {
        let address = Address(object.base.0 + (machine - object.machine_base));
        self.describer.at(address).unwrap_or_else(|| "something".to_owned())
    }

    /// Where the null pointer was read, and who wrote it there.
    fn null(&self, runner: ThreadId, crash: &Crash) -> Story {
        let trace = self.trace();
        let mut story = Story::default();
        let pointer = |event: &Event| {
            let value = if let EventKind::Atomic { value, .. } = event.kind { value } else { 0 };
            event.access().filter(|access| {
                access.class.reads() && access.size == POINTER && value == 0 && Some(access.address.0) != crash.place()
            })
        };
        let recent = trace.indices().rev().filter(|index| trace.event(*index).thread == runner).take(RECENT);
        let known = |access: &Access| {
            trace.object_at(access.address).is_some_and(|object| trace.objects[object.index()].kind != ObjectKind::Unknown)
        };
        let reads = recent.filter_map(|index| Some((index, pointer(&trace.event(index))?))).filter(|(_, access)| known(access));
        let mut told: Vec<(EventIndex, Access)> = Vec::new();
        for (index, access) in reads {
            let near = told.first().is_none_or(|(first, _)| trace.event(*first).context == trace.event(index).context);
            if near && told.iter().all(|(_, other)| other.address != access.address) {
                told.push((index, access));
            }
            if told.len() == CANDIDATES {
                break;
            }
        }
        if trace.mode != Mode::Serial {
            return story;
        }
        for (nth, (index, access)) in told.into_iter().enumerate() {
            let from = self.describer.data(access.address, u64::from(access.size));
            let place = self.describer.place_of(index).map(|frame| format!(" at {}", place_words(&frame))).unwrap_or_default();
            let writes = |event: &Event| {
                event.access().is_some_and(|other| {
                    matches!(other.class, AccessClass::Write | AccessClass::ReadWrite) && other.overlaps(&access)
                })
            };
            let writer = (0..index.0).rev().map(EventIndex).find(|earlier| writes(&trace.event(*earlier)));
            let written = match writer {
                Some(writer) => format!("{} had written it last", self.who_and_where(writer)),
                None => "no write of it is recorded".to_owned(),
            };
            let which = if nth == 0 { "the last pointer that the thread read before is" } else { "the one before that is" };
            story.notes.push(format!("{which} {from}{place}; {written}"));
            story.sides.extend(writer.filter(|_| nth == 0).map(|writer| self.part(writer, "had written the pointer last")));
        }
        story
    }

    /// The last that the thread did before it aborted was to free what had been freed.
    fn freed_twice(&self, runner: ThreadId) -> Story {
        let trace = self.trace();
        let mut story = Story::default();
        let ends = |index: &EventIndex| trace.access(*index).filter(|access| access.class == AccessClass::End);
        let last = trace.indices().rev().find(|index| trace.event(*index).thread == runner);
        let Some((last, access)) = last.and_then(|last| Some((last, ends(&last)?))) else { return story };
        let Some(block) = trace.object_at(access.address) else { return story };
        let same = |index: &EventIndex| ends(index).is_some_and(|other| trace.object_at(other.address) == Some(block));
        let Some(first) = (0..last.0).rev().map(EventIndex).find(same) else { return story };
        let object = &trace.objects[block.index()];
        let what = self.lies_at(object, object.machine_base);
        story.notes.push(format!("it frees {what} once more; it was freed before by {}", self.who_and_where(first)));
        story.sides.extend(object.born.map(|born| self.part(born, "allocated it")));
        story.sides.push(self.part(first, "freed it first"));
        story
    }

    /// The last use of freed memory by the thread, from which a pointer to nowhere may come.
    fn used_freed(&self, runner: ThreadId) -> Option<String> {
        let uses = self.loaded.misuses.iter().rev();
        let record = uses.clone().find(|record| record.misuse == Misuse::UseAfterFree && record.at.thread == runner)?;
        let access = self.trace().events.get(record.at.before.index())?.access()?;
        let used = self.describer.data(access.address, u64::from(access.size));
        let freed = self.who_and_where(record.earlier?.before);
        Some(format!("before that, the thread used {used}, which was freed by {freed}"))
    }
}

/// Whatever was put at the address last.
fn owner(trace: &Trace, machine: u64) -> Option<&Object> {
    let has = |object: &&Object| is_memory(object) && machine.wrapping_sub(object.machine_base) < object.size;
    trace.objects.iter().filter(has).max_by_key(|object| object.born)
}

/// What lives and ends at the address, or a little before it.
fn behind(trace: &Trace, machine: u64) -> Option<&Object> {
    let ends_near = |object: &&Object| {
        matches!(object.kind, ObjectKind::Heap { .. } | ObjectKind::Mapping { .. })
            && machine.checked_sub(end_address(object)).is_some_and(|by| by < NEAR)
            && end_of(trace, object, end_address(object) - 1).is_none()
    };
    trace.objects.iter().filter(ends_near).max_by_key(|object| (end_address(object), object.born))
}

/// Whose stack ends a little above the address, and how far above.
fn below_stack(trace: &Trace, machine: u64, runner: Option<ThreadId>) -> Option<(ThreadId, u64)> {
    trace.objects.iter().find_map(|object| {
        let ObjectKind::Stack { thread } = object.kind else { return None };
        let by = object.machine_base.checked_sub(machine).filter(|by| *by <= 16 * NEAR)?;
        (runner == Some(thread)).then_some((thread, by))
    })
}

fn is_memory(object: &Object) -> bool {
    !matches!(object.kind, ObjectKind::Unknown | ObjectKind::Descriptor { .. })
}

/// The first address behind what was asked for.
const fn end_address(object: &Object) -> u64 {
    object.machine_base + (object.size - object.spare)
}

/// The event that ended what is at an address of an object.
fn end_of(trace: &Trace, object: &Object, machine: u64) -> Option<EventIndex> {
    let first = object.born.map_or(0, |born| born.0);
    let address = object.base.0 + (machine - object.machine_base);
    let ends = |event: &Event| match (object.kind, event.kind) {
        (ObjectKind::Stack { thread }, EventKind::End) => event.thread == thread,
        (_, EventKind::Access(access)) if access.class == AccessClass::End => {
            let size = if access.size == MOST_ENDING { object.size } else { u64::from(access.size) };
            let into = access.address.0.wrapping_sub(object.base.0) < object.size;
            // A block ends as a whole, of a mapping also a part.
            into && match object.kind {
                ObjectKind::Mapping { .. } | ObjectKind::Stack { .. } => address.wrapping_sub(access.address.0) < size,
                _ => true,
            }
        }
        _ => false,
    };
    (first..trace.events.len() as u32).rev().map(EventIndex).find(|index| ends(&trace.event(*index)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_event::{ContextId, SiteId};

    const PAGE: u64 = 4096;
    const MAPPING: ObjectKind = ObjectKind::Mapping { thread: ThreadId(0), site: SiteId(0), ordinal: 0 };
    const BLOCK: ObjectKind = ObjectKind::Heap { thread: ThreadId(0), site: SiteId(0), ordinal: 0 };

    fn object(kind: ObjectKind, base: u64, (machine_base, size): (u64, u64), born: u32) -> Object {
        Object { kind, base: Address(base), size, spare: 0, machine_base, born: Some(EventIndex(born)) }
    }

    /// Each event ends so many bytes from an address on, or, of none, does something else.
    fn trace(objects: Vec<Object>, ends: &[(u64, u32)]) -> Trace {
        let event = |&(address, size): &(u64, u32)| {
            let access = Access { address: Address(address), size, class: AccessClass::End, atomic: false };
            let kind = if size == 0 { EventKind::Start } else { EventKind::Access(access) };
            Event { thread: ThreadId(0), site: SiteId(0), context: ContextId::ROOT, ordinal: 0, kind }
        };
        Trace { objects, ..Trace::of_events(Mode::Serial, ends.iter().map(event)) }
    }

    #[test]
    fn an_address_is_of_what_was_put_there_last() {
        let objects = vec![object(BLOCK, 1 << 20, (0x5000, 64), 0), object(BLOCK, 2 << 20, (0x5000, 32), 2)];
        let trace = trace(objects, &[(0, 0), (1 << 20, 64), (0, 0)]);
        let at = |machine| owner(&trace, machine).map(|object| (object.size, end_of(&trace, object, machine)));
        assert_eq!(at(0x5010), Some((32, None)));
        assert_eq!(at(0x5030), Some((64, Some(EventIndex(1)))));
        assert_eq!(at(0x5040), None);
    }

    #[test]
    fn of_a_mapping_a_part_can_end() {
        let trace = trace(vec![object(MAPPING, 1 << 20, (0x9000, 2 * PAGE), 0)], &[(0, 0), ((1 << 20) + PAGE, 4096)]);
        let mapping = owner(&trace, 0x9000).unwrap();
        assert_eq!(end_of(&trace, mapping, 0x9fff), None);
        assert_eq!(end_of(&trace, mapping, 0xa000), Some(EventIndex(1)));
    }

    #[test]
    fn the_end_of_much_is_recorded_as_that_of_its_beginning() {
        let trace = trace(vec![object(MAPPING, 1 << 20, (0x10_0000, 1 << 20), 0)], &[(0, 0), (1 << 20, MOST_ENDING)]);
        assert_eq!(end_of(&trace, owner(&trace, 0x1f_0000).unwrap(), 0x1f_0000), Some(EventIndex(1)));
    }

    #[test]
    fn what_lives_and_ends_a_little_before_is_near() {
        let objects = vec![object(BLOCK, 1 << 20, (0x5000, 64), 0), object(BLOCK, 2 << 20, (0x5040, 32), 1)];
        let trace = trace(objects, &[(0, 0), (0, 0), (2 << 20, 32)]);
        let near = |machine| behind(&trace, machine).map(|object| object.machine_base);
        // The second block is no more.
        assert_eq!((near(0x5040), near(0x5060), near(0x503f)), (Some(0x5000), Some(0x5000), None));
        assert_eq!(near(0x5040 + NEAR), None);
    }
}
