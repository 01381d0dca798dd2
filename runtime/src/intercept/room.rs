//! Room on the stacks of threads.
//!
//! A program may give its threads stacks that are just large enough for what they do. Hooks run on them too, and so does opening
//! the next part of a recording: such a stack is made larger. One that the program has allocated itself stays as it is.

use crate::system::real::real;
use core::ffi::c_int;

/// Bytes on the stack that the runtime may need below the program's own frames.
const ROOM: usize = 256 << 10;
/// A stack of so many bytes has room.
const LARGE: usize = 1 << 20;

/// Attributes of a thread, in the C library's own form.
pub type Attributes = [u64; 7];

/// The same attributes with a larger stack; none, if they need not or cannot have one. The copy is for one call.
///
/// # Safety
/// `attributes` are initialised, or null.
pub unsafe fn with_room(attributes: *const u8) -> Option<Attributes> {
    if attributes.is_null() {
        return None;
    }
    let (mut address, mut bytes) = (0usize, 0usize);
    // SAFETY: initialised attributes. The C library's own are plain words, which it reads while it makes a thread.
    let mut copy = unsafe {
        if real!(fn pthread_attr_getstack(*const u8, *mut usize, *mut usize) -> c_int)(attributes, &mut address, &mut bytes) != 0
        {
            return None;
        }
        attributes.cast::<Attributes>().read_unaligned()
    };
    // Without an address it tells the end of a stack that begins at zero.
    let is_own = address.wrapping_add(bytes) != 0;
    if is_own || bytes == 0 || bytes >= LARGE {
        return None;
    }
    // SAFETY: the copy is as good as they are.
    let error = unsafe { real!(fn pthread_attr_setstacksize(*mut u64, usize) -> c_int)(copy.as_mut_ptr(), bytes + ROOM) };
    (error == 0).then_some(copy)
}
