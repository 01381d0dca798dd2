//! Where the frames of functions lie on their thread's stack: with the debug information, that names local variables.
//!
//! The shadow stack has the return address of each function and a stack pointer inside it. The return address is looked for
//! between the two: where the caller's own call into the runtime left its stack pointer, as a function calls all others from
//! there, and else from the callee upwards.

use crate::system::tls::Call;

/// Words of a frame that are looked at.
const LONGEST: u64 = 1 << 13;

/// The canonical frame address of the callee: the one behind its return address. `None`: it was not found.
///
/// # Safety
/// The stack is the thread's own, and the call is on its shadow stack: memory from its stack pointer to the stack's end is there.
pub unsafe fn address((low, high): (u64, u64), callee: Call, caller: Option<Call>) -> Option<u64> {
    let lowest = (callee.stack_pointer.wrapping_add(8) + 7) & !7;
    let limit = high & !7;
    if lowest <= low || lowest >= limit {
        return None;
    }
    // SAFETY: by the contract.
    let holds_site = |slot: u64| unsafe { (slot as *const u64).read() == callee.site };
    let expected = caller.map(|call| call.stack_pointer).filter(|slot| slot % 8 == 0 && (lowest..limit).contains(slot));
    let end = expected.unwrap_or(limit).min(lowest.saturating_add(8 * LONGEST));
    let found = expected.filter(|slot| holds_site(*slot)).or_else(|| {
        let mut slots = (lowest..end).step_by(8);
        slots.find(|slot| holds_site(*slot))
    });
    found.map(|slot| slot + 8)
}
