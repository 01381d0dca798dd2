//! Changes of the process's user and root: before them the recording is given to the new user ([`crate::record::owner`]), or the
//! file of reports opened.

use crate::detect;
use crate::record::owner;
use crate::report::output;
use crate::system::real::real;
use crate::system::thread::Runtime;
use core::ffi::{c_char, c_int};

/// Stands for: this one stays.
const SAME: u32 = u32::MAX;

/// In the runtime, if a thread that it knows calls.
fn before(body: impl FnOnce()) {
    if let Some(_runtime) = Runtime::try_enter() {
        if detect::on() {
            output::keep();
        }
        body();
    }
}

/// The effective user is going to be that one.
fn changes_to(user: u32) {
    if user != SAME {
        before(|| owner::give_to(user));
    }
}

unsafe extern "C" fn set(user: u32) -> c_int {
    changes_to(user);
    // SAFETY: a number only.
    unsafe { real!(fn setuid(u32) -> c_int)(user) }
}

unsafe extern "C" fn set_effective(user: u32) -> c_int {
    changes_to(user);
    // SAFETY: a number only.
    unsafe { real!(fn seteuid(u32) -> c_int)(user) }
}

unsafe extern "C" fn set_real_and_effective(real: u32, effective: u32) -> c_int {
    changes_to(effective);
    // SAFETY: numbers only.
    unsafe { real!(fn setreuid(u32, u32) -> c_int)(real, effective) }
}

unsafe extern "C" fn set_all(real: u32, effective: u32, saved: u32) -> c_int {
    changes_to(effective);
    // SAFETY: numbers only.
    unsafe { real!(fn setresuid(u32, u32, u32) -> c_int)(real, effective, saved) }
}

unsafe extern "C" fn set_root(path: *const c_char) -> c_int {
    before(owner::keep);
    // SAFETY: the program's text.
    unsafe { real!(fn chroot(*const c_char) -> c_int)(path) }
}

interpose! {
    setuid => set;
    seteuid => set_effective;
    setreuid => set_real_and_effective;
    setresuid => set_all;
    chroot => set_root;
}
