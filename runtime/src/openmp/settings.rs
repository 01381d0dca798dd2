//! The internal control variables: from the environment, and for each task.

use crate::system::processor;
use crate::system::real;
use crate::system::thread::Runtime;
use core::sync::atomic::{AtomicU32, Ordering::*};

/// How iterations are handed out.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    Static = 1,
    Dynamic = 2,
    Guided = 3,
    Auto = 4,
}

impl Kind {
    pub fn of(code: u32) -> Self {
        match code & 0xffff {
            2 => Self::Dynamic,
            3 => Self::Guided,
            4 => Self::Auto,
            _ => Self::Static,
        }
    }
}

/// Those of a task.
#[derive(Clone, Copy)]
pub struct Settings {
    pub threads: u32,
    pub dynamic: bool,
    pub kind: Kind,
    pub chunk: i32,
    pub max_active_levels: u32,
}

pub const MOST_LEVELS: u32 = 255;
const MOST_THREADS: u32 = 4096;

impl Settings {
    /// Of the implicit tasks of a region at this level.
    pub fn for_level(mut self, level: u32) -> Self {
        static LISTED: AtomicU32 = AtomicU32::new(0);
        let _runtime = Runtime::try_enter();
        if LISTED.load(Relaxed) == 0 {
            LISTED.store(1 + u32::from(listed(b"OMP_NUM_THREADS", 1).is_some()), Relaxed);
        }
        if LISTED.load(Relaxed) > 1
            && let Some(threads) = listed(b"OMP_NUM_THREADS", level as usize)
        {
            self.threads = (threads as u32).clamp(1, MOST_THREADS);
        }
        self
    }
}

/// Outside of every region.
pub fn initial() -> Settings {
    let levels = listed(b"OMP_MAX_ACTIVE_LEVELS", 0).map(|levels| (levels as u32).min(MOST_LEVELS));
    let several = listed(b"OMP_NUM_THREADS", 1).is_some() || is_true(b"OMP_NESTED");
    let (kind, chunk) = schedule();
    Settings {
        threads: listed(b"OMP_NUM_THREADS", 0).map_or_else(processors, |threads| (threads as u32).clamp(1, MOST_THREADS)),
        dynamic: is_true(b"OMP_DYNAMIC"),
        kind,
        chunk,
        max_active_levels: levels.unwrap_or(if several { MOST_LEVELS } else { 1 }),
    }
}

pub fn thread_limit() -> u32 {
    static KNOWN: AtomicU32 = AtomicU32::new(0);
    if KNOWN.load(Relaxed) == 0 {
        let _runtime = Runtime::try_enter();
        let limit = listed(b"OMP_THREAD_LIMIT", 0).map_or(MOST_THREADS, |limit| (limit as u32).clamp(1, MOST_THREADS));
        KNOWN.store(limit, Relaxed);
    }
    KNOWN.load(Relaxed)
}

pub fn stack_size() -> Option<usize> {
    let _runtime = Runtime::try_enter();
    let text = real::environment(b"OMP_STACKSIZE")?.trim_ascii();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = number(&text[..digits])?;
    let factor = match text[digits..].trim_ascii().first() {
        Some(b'b' | b'B') => 1,
        Some(b'm' | b'M') => 1 << 20,
        Some(b'g' | b'G') => 1 << 30,
        _ => 1 << 10,
    };
    number.checked_mul(factor).map(|bytes| (bytes as usize).max(1 << 16))
}

fn schedule() -> (Kind, i32) {
    let Some(text) = real::environment(b"OMP_SCHEDULE") else { return (Kind::Dynamic, 1) };
    // A modifier may stand before the kind.
    let text = text.rsplit(|&byte| byte == b':').next().unwrap_or(text).trim_ascii();
    let mut parts = text.split(|&byte| byte == b',');
    let name = parts.next().unwrap_or_default().trim_ascii();
    let chunk = parts.next().and_then(|chunk| number(chunk.trim_ascii())).unwrap_or(0).min(i32::MAX as u64) as i32;
    let kind = match name.first().map(u8::to_ascii_lowercase) {
        Some(b's') => Kind::Static,
        Some(b'g') => Kind::Guided,
        Some(b'a') => Kind::Auto,
        _ => Kind::Dynamic,
    };
    (kind, if chunk == 0 && kind != Kind::Static { 1 } else { chunk })
}

/// The processors that this process may use.
pub fn processors() -> u32 {
    static KNOWN: AtomicU32 = AtomicU32::new(0);
    match KNOWN.load(Relaxed) {
        0 => {
            let count = processor::count();
            KNOWN.store(count, Relaxed);
            count
        }
        known => known,
    }
}

/// Whether regions can be cancelled.
pub fn cancellation() -> bool {
    is_true(b"OMP_CANCELLATION")
}

fn is_true(name: &[u8]) -> bool {
    real::environment(name).is_some_and(|value| value.trim_ascii().eq_ignore_ascii_case(b"true") || value.trim_ascii() == b"1")
}

/// An entry of a list of numbers.
fn listed(name: &[u8], at: usize) -> Option<u64> {
    number(real::environment(name)?.split(|&byte| byte == b',').nth(at)?.trim_ascii()).filter(|value| *value > 0)
}

fn number(digits: &[u8]) -> Option<u64> {
    let text = core::str::from_utf8(digits).ok()?;
    text.parse().ok()
}
