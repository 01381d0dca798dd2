//! Reads on which nothing depends that happens: the maximal causal model and the checker of witnesses against brute force over
//! all reorderings, with values and without.

use rashomon_event::{
    AccessClass, Address, CandidateKind, Deadline, EventIndex, EventKind, PlainValue, ReadUse, ThreadId, Trace, Witness,
    WitnessLevel,
};
use rashomon_order::SharedMemory;
use rashomon_predict::index::Index;
use rashomon_predict::maximal::{Decision, Facts, Limits, decide};
use rashomon_predict::{Options, predict};
use rashomon_testkit::{Contents, Features, Rules, Shape, SplitMix, TraceBuilder, describe, random, reachable_if};
use rashomon_witness::check;

/// Whether another thread touches each byte of an access.
fn is_shared(trace: &Trace, event: EventIndex) -> bool {
    let Some(access) = trace.access(event) else { return false };
    let others = trace.events.iter().filter(|other| other.thread != trace.event(event).thread);
    let others: Vec<_> = others.filter_map(|other| other.access()).collect();
    let bytes = |access: &rashomon_event::Access| access.address.0..access.address.0 + u64::from(access.size);
    bytes(&access).all(|byte| others.iter().any(|other| bytes(other).contains(&byte)))
}

/// Of a read its later events, by lot: the first that depends on it, and writes to shared memory before that one.
fn uses_of(trace: &Trace, seed: u64) -> Vec<ReadUse> {
    let mut lots = SplitMix(seed);
    let mut uses = Vec::new();
    for read in trace.indices() {
        let event = trace.event(read);
        if !event.access().is_some_and(|access| access.class.reads()) || lots.below(4) == 0 {
            continue;
        }
        let later: Vec<EventIndex> =
            trace.indices().filter(|&other| other > read && trace.event(other).thread == event.thread).collect();
        let first = later.get(lots.below(later.len() as u64 + 2) as usize).copied();
        let writes =
            |other: &EventIndex| trace.access(*other).is_some_and(|access| access.class.writes()) && is_shared(trace, *other);
        let before = |other: &EventIndex| first.is_none_or(|first| *other < first);
        let written = later.iter().copied().filter(|other| writes(other) && before(other) && lots.below(2) == 0).collect();
        uses.push(ReadUse { read, first, written });
    }
    uses
}

/// The values of plain accesses as the trace tells them.
fn values_of(trace: &Trace, contents: &Contents) -> Vec<PlainValue> {
    let number = |bytes: Option<&Vec<u8>>| {
        let mut value = [0; 8];
        let bytes = bytes.filter(|bytes| bytes.len() <= 8)?;
        value[..bytes.len()].copy_from_slice(bytes);
        Some(u64::from_le_bytes(value))
    };
    let value =
        |event| PlainValue { event, read: number(contents.read.get(&event)), written: number(contents.written.get(&event)) };
    let told = trace.indices().filter(|&event| matches!(trace.kind(event), EventKind::Access(_)));
    told.map(value).filter(|value| value.read.is_some() || value.written.is_some()).collect()
}

/// Conflicting accesses of different threads.
fn pairs(trace: &Trace) -> Vec<(EventIndex, EventIndex)> {
    let conflict = |one: EventIndex, other: EventIndex| {
        let accesses = trace.access(one).zip(trace.access(other));
        trace.event(one).thread != trace.event(other).thread && accesses.is_some_and(|(one, other)| one.conflicts(&other))
    };
    let earlier = |second: EventIndex| trace.indices().take(second.index()).map(move |first| (first, second));
    trace.indices().flat_map(earlier).filter(|&(first, second)| conflict(first, second)).collect()
}

#[derive(Default)]
struct Counts {
    races: usize,
    refuted: usize,
    /// Races that are refuted without values and uses.
    only_so: usize,
}

/// The model's answers of a trace are those of its definition, and what it finds passes the checker.
fn compare(trace: &Trace, contents: &Contents, counts: &mut Counts) {
    let memory = SharedMemory::new(trace);
    let index = Index::new(trace, &memory);
    let plain = Facts::new(&index, &memory, None);
    let told = Facts::with_values(&index, &memory, Deadline::NEVER).unwrap();
    let expected = reachable_if(trace, Rules::CAUSAL, &|sight| contents.may_see(trace, sight));
    for (first, second) in pairs(trace) {
        let decided = |facts| decide(facts, &[first, second], &Limits::NONE, Deadline::NEVER).0;
        let decision = decided(&told);
        let real = expected.races.contains(&(first, second));
        let context = || format!("{first:?} {second:?}\n{}\n{:?}\n{:?}", describe(trace), trace.uses, trace.plain_values);
        assert_eq!(matches!(decision, Decision::Witness(_)), real, "{}", context());
        let Decision::Witness(order) = decision else {
            assert_eq!(decision, Decision::Refuted, "{}", context());
            counts.refuted += 1;
            continue;
        };
        counts.races += 1;
        counts.only_so += usize::from(decided(&plain) == Decision::Refuted);
        let witness = Witness { candidate: CandidateKind::Race { first, second }, order, level: WitnessLevel::Causal };
        assert_eq!(check(trace, &witness), Ok(WitnessLevel::Causal), "{:?} {}", witness.order, context());
    }
}

fn shape(seed: u64) -> Shape {
    let features = Features { atomics: false, relaxed: false, semaphores: false, ..Features::ALL };
    Shape { threads: 3, events: 14 + (seed % 5) as usize, locks: 1, variables: 1 + seed % 2, features }
}

#[test]
fn values_of_plain_accesses_are_those_of_the_definition() {
    let mut counts = Counts::default();
    for seed in 0..4000 {
        let mut trace = random(seed, shape(seed));
        let contents = Contents::random(&trace, seed, 7);
        trace.plain_values = values_of(&trace, &contents);
        // What the trace cannot tell, nobody knows.
        let told = |event: &EventIndex| trace.plain_value(*event).is_some();
        let (mut read, mut written) = (contents.read, contents.written);
        read.retain(|event, bytes| told(event) && bytes.len() <= 8);
        written.retain(|event, bytes| told(event) && bytes.len() <= 8);
        compare(&trace, &Contents { read, written }, &mut counts);
    }
    let Counts { races, refuted, only_so } = counts;
    assert!(races > 1000 && refuted > 1000 && only_so > 50, "{races} {refuted} {only_so}");
}

#[test]
fn uses_are_those_of_the_definition() {
    let mut counts = Counts::default();
    for seed in 0..4000 {
        let mut trace = random(seed, shape(seed));
        trace.uses = uses_of(&trace, seed);
        let mut contents = Contents::default();
        if seed % 2 == 1 {
            let all = Contents::random(&trace, seed, 6);
            trace.plain_values = values_of(&trace, &all);
            let told = |event: &EventIndex| trace.plain_value(*event).is_some();
            contents.read = all.read.into_iter().filter(|(event, bytes)| told(event) && bytes.len() <= 8).collect();
            contents.written = all.written.into_iter().filter(|(event, bytes)| told(event) && bytes.len() <= 8).collect();
        }
        compare(&trace, &contents, &mut counts);
    }
    let Counts { races, refuted, only_so } = counts;
    assert!(races > 1000 && refuted > 1000 && only_so > 200, "{races} {refuted} {only_so}");
}

/// A thread reads a counter under a lock and only prints it: what it accesses then may come before whoever counted.
#[test]
fn all_deciders_together_see_a_race_behind_a_read_that_does_not_matter() {
    let predicted = |first: Option<Option<u32>>| {
        let mut builder = TraceBuilder::with_threads(2);
        let (one, other) = (ThreadId(0), ThreadId(1));
        builder.access(one, AccessClass::Write, Address(0x200), 8);
        builder.access(one, AccessClass::Write, Address(0x100), 8);
        builder.access(other, AccessClass::Read, Address(0x100), 8);
        builder.access(other, AccessClass::Read, Address(0x200), 8);
        let uses = first.map(|first| ReadUse { read: EventIndex(2), first: first.map(EventIndex), written: Vec::new() });
        let mut trace = builder.build();
        assert!(trace.events.iter().all(|event| event.access().is_some()));
        trace.uses = uses.into_iter().collect();
        let options = Options { optimistic: false, ..Options::default() };
        let found = predict(&trace, &options).findings;
        let race = CandidateKind::Race { first: EventIndex(0), second: EventIndex(3) };
        let finding = found.into_iter().find(|finding| finding.candidate.kind == race).expect("the pair is a candidate");
        (finding.witness.map(|witness| check(&trace, &witness).unwrap()), finding.refuted)
    };
    assert_eq!(predicted(None), (None, true));
    assert_eq!(predicted(Some(Some(3))), (None, true));
    assert_eq!(predicted(Some(None)), (Some(WitnessLevel::Causal), false));
}
