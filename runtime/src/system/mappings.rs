//! What the kernel says of the process's mappings.

use crate::system::sys::{self, syscall};
use rashomon_logic::mappings::Line;

/// Whether an address lies in a mapping that other processes may see: an object there that says it is shared is beyond the model.
/// Objects that are marked as shared in private memory are not.
pub fn is_shared(address: u64) -> bool {
    let mut buffer = [0u8; 1024];
    let (mut line, mut shared) = (Line::default(), None);
    // SAFETY: a terminated path. O_CLOEXEC
    let file = unsafe { syscall!(sys::OPENAT, -100isize, c"/proc/thread-self/maps".as_ptr(), 0o2000000, 0) };
    if file < 0 {
        return true;
    }
    while shared.is_none() {
        // SAFETY: our own descriptor and buffer.
        let length = unsafe { syscall!(sys::READ, file, buffer.as_mut_ptr(), buffer.len()) };
        if length <= 0 {
            break;
        }
        shared = buffer[..length as usize].iter().find_map(|&byte| {
            let complete = line.takes(byte).then(|| core::mem::take(&mut line))?;
            (complete.numbers[0]..complete.numbers[1]).contains(&address).then_some(complete.rights[3] == b's')
        });
    }
    // SAFETY: our own descriptor.
    unsafe { syscall!(sys::CLOSE, file) };
    shared.unwrap_or(true)
}
