//! Whom the recording belongs to when the program changes its user, as servers that are started by root do: the files and the
//! folder are given to the new one before, so that recording goes on.
//!
//! Limits: processes that the program makes later run unobserved, as their folders lie where the new user may not get to; calls
//! made by number are not seen.

use crate::system::{config, folder, thread};
use rashomon_abi::{IDENTITIES_FILE, MODULES_FILE, THREAD_FILE_PREFIX};

/// The program's root is about to change.
pub fn keep() {
    if config::mode() != 0 {
        folder::keep();
    }
}

/// The program's user is about to change.
pub fn give_to(user: u32) {
    if config::mode() == 0 {
        return;
    }
    folder::keep();
    for name in [MODULES_FILE, IDENTITIES_FILE] {
        folder::give(Some((name.as_bytes(), None)), user);
    }
    for thread in thread::all() {
        folder::give(Some((THREAD_FILE_PREFIX.as_bytes(), Some(thread.number.get()))), user);
    }
    // Last: until then nobody else can put anything in a file's place.
    folder::give(None, user);
}
