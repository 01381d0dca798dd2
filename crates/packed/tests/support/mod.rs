//! What several tests need.
#![allow(dead_code)]

use rashomon_packed::{Event, Names, Source, Space, TraceError};
use std::collections::HashMap;
use std::path::Path;

/// Everything a source has.
pub fn drain(source: &mut (impl Source + ?Sized)) -> Result<Vec<Event>, TraceError> {
    let (mut events, mut block) = (Vec::new(), Vec::new());
    loop {
        source.next(&mut block)?;
        if block.is_empty() {
            return Ok(events);
        }
        assert!(block.len() <= rashomon_packed::BLOCK);
        events.extend_from_slice(&block);
    }
}

/// A packed trace in memory.
pub fn packed(events: &[Event], names: &Names) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut source = rashomon_packed::Slice::named(events, names.clone());
    let mut writer = rashomon_packed::PackedWriter::new(&mut bytes, Path::new("memory"), &source).unwrap();
    rashomon_packed::copy(&mut source, &mut writer, |_| {}).unwrap();
    bytes
}

/// Numbers by first appearance, so that traces can be compared whose readers number differently.
pub fn canonical(events: &[Event]) -> Vec<Event> {
    let mut known: [HashMap<u32, u32>; Space::COUNT] = Default::default();
    let mut number = |space: Space, old: u32| {
        let next = known[space as usize].len() as u32;
        *known[space as usize].entry(old).or_insert(next)
    };
    let map = |event: &Event| Event {
        thread: number(Space::Thread, event.thread.into()) as u16,
        target: event.op.space().map_or(0, |space| number(space, event.target)),
        location: number(Space::Location, event.location),
        ..*event
    };
    events.iter().map(map).collect()
}
