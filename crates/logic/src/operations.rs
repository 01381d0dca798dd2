//! Operations at a position of a schedule: which may stand in for each other, and which may come in between.

use rashomon_abi::record::Op;

/// Operations that may stand in for each other at one position: which of them it becomes is only known afterwards. The code of
/// one that stands for all.
pub fn representative(op: u64) -> u64 {
    match Op::from_code(op) {
        Some(Op::LockFailed | Op::LockAgain | Op::LockRequest | Op::LockShared) => Op::Lock as u64,
        Some(Op::UnlockInner | Op::UnlockShared) => Op::Unlock as u64,
        Some(Op::AtomicCasFailed) => Op::AtomicRmw as u64,
        Some(Op::SemaphoreFailed) => Op::SemaphoreWait as u64,
        Some(Op::OnceSeen) => Op::OnceBegin as u64,
        Some(Op::Acquire | Op::Blocking) => Op::Release as u64,
        _ => op,
    }
}

/// Whether an operation may be the one that a turn expects; 0 expects any.
pub fn are_interchangeable(expected: u64, op: Op) -> bool {
    expected == 0 || representative(expected) == representative(op as u64)
}

/// Whether an event may follow in place of one that a thread is about to make: what `pthread_atfork` registered comes before a
/// fork, and where a thread is cancelled the unwinder begins.
pub fn may_precede(op: Op, other: u64) -> bool {
    match op {
        Op::Fork => true,
        // A thread of a team that waits for the others may come to execute tasks before it leaves the barrier.
        Op::BarrierExit => true,
        // An attempt that follows one that failed acquires that first.
        Op::OnceBegin => representative(other) == Op::Release as u64,
        // It may fail.
        Op::ThreadJoin if representative(other) == Op::Release as u64 => true,
        Op::Acquire | Op::Release | Op::Blocking | Op::SemaphoreWait | Op::ThreadJoin | Op::Sleep => {
            representative(other) == Op::OnceBegin as u64
        }
        _ => false,
    }
}
