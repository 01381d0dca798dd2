//! What a finding of an exploration says of its schedule.

use crate::findings::compose::Composer;
use crate::findings::describe::access_class;
use crate::findings::symbols::Symbols;
use rashomon_event::{EventIndex, EventKind, Schedule, ThreadPath};
use rashomon_explore::schedule::paths;
use rashomon_explore::{Critical, Log, Minimised, Observation, Pending};
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

pub(super) fn critical_words<S: Symbols + ?Sized>(composer: &Composer<'_, S>, log: &Log, critical: &Critical) -> String {
    let paths = paths(log);
    let side = |(thread, pending): &(u32, Pending)| {
        let path = paths.get(*thread as usize).cloned().unwrap_or_default();
        match event_of(composer.loaded, &path, pending) {
            Some(index) => {
                let event = composer.loaded.trace.event(index);
                let place =
                    composer.describer.place_of(index).map(|frame| format!(" at {}", rashomon_report::text::frame_words(&frame)));
                let action = match event.access() {
                    Some(access) => {
                        let touched = composer.describer.data(access.address, u64::from(access.size));
                        format!("{} of {touched}", access_class(&access))
                    }
                    None => composer.describer.action(event),
                };
                format!("{}: {action}{}", path.words(), place.unwrap_or_default())
            }
            None => format!("{} after {} synchronisation events", path.words(), pending.ordinal),
        }
    };
    format!(
        "critical order: [{}] before [{}]; the other way round it does not fail",
        side(&critical.first),
        side(&critical.second)
    )
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "preemption")), ["0 preemptions", "1 preemption", "2 preemptions"]);
    }
}
