//! The order that a failure needs, as its finding says it: in words, and for whoever compares findings.

use crate::findings::compose::Composer;
use crate::findings::describe::access_class;
use crate::findings::symbols::Symbols;
use rashomon_event::finding::CriticalOrder;
use rashomon_event::{Event, EventIndex, Finding, Side};

/// How the note of a critical order begins.
const CRITICAL: &str = "critical order: ";

/// One of the two operations.
pub(crate) struct Operation {
    words: String,
    /// Of an access: its side, and what it touches.
    access: Option<(Side, String)>,
}

impl Operation {
    pub(crate) fn of_event<S: Symbols + ?Sized>(composer: &Composer<'_, S>, index: EventIndex) -> Self {
        let event = composer.loaded.trace.event(index);
        let thread = &composer.loaded.trace.thread(event.thread).path;
        let place = composer.describer.place_of(index).map(|frame| format!(" at {}", rashomon_report::text::frame_words(&frame)));
        let touched = event.access().map(|access| composer.describer.data(access.address, u64::from(access.size)));
        let words = format!("{}: {}{}", thread.words(), action(composer, &event), place.unwrap_or_default());
        Self { words, access: touched.map(|touched| (composer.describer.side_before(index), touched)) }
    }

    /// One of which no event is known.
    pub(crate) const fn of_words(words: String) -> Self {
        Self { words, access: None }
    }
}

/// What an event is, and what it touches.
pub(crate) fn action<S: Symbols + ?Sized>(composer: &Composer<'_, S>, event: &Event) -> String {
    match event.access() {
        Some(access) => {
            format!("{} of {}", access_class(&access), composer.describer.data(access.address, u64::from(access.size)))
        }
        None => composer.describer.action(event),
    }
}

/// Tells a failure's finding of the two operations, the first of which comes first where it fails.
pub(crate) fn tell(finding: &mut Finding, first: Operation, second: Operation) {
    finding.notes.push(format!("{CRITICAL}[{}] before [{}]; the other way round it does not fail", first.words, second.words));
    if let (Some((first, subject)), Some((second, _))) = (first.access, second.access) {
        finding.critical = Some(Box::new(CriticalOrder { sides: [first, second], subject }));
    }
}

/// Takes over what another finding says of the order that it needs; whether it says so.
pub(crate) fn take_over(finding: &mut Finding, from: Finding) -> bool {
    let note = from.notes.into_iter().find(|note| note.starts_with(CRITICAL));
    let is_told = note.is_some();
    finding.notes.extend(note);
    finding.critical = from.critical;
    is_told
}

/// Whether its order is told.
pub(crate) fn is_told(finding: &Finding) -> bool {
    finding.notes.iter().any(|note| note.starts_with(CRITICAL))
}

/// Forgets the order of a schedule that is another one now.
pub(crate) fn forget(finding: &mut Finding) {
    finding.notes.retain(|note| !note.starts_with(CRITICAL));
    finding.critical = None;
}
