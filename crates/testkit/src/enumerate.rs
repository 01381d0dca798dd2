//! Every trace of a given length over a small alphabet that lock exclusion allows. Threads appear in the order of their numbers, so
//! that traces equal but for the names of threads come once.

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
    let used = prefix.iter().map(|(thread, _)| thread.0 + 1).max().unwrap_or(0);
    for thread in (0..threads.min(used + 1)).map(ThreadId) {
        for &kind in alphabet {
            if allowed(prefix, thread, kind) {
                prefix.push((thread, kind));
                extend(threads, length, alphabet, prefix, visit);
                prefix.pop();
            }
        }
    }
}

fn allowed(prefix: &[(ThreadId, EventKind)], thread: ThreadId, kind: EventKind) -> bool {
    match kind {
        EventKind::Acquire { lock, mode, .. } => holders(prefix, lock)
            .iter()
            .all(|&(holder, held)| holder != thread && held == LockMode::Shared && mode == LockMode::Shared),
        EventKind::Release { lock, mode } => holders(prefix, lock).contains(&(thread, mode)),
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
