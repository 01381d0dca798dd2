//! The `provoked` file as typed values: what came of each descriptor, and who was caught with whom.
//!
//! Whatever the process was doing when it ended, every catch that is marked as done is whole.

use crate::bytes::get_word;
use crate::error::TraceError;
use rashomon_abi::PROVOKED_FILE;
use rashomon_abi::provoke::{
    CATCH_WORDS, HEAD_WORDS, LOG_ENTRIES, MAGIC, MAX_CATCHES, MAX_DESCRIPTORS, SIDE_FRAMES, SIDE_PATH, SIDE_WORDS, STATE_WORDS,
    catch, head, log, side, state,
};
use rashomon_event::{AccessClass, ThreadPath};
use rashomon_files::Links;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

/// What came of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DescriptorState {
    /// Accesses that matched.
    pub matches: u64,
    /// Of these, those that should have been held while another thread was.
    pub skipped: u64,
    pub holds: u64,
    /// How the holds ended: see `rashomon_abi::provoke::state`.
    pub caught: u64,
    pub blocked: u64,
    pub polling: u64,
    pub timed_out: u64,
    pub cut_short: u64,
    pub held: Duration,
}

/// One of two threads that stood at conflicting accesses. Addresses are of that execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatchSide {
    pub thread: ThreadPath,
    /// What the program calls the thread; 0: nothing.
    pub identity: u64,
    pub class: AccessClass,
    pub atomic: bool,
    pub address: u64,
    pub bytes: u64,
    /// The return address of the access's call into the runtime.
    pub site: u64,
    /// Call sites, innermost first.
    pub frames: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catch {
    pub descriptor: usize,
    /// Of the match at which the thread was held.
    pub ordinal: u64,
    pub held_for: Duration,
    pub held: CatchSide,
    pub arrived: CatchSide,
}

/// How a hold ended: see `rashomon_abi::provoke::state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldEnd {
    Caught,
    Blocked,
    Polling,
    TimedOut,
    CutShort,
}

/// Something that happened at a descriptor. Threads are numbered in the order in which they were created in that execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Match {
        descriptor: usize,
        thread: u32,
    },
    Hold {
        descriptor: usize,
        thread: u32,
    },
    /// A thread did more than wait during the hold that ends next.
    Ran {
        thread: u32,
    },
    End {
        descriptor: usize,
        how: HoldEnd,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Provoked {
    pub descriptors: Vec<DescriptorState>,
    pub catches: Vec<Catch>,
    /// What happened, in order.
    pub log: Vec<Step>,
    /// Time of all holds, and that threads waited for the favoured one.
    pub held: Duration,
    pub head_start: Duration,
}

/// Bytes of a file that is read at most.
const LARGEST: u64 = 1 << 28;

impl Provoked {
    /// `None`: the execution did not get so far as to make the file.
    pub fn read(session: &Path) -> Result<Option<Self>, TraceError> {
        let path = session.join(PROVOKED_FILE);
        let bytes = match rashomon_files::read(&path, Links::Refused, LARGEST) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(TraceError::Io { action: "read", path, source }),
        };
        match Self::parse(&bytes) {
            Ok(provoked) => Ok(provoked),
            Err((index, what)) => Err(TraceError::Corrupt { path, offset: index as u64 * 8, what: what.into() }),
        }
    }

    /// Word and reason where the bytes are not what they should be.
    fn parse(bytes: &[u8]) -> Result<Option<Self>, (usize, &'static str)> {
        let word = |index: usize| get_word(bytes, index).ok_or((index, "the file is cut short"));
        if bytes.is_empty() || word(head::MAGIC)? == 0 {
            return Ok(None);
        }
        if word(head::MAGIC)? != MAGIC {
            return Err((head::MAGIC, "this is no file of a provocation"));
        }
        if word(head::VERSION)? != u64::from(rashomon_abi::PROTOCOL_VERSION) {
            return Err((head::VERSION, "it is of another protocol version"));
        }
        let count = word(head::DESCRIPTORS)?;
        if count > MAX_DESCRIPTORS as u64 {
            return Err((head::DESCRIPTORS, "too many descriptors"));
        }
        let count = count as usize;
        let mut provoked = Self {
            held: Duration::from_nanos(word(head::HELD)?),
            head_start: Duration::from_nanos(word(head::HEAD_START)?),
            ..Self::default()
        };
        for descriptor in 0..count {
            let of = |index: usize| word(HEAD_WORDS + descriptor * STATE_WORDS + index);
            provoked.descriptors.push(DescriptorState {
                matches: of(state::MATCHES)?,
                skipped: of(state::SKIPPED)?,
                holds: of(state::HOLDS)?,
                caught: of(state::CAUGHT)?,
                blocked: of(state::BLOCKED)?,
                polling: of(state::POLLING)?,
                timed_out: of(state::TIMED_OUT)?,
                cut_short: of(state::CUT_SHORT)?,
                held: Duration::from_nanos(of(state::HELD)?),
            });
        }
        let caught = word(head::CATCHES)?.min(MAX_CATCHES as u64) as usize;
        for number in 0..caught {
            let start = HEAD_WORDS + count * STATE_WORDS + number * CATCH_WORDS;
            if word(start + catch::DONE)? == 0 {
                continue;
            }
            let descriptor = word(start + catch::DESCRIPTOR)?;
            if descriptor >= count as u64 {
                return Err((start + catch::DESCRIPTOR, "there is no such descriptor"));
            }
            let one = start + catch::SIDES;
            provoked.catches.push(Catch {
                descriptor: descriptor as usize,
                ordinal: word(start + catch::ORDINAL)?,
                held_for: Duration::from_nanos(word(start + catch::HELD)?),
                held: parse_side(&word, one)?,
                arrived: parse_side(&word, one + SIDE_WORDS)?,
            });
        }
        let logged = word(head::LOG)?.min(LOG_ENTRIES as u64) as usize;
        let start = HEAD_WORDS + count * STATE_WORDS + MAX_CATCHES * CATCH_WORDS;
        for index in start..start + logged {
            // An entry that was reserved and never written is zero.
            provoked.log.extend(parse_step(word(index)?, count));
        }
        Ok(Some(provoked))
    }
}

fn parse_step(entry: u64, descriptors: usize) -> Option<Step> {
    let descriptor = (entry >> 16 & 0xff_ffff) as usize;
    let thread = (entry >> 40) as u32;
    if descriptor >= descriptors {
        return None;
    }
    match entry & 0xff {
        log::MATCH => Some(Step::Match { descriptor, thread }),
        log::HOLD => Some(Step::Hold { descriptor, thread }),
        log::RAN => Some(Step::Ran { thread }),
        log::END => {
            let how = match (entry >> 8 & 0xff) as usize {
                state::CAUGHT => HoldEnd::Caught,
                state::BLOCKED => HoldEnd::Blocked,
                state::POLLING => HoldEnd::Polling,
                state::TIMED_OUT => HoldEnd::TimedOut,
                state::CUT_SHORT => HoldEnd::CutShort,
                _ => return None,
            };
            Some(Step::End { descriptor, how })
        }
        _ => None,
    }
}

/// What the program calls its threads, by their numbers. Lines that are none are left out: the last may be unfinished.
pub fn identities(session: &Path) -> Result<BTreeMap<u32, u64>, TraceError> {
    const LONGEST: u64 = 1 << 22;
    let path = session.join(rashomon_abi::IDENTITIES_FILE);
    let mut text = String::new();
    match rashomon_files::open(&path, Links::Refused) {
        Ok(file) => file.take(LONGEST).read_to_string(&mut text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(source) => return Err(TraceError::Io { action: "read", path, source }),
    }
    .map_err(|source| TraceError::Io { action: "read", path, source })?;
    let line = |line: &str| {
        let (number, identity) = line.split_once(' ')?;
        Some((number.parse().ok()?, identity.parse().ok()?))
    };
    Ok(text.lines().filter_map(line).collect())
}

fn parse_side(
    word: &impl Fn(usize) -> Result<u64, (usize, &'static str)>,
    start: usize,
) -> Result<CatchSide, (usize, &'static str)> {
    let kind = word(start + side::KIND)?;
    let class = rashomon_abi::record::AccessClass::from_code(kind & 0xff).ok_or((start, "there is no such access"))?;
    let depth = (kind >> 16 & 0xffff).min(SIDE_PATH as u64) as usize;
    let frames = (kind >> 32).min(SIDE_FRAMES as u64) as usize;
    let path = (0..depth).map(|level| Ok((word(start + side::PATH + level / 2)? >> (32 * (level % 2))) as u32));
    Ok(CatchSide {
        thread: ThreadPath(path.collect::<Result<_, (usize, &'static str)>>()?),
        identity: word(start + side::IDENTITY)?,
        class: crate::convert::class_of(class),
        atomic: kind >> 8 & 0xff != 0,
        address: word(start + side::ADDRESS)?,
        bytes: word(start + side::BYTES)?,
        site: word(start + side::SITE)?,
        frames: (0..frames).map(|frame| word(start + side::FRAMES + frame)).collect::<Result<_, _>>()?,
    })
}
