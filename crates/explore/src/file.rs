//! The `exploration` file: encoded before an execution, decoded after it. The layout is `rashomon_abi::exploration`.

use crate::error::ExploreError;
use crate::log::{Log, LogBuilder};
use crate::order_table::{self, Order};
use rashomon_abi::PROTOCOL_VERSION;
use rashomon_abi::exploration::snapshot::refusal;
use rashomon_abi::exploration::{HEAD_WORDS, MAGIC, MOST_WANTED, RECORD_WORDS, SITE_WORDS, WANTED_WORDS, Wanted};
use rashomon_abi::exploration::{accesses, end, field, strategy};
use rashomon_event::CodePlace;
use rashomon_files::Links;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Who is chosen once the decisions are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// The thread that ran, as long as it can; then the lowest number.
    Continue,
    Random,
    /// Change points (d − 1), and the assumed number of steps.
    Pct {
        changes: u64,
        length: u64,
    },
    Pos,
    /// As POS, among those that serve what is wanted.
    Wanted,
    /// By priorities of threads, or as POS; those last that orders make wait.
    Ordered {
        pos: bool,
    },
}

/// Plain accesses at which threads stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VisibleAccesses {
    None,
    /// Modules are indices into the schedule's table.
    Sites(Vec<CodePlace>),
    All,
}

/// What one execution is to do.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub sampling: Sampling,
    pub seed: u64,
    /// Steps after which the execution is ended.
    pub steps: u64,
    pub accesses: &'a VisibleAccesses,
    /// Two threads that stand at conflicting accesses end the execution.
    pub races: bool,
    /// Entry of the control's thread table.
    pub hold: Option<u32>,
    pub prefer: Option<u32>,
    /// Threads, by number, that are asleep at the last decision.
    pub asleep: u64,
    /// Threads, by number, that are chosen when no other one can go on.
    pub last: u64,
    pub decisions: &'a [u32],
    pub wanted: &'a [Wanted],
    pub orders: &'a [Order],
    /// The process is to stand where exploration begins: [`rashomon_confirm::snapshot`].
    pub snapshot: bool,
}

/// Why the exploration ended the execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It did not.
    None,
    Steps,
    /// Redundant: sleep sets.
    Asleep,
    LogFull,
    /// Nobody can go on but the thread that is held.
    Held,
    /// By itself, while threads only repeated themselves.
    Repeating,
    /// The log makes no sense from some record on: what was written there by threads that ran outside their turns. It ends
    /// before.
    Torn,
}

/// Why a process could not be continued more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It never came to where exploration begins.
    NotReached,
    /// No thread of the program decided what follows.
    Nobody,
    /// A thread was in a call into the kernel, or unknown to the runtime.
    Thread,
    Children,
    Descriptor,
    SharedMemory,
    Timer,
    Unsupported,
    Files,
    /// An execution failed from the snapshot as none does from the beginning.
    NotTheSame,
}

impl Refusal {
    pub const fn words(self) -> &'static str {
        match self {
            Self::NotReached => "the program did not come there",
            Self::Nobody => "no thread of the program was running",
            Self::Thread => "a thread was in a call into the kernel, or unknown to the runtime",
            Self::Children => "the program had started other processes",
            Self::Descriptor => "the program had more open than files that it reads",
            Self::SharedMemory => "the program shared memory with other processes",
            Self::Timer => "the program had set a timer",
            Self::Unsupported => "the kernel does not tell what it takes",
            Self::Files => "the program had made, changed or removed files",
            Self::NotTheSame => "an execution from there failed as none from the beginning does",
        }
    }

    /// By its code in `rashomon_abi::exploration::snapshot::refusal`.
    pub const fn of(code: u64) -> Self {
        match code {
            refusal::NOBODY => Self::Nobody,
            refusal::THREAD => Self::Thread,
            refusal::CHILDREN => Self::Children,
            refusal::DESCRIPTOR => Self::Descriptor,
            refusal::SHARED_MEMORY => Self::SharedMemory,
            refusal::TIMER => Self::Timer,
            refusal::UNSUPPORTED => Self::Unsupported,
            refusal::FILES => Self::Files,
            _ => Self::NotReached,
        }
    }
}

/// What the execution left in the file.
#[derive(Clone, Debug)]
pub struct Answer {
    pub log: Log,
    pub end: End,
    /// The first decision that could not be made.
    pub unmet: Option<u64>,
    /// Threads that stood at conflicting accesses.
    pub race: [u32; 2],
    /// Of a process that was to stand, and went on.
    pub refused: Refusal,
}

/// Records that a step can take: choice, pending operation, and now and then a new thread.
const RECORDS_PER_STEP: u64 = 3;
const SPARE_RECORDS: u64 = 1 << 12;
/// No file is longer: the log of four million steps.
const MAX_WORDS: u64 = 1 << 28;

fn log_words(steps: u64) -> u64 {
    (steps.saturating_mul(RECORDS_PER_STEP).saturating_add(SPARE_RECORDS)).saturating_mul(RECORD_WORDS as u64).min(MAX_WORDS)
}

fn sites_of(accesses: &VisibleAccesses) -> &[CodePlace] {
    match accesses {
        VisibleAccesses::Sites(sites) => sites,
        VisibleAccesses::None | VisibleAccesses::All => &[],
    }
}

/// Room for what later executions from the same process are told, beside a decision for each step: sites, inputs, orders.
const ROOM_WORDS: u64 = 1 << 16;

/// Writes the file of a session. The log is a hole until it is written; a process that is to stand has room for longer tables.
pub fn write(path: &Path, request: &Request<'_>) -> Result<(), ExploreError> {
    let bytes = encode(request);
    let room = if request.snapshot { request.steps.saturating_add(ROOM_WORDS).min(MAX_WORDS) } else { 0 };
    let mut file = File::create(path).map_err(ExploreError::io("create", path))?;
    file.write_all(&bytes).map_err(ExploreError::io("write", path))?;
    let length = bytes.len() as u64 + (room + log_words(request.steps)) * 8;
    file.set_len(length).map_err(ExploreError::io("write", path))
}

/// Puts another request into the file of a process that stands, which has it mapped: it keeps its length. False: it is too short.
pub fn rewrite(file: &File, path: &Path, request: &Request<'_>) -> Result<bool, ExploreError> {
    let bytes = encode(request);
    let length = file.metadata().map_err(ExploreError::io("read", path))?.len();
    if bytes.len() as u64 + log_words(request.steps) * 8 > length {
        return Ok(false);
    }
    file.write_all_at(&bytes, 0).map_err(ExploreError::io("write", path))?;
    Ok(true)
}

/// Head and tables.
fn encode(request: &Request<'_>) -> Vec<u8> {
    let mut head = [0u64; HEAD_WORDS];
    head[field::MAGIC] = MAGIC;
    head[field::VERSION] = u64::from(PROTOCOL_VERSION);
    head[field::SEED] = request.seed;
    head[field::STRATEGY] = match request.sampling {
        Sampling::Continue => strategy::CONTINUE,
        Sampling::Random => strategy::RANDOM,
        Sampling::Pos => strategy::POS,
        Sampling::Wanted => strategy::WANTED,
        Sampling::Ordered { pos: false } => strategy::ORDERED,
        Sampling::Ordered { pos: true } => strategy::ORDERED_POS,
        Sampling::Pct { changes, length } => {
            head[field::CHANGES] = changes;
            head[field::LENGTH] = length;
            strategy::PCT
        }
    };
    head[field::STEPS] = request.steps;
    head[field::SNAPSHOT] = u64::from(request.snapshot);
    head[field::ACCESSES] = match request.accesses {
        VisibleAccesses::None => accesses::NONE,
        VisibleAccesses::Sites(_) => accesses::SITES,
        VisibleAccesses::All => accesses::ALL,
    };
    head[field::RACES] = u64::from(request.races);
    head[field::HOLD] = request.hold.map_or(0, |thread| u64::from(thread) + 1);
    head[field::PREFER] = request.prefer.map_or(0, |thread| u64::from(thread) + 1);
    head[field::ASLEEP] = request.asleep;
    head[field::LAST] = request.last;
    head[field::DECISIONS] = request.decisions.len() as u64;
    let sites = sites_of(request.accesses);
    head[field::SITES] = sites.len() as u64;
    let wanted = &request.wanted[..request.wanted.len().min(MOST_WANTED)];
    head[field::WANTED] = wanted.len() as u64;
    let orders = order_table::words(request.orders);
    head[field::ORDER_WORDS] = orders.len() as u64;
    head[field::LOG_WORDS] = log_words(request.steps);
    let sites = sites.iter().flat_map(|site| {
        let module = site.module.map_or(rashomon_abi::control::NO_MODULE, u64::from);
        [module, site.offset]
    });
    let wanted = wanted.iter().flat_map(|wanted| [wanted.wish.code(), wanted.to, wanted.from]);
    let words = head
        .into_iter()
        .chain(request.decisions.iter().map(|&thread| u64::from(thread)))
        .chain(sites)
        .chain(wanted)
        .chain(orders);
    words.flat_map(u64::to_le_bytes).collect()
}

/// Reads what an execution left.
pub fn read(path: &Path) -> Result<Answer, ExploreError> {
    let file = rashomon_files::open(path, Links::Refused).map_err(ExploreError::io("open", path))?;
    read_from(&file, path)
}

/// The same of a file that is open; `path` is for messages.
pub fn read_from(file: &File, path: &Path) -> Result<Answer, ExploreError> {
    // Short logs come with it.
    let mut bytes = vec![0; FIRST_BYTES];
    let read = fill_at(file, &mut bytes, 0).map_err(ExploreError::io("read", path))?;
    bytes.truncate(read);
    let head = bytes.get(..HEAD_WORDS * 8).ok_or(std::io::ErrorKind::UnexpectedEof.into());
    let head: Vec<u64> = words(head.map_err(ExploreError::io("read", path))?).collect();
    let damaged = |word: usize, what: String| ExploreError::Damaged { path: path.to_path_buf(), offset: word as u64 * 8, what };
    if head[field::MAGIC] != MAGIC {
        return Err(damaged(field::MAGIC, "not an exploration file".into()));
    }
    let used = head[field::LOG_USED];
    if used > head[field::LOG_WORDS] || used > MAX_WORDS || !used.is_multiple_of(RECORD_WORDS as u64) {
        return Err(damaged(field::LOG_USED, format!("{used} words cannot be the length of the log")));
    }
    let of = |count: usize, words: usize| head[count].saturating_mul(words as u64);
    let tables = of(field::SITES, SITE_WORDS).saturating_add(of(field::WANTED, WANTED_WORDS));
    let tables = tables.saturating_add(head[field::DECISIONS]).saturating_add(head[field::ORDER_WORDS]).saturating_mul(8);
    let begin = tables.saturating_add(HEAD_WORDS as u64 * 8);
    let end = begin.saturating_add(used * 8);
    if end > bytes.len() as u64 {
        let length = file.metadata().map_err(ExploreError::io("read", path))?.len();
        let read = bytes.len();
        bytes.resize(usize::try_from(end.min(length)).unwrap_or(0).max(read), 0);
        let more = fill_at(file, &mut bytes[read..], read as u64).map_err(ExploreError::io("read", path))?;
        bytes.truncate(read + more);
    }
    let log = usize::try_from(begin).ok().and_then(|begin| bytes.get(begin..bytes.len().min(end as usize)));
    let log = log.ok_or_else(|| damaged(field::DECISIONS, "the file is cut short".into()))?;
    let mut builder = LogBuilder::default();
    // Logs of long executions are large: record by record.
    let torn = log.chunks_exact(RECORD_WORDS * 8).any(|record| {
        let mut read = [0; RECORD_WORDS];
        read.iter_mut().zip(words(record)).for_each(|(into, word)| *into = word);
        builder.record(&read).is_none()
    });
    Ok(Answer {
        log: builder.finish(),
        end: match head[field::END] {
            end::STEPS => End::Steps,
            end::ASLEEP => End::Asleep,
            end::LOG_FULL => End::LogFull,
            end::HELD => End::Held,
            _ if torn => End::Torn,
            _ if head[field::PASSED_OVER] != 0 => End::Repeating,
            _ => End::None,
        },
        unmet: head[field::UNMET].checked_sub(1),
        race: [head[field::RACE_A] as u32, head[field::RACE_B] as u32],
        refused: Refusal::of(head[field::REFUSED]),
    })
}

/// Read at once, whatever the head says.
const FIRST_BYTES: usize = 1 << 14;

/// As many bytes as there are from there on.
fn fill_at(file: &File, bytes: &mut [u8], from: u64) -> std::io::Result<usize> {
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], from + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_abi::exploration::record;
    use std::fs::OpenOptions;

    fn request<'a>(decisions: &'a [u32], accesses: &'a VisibleAccesses, snapshot: bool) -> Request<'a> {
        Request {
            sampling: Sampling::Continue,
            seed: 7,
            steps: 1_000,
            accesses,
            races: false,
            hold: None,
            prefer: None,
            asleep: 0,
            last: 0,
            decisions,
            wanted: &[],
            orders: &[],
            snapshot,
        }
    }

    /// As the runtime does it: records of choices behind the tables, and how many words that are.
    fn log(file: &File, decisions: usize, records: u64) {
        let begin = (HEAD_WORDS + decisions) as u64 * 8;
        for number in 0..records {
            let mut words = [0u64; RECORD_WORDS];
            words[0] = record::head(record::THREAD, number as u32, 0, 0, false);
            let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
            file.write_all_at(&bytes, begin + number * RECORD_WORDS as u64 * 8).unwrap();
        }
        file.write_all_at(&(records * RECORD_WORDS as u64).to_le_bytes(), field::LOG_USED as u64 * 8).unwrap();
    }

    #[test]
    fn a_file_that_is_told_something_else_forgets_what_it_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("exploration");
        write(&path, &request(&[], &VisibleAccesses::All, true)).unwrap();
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let length = file.metadata().unwrap().len();
        // Longer and shorter than what is read at once.
        for (decisions, records) in [(0, 3), (900, 1), (5, 700), (0, 0)] {
            let decisions = vec![1; decisions];
            assert!(rewrite(&file, &path, &request(&decisions, &VisibleAccesses::None, false)).unwrap());
            assert_eq!(read_from(&file, &path).unwrap().log.threads.len(), 0, "nothing happened yet");
            log(&file, decisions.len(), records);
            assert_eq!(read_from(&file, &path).unwrap().log.threads.len(), records as usize);
            assert_eq!(file.metadata().unwrap().len(), length);
        }
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("exploration");
        write(&path, &request(&[], &VisibleAccesses::All, true)).unwrap();
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let before = std::fs::read(&path).unwrap();
        let decisions = vec![0; (1_000 + ROOM_WORDS) as usize];
        assert!(rewrite(&file, &path, &request(&decisions, &VisibleAccesses::All, false)).unwrap());
        std::fs::write(&path, &before).unwrap();
        let decisions = vec![0; (1_001 + ROOM_WORDS) as usize];
        assert!(!rewrite(&file, &path, &request(&decisions, &VisibleAccesses::All, false)).unwrap());
        assert!(std::fs::read(&path).unwrap() == before);
    }
}
