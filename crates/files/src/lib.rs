//! Files that may come from somebody else.
//!
//! A store or a recording is data. Whoever made it may have put a pipe where a file belongs (opening it waits for ever), a device
//! (reading it never ends), or a link (what is written beside us is written elsewhere). Everything here opens without waiting,
//! looks at what it has opened and not at what was there before, and reads no more than it is allowed to.
#![forbid(unsafe_code)]

mod folder;
mod open;

pub use folder::{Entry, Folder, Kind};
pub use open::{Links, end_of_data, open, open_input, own_input, read, read_from};

/// Letters and digits for a name that nobody can foresee.
pub fn unforeseeable() -> std::io::Result<String> {
    Ok(secret::<8>()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Bytes that nobody can foresee.
pub fn secret<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes)
}
