//! Priorities of PCT (S. Burckhardt, P. Kothari, M. Musuvathi, S. Nagarakatte, "A Randomized Scheduler with Probabilistic
//! Guarantees of Finding Bugs", ASPLOS 2010, §2), and how rarely a random policy switches.
//!
//! Three bands, each below the one before: initial priorities; those of change points, the first of which is the lowest of them;
//! and those of threads that yield or only poll, each lower than the last: who only polls must not keep the turn from a thread
//! that was set back.

/// Initial priorities are not below this.
const INITIAL: u64 = 1 << 40;
/// What the first thread that yields is given; the next ones count down from here. Change points lie above.
pub const LOWEST: u64 = 1 << 39;

/// The priority of a new thread, from a random number.
pub const fn initial(random: u64) -> u64 {
    INITIAL + (random >> 24)
}

/// The priority of the thread that runs at the change point of this number.
pub const fn changed(point: usize) -> u64 {
    LOWEST + 1 + point as u64
}

/// The step before which a change point lies, from a random number, in an execution of so many steps.
pub const fn change_point(random: u64, length: u64) -> u64 {
    1 + random % if length == 0 { 1 } else { length }
}

/// The switching period after so many points: short programs are stirred well, and long ones, which have many chances anyway, do
/// not spend their time handing over.
pub const fn rarer(period: u64, points: u64) -> u64 {
    const POINTS_PER_DOUBLING: u64 = 4096;
    const MOST_DOUBLINGS: u64 = 6;
    let doublings = points / POINTS_PER_DOUBLING;
    period << if doublings < MOST_DOUBLINGS { doublings } else { MOST_DOUBLINGS }
}
