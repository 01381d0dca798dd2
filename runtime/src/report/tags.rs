//! Kinds of objects that the program watches itself (`__tsan_external_*`): their names, and the headers of reports about them.

use crate::system::lock::RawLock;
use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

/// As many as ThreadSanitizer has.
const MOST: usize = 16;
/// The first tag that is given out: 0 is none, 1 stands for Swift.
const FIRST: u32 = 2;

static COUNT: AtomicU32 = AtomicU32::new(FIRST);
static LOCK: RawLock = RawLock::new();
/// Addresses of texts of the program's: object type and header.
static TEXTS: [[AtomicUsize; 2]; MOST] = [const { [const { AtomicUsize::new(0) }; 2] }; MOST];

/// A report's header, unless the program gives another one: this and the object type.
const HEADER: &[u8] = b"race on ";
static mut HEADERS: [[u8; 128]; MOST] = [[0; 128]; MOST];

/// The texts of a tag; `None` if there is no such tag.
pub fn get(tag: u32) -> Option<(&'static [u8], &'static [u8])> {
    match tag {
        0 => None,
        1 => Some((b"Swift variable", b"Swift access race")),
        _ if tag >= COUNT.load(Acquire) => None,
        _ => {
            let [object, header] = TEXTS.get(tag as usize)?;
            // Terminated texts, given to us for good.
            let text = |address: &AtomicUsize| match address.load(Acquire) as *const c_char {
                none if none.is_null() => &b""[..],
                // SAFETY: by the interface.
                text => unsafe { CStr::from_ptr(text) }.to_bytes(),
            };
            Some((text(object), text(header)))
        }
    }
}

/// A new tag; the last one again when there are too many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_external_register_tag(object: *const c_char) -> usize {
    LOCK.with(|| {
        let tag = COUNT.load(Acquire).min(MOST as u32 - 1);
        let header = &raw mut HEADERS;
        // SAFETY: guarded by LOCK, and known to nobody before it is stored; a terminated text of the program's.
        unsafe {
            let header = &mut (*header)[tag as usize];
            let text = CStr::from_ptr(object).to_bytes();
            let length = text.len().min(header.len() - HEADER.len() - 1);
            header[..HEADER.len()].copy_from_slice(HEADER);
            header[HEADER.len()..][..length].copy_from_slice(&text[..length]);
            header[HEADER.len() + length] = 0;
            TEXTS[tag as usize][1].store(header.as_ptr() as usize, Release);
        }
        TEXTS[tag as usize][0].store(object as usize, Release);
        COUNT.store((tag + 1).min(MOST as u32), Release);
        tag as usize
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_external_register_header(tag: usize, header: *const c_char) {
    if let Some([_, place]) = TEXTS.get(tag) {
        place.store(header as usize, Release);
    }
}
