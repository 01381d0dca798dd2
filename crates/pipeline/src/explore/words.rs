//! What a finding of an exploration says of its schedule.

use crate::findings::compose::Composer;
use crate::findings::critical::Operation;
use crate::findings::symbols::Symbols;
use rashomon_event::{EventIndex, EventKind, Schedule, ThreadPath};
use rashomon_explore::schedule::paths;
use rashomon_explore::{Log, Minimised, Observation, Pending};
use rashomon_trace::LoadedTrace;

fn counted(count: usize, noun: &str) -> String {
    rashomon_event::counted(count as u64, noun)
}

pub(super) fn describe_schedule(schedule: &Schedule, best: &Observation, minimised: Option<&Minimised>) -> String {
    let (turns, preemptions) = (schedule.turns.len(), best.log.preemptions());
    let mut words = format!("{}, {}", counted(turns, "turn"), counted(preemptions, "preemption"));
    if let Some(minimised) = minimised {
        if minimised.fewest {
            words.push_str(" (no schedule with fewer fails so)");
        }
        words.push_str(&format!(
            "; once the first {} are made it fails whatever comes then",
            counted(minimised.decisions.len(), "choice")
        ));
    }
    words
}

/// The event of a trace that a thread stood before.
fn event_of(loaded: &LoadedTrace, path: &ThreadPath, pending: &Pending) -> Option<EventIndex> {
    let trace = &loaded.trace;
    let thread = trace.threads.iter().position(|info| info.path == *path)?;
    let wanted = |index: &EventIndex| {
        let event = trace.event(*index);
        let same = event.thread.index() == thread && event.ordinal == pending.ordinal;
        let access = matches!(event.kind, EventKind::Access(_));
        same && if pending.operation.op == 0 { access && trace.site(event.site).address == pending.site } else { !access }
    };
    trace.indices().find(wanted)
}

/// One side of the order that a failure needs.
pub(super) fn operation<S: Symbols + ?Sized>(
    composer: &Composer<'_, S>,
    log: &Log,
    (thread, pending): &(u32, Pending),
) -> Operation {
    let path = paths(log).get(*thread as usize).cloned().unwrap_or_default();
    match event_of(composer.loaded, &path, pending) {
        Some(index) => Operation::of_event(composer, index),
        None => Operation::of_words(format!("{} after {} synchronisation events", path.words(), pending.ordinal)),
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "preemption")), ["0 preemptions", "1 preemption", "2 preemptions"]);
    }
}
