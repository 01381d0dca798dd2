//! Every trace of a given length over a small alphabet that lock exclusion, creation and joining allow. Threads appear in the
//! order of their numbers, so that traces equal but for the names of threads come once. A thread that the alphabet can create
//! runs only once it is.

use crate::builder::TraceBuilder;
use rashomon_event::{Address, EventKind, LockMode, ThreadId, Trace};

/// Calls `visit` with each trace of exactly `length` events of at most `threads` threads.
pub fn enumerate(threads: u32, length: usize, alphabet: &[EventKind], visit: &mut impl FnMut(Trace)) {
    extend(threads, length, alphabet, &mut Vec::new(), visit);
}

fn extend(
    threads: u32,
    length: usize,
    alphabet: &[EventKind],
    prefix: &mut Vec<(ThreadId, EventKind)>,
    visit: &mut impl FnMut(Trace),
) {
    if prefix.len() == length {
        let mut builder = TraceBuilder::with_threads(threads);
        for &(thread, kind) in prefix.iter() {
            builder.push(thread, kind);
        }
        visit(builder.build());
        return;
    }
    let seen = |prefix: &[(ThreadId, EventKind)], thread: ThreadId| {
        alphabet.contains(&EventKind::Fork { child: thread }) || prefix.iter().any(|&(other, _)| other == thread)
    };
    // The next one that nobody has seen, but none behind it.
    let used = (0..threads).take_while(|&thread| seen(prefix, ThreadId(thread))).count() as u32;
    for thread in (0..threads.min(used + 1)).map(ThreadId) {
        for &kind in alphabet {
            if alive(prefix, alphabet, thread) && allowed(prefix, thread, kind) {
                prefix.push((thread, kind));
                extend(threads, length, alphabet, prefix, visit);
                prefix.pop();
            }
        }
    }
}

fn alive(prefix: &[(ThreadId, EventKind)], alphabet: &[EventKind], thread: ThreadId) -> bool {
    let ran = |kind: EventKind| prefix.iter().any(|&(_, other)| other == kind);
    let (fork, join) = (EventKind::Fork { child: thread }, EventKind::Join { child: thread, may_wait: true });
    (ran(fork) || !alphabet.contains(&fork)) && !ran(join)
}

fn allowed(prefix: &[(ThreadId, EventKind)], thread: ThreadId, kind: EventKind) -> bool {
    match kind {
        EventKind::Acquire { lock, mode, .. } => holders(prefix, lock)
            .iter()
            .all(|&(holder, held)| holder != thread && held == LockMode::Shared && mode == LockMode::Shared),
        EventKind::Release { lock, mode } => holders(prefix, lock).contains(&(thread, mode)),
        EventKind::Fork { child } => child != thread && prefix.iter().all(|&(other, earlier)| other != child && earlier != kind),
        EventKind::Join { child, .. } => {
            let created = prefix.iter().any(|&(_, earlier)| earlier == EventKind::Fork { child });
            created && child != thread && prefix.iter().all(|&(_, earlier)| earlier != kind)
        }
        _ => true,
    }
}

fn holders(prefix: &[(ThreadId, EventKind)], of: Address) -> Vec<(ThreadId, LockMode)> {
    let mut holders = Vec::new();
    for &(thread, kind) in prefix {
        match kind {
            EventKind::Acquire { lock, mode, .. } if lock == of => holders.push((thread, mode)),
            EventKind::Release { lock, mode } if lock == of => holders.retain(|&holder| holder != (thread, mode)),
            _ => {}
        }
    }
    holders
}
