//! Numbers of tracks, and the lanes of held locks.

use rashomon_event::{Address, ThreadId};
use std::collections::BTreeMap;

/// The program's track.
pub const PROCESS: u64 = 1;
/// There is one process, whatever its number was.
pub const PID: u64 = 1;
/// Tracks of a thread: its own, and as many lanes less one.
const PER_THREAD: u64 = 1 << 32;

pub const fn thread_track(thread: ThreadId) -> u64 {
    (thread.0 as u64 + 1) * PER_THREAD
}

const fn lane_track(thread: ThreadId, lane: usize) -> u64 {
    thread_track(thread) + 1 + lane as u64
}

/// Which lane each held lock has.
#[derive(Debug, Default)]
pub struct Lanes {
    /// The locks of a thread's lanes; `None`: free.
    by_thread: BTreeMap<ThreadId, Vec<Option<Address>>>,
}

impl Lanes {
    /// The first free lane, and whether it was never used.
    pub fn take(&mut self, thread: ThreadId, lock: Address) -> (u64, bool) {
        let lanes = self.by_thread.entry(thread).or_default();
        match lanes.iter().position(Option::is_none) {
            Some(lane) => {
                lanes[lane] = Some(lock);
                (lane_track(thread, lane), false)
            }
            None => {
                lanes.push(Some(lock));
                (lane_track(thread, lanes.len() - 1), true)
            }
        }
    }

    /// The lane that is free again; `None`: the thread does not hold the lock.
    pub fn give_back(&mut self, thread: ThreadId, lock: Address) -> Option<u64> {
        let lanes = self.by_thread.get_mut(&thread)?;
        let lane = lanes.iter().rposition(|held| *held == Some(lock))?;
        lanes[lane] = None;
        Some(lane_track(thread, lane))
    }

    /// Lanes of locks that are still held.
    pub fn held(&self) -> Vec<u64> {
        let lanes = self.by_thread.iter().flat_map(|(thread, lanes)| lanes.iter().enumerate().map(move |it| (*thread, it)));
        lanes.filter(|(_, (_, lock))| lock.is_some()).map(|(thread, (lane, _))| lane_track(thread, lane)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_that_overlap_have_lanes_of_their_own() {
        let (thread, a, b) = (ThreadId(2), Address(16), Address(32));
        let mut lanes = Lanes::default();
        let (first, is_new) = lanes.take(thread, a);
        assert!(is_new && first > thread_track(thread));
        let (second, _) = lanes.take(thread, b);
        assert_ne!(first, second);
        assert_eq!(lanes.give_back(thread, a), Some(first));
        assert_eq!(lanes.give_back(thread, a), None);
        assert_eq!(lanes.take(thread, a), (first, false));
        assert_eq!(lanes.held(), [first, second]);
        assert!(lanes.take(ThreadId(3), a).1);
    }
}
