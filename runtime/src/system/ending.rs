//! The other threads, in real time, while the process is about to end.

use super::sys;

const MONOTONIC: usize = 1;

/// Until `somebody` can go on no longer, as two looks in a row say, or the time is over.
pub fn wait_for_others(milliseconds: u64, somebody: impl Fn() -> bool) {
    const LOOK_NS: u64 = 2_000_000;
    let until = sys::clock(MONOTONIC).saturating_add(milliseconds.saturating_mul(1_000_000));
    let mut quiet = 0;
    while quiet < 2 && sys::clock(MONOTONIC) < until {
        quiet = if somebody() { 0 } else { quiet + 1 };
        if quiet < 2 {
            sys::sleep(LOOK_NS);
        }
    }
}

/// Whether a thread runs, or waits in the kernel for time or for something from outside: not if it is gone, or waits for another
/// thread without a time-out.
pub fn may_go_on(kernel_id: u32) -> bool {
    const FUTEX: u64 = 202;
    let mut call = [0u64; 5];
    match sys::waits_in(kernel_id, &mut call) {
        sys::Where::Gone => false,
        sys::Where::Call => call[0] != FUTEX || call[4] != 0,
        sys::Where::Elsewhere => true,
    }
}
