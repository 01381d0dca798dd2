//! What the runtime tells the *reporter*, a process of the host tool that names addresses, applies suppressions and writes
//! reports as text, and what that answers.
//!
//! They speak over one stream socket, in messages of little-endian 64-bit words, one at a time: the runtime asks, the reporter
//! answers.
//!
//! ```text
//! message:  MAGIC + kind | words of the body | body
//! body:     items, each:  code (low half) and number of words that follow (high half) | words
//! text:     number of bytes | the bytes and then one to eight zeros, so that it ends with a word
//! stack:    number of addresses | return addresses, innermost first
//! ```
//! An item of an unknown code is skipped; words behind those that a reader knows are ignored; words that are missing read as 0.
//! So either side may be newer. No body is longer than [`MAX_BODY`] words; a reader refuses a longer one.
//!
//! | message | from | items |
//! |---|---|---|
//! | [`kind::HELLO`] | runtime, first | PROCESS, OPTIONS, SUPPRESSIONS, DEFAULT_SUPPRESSIONS |
//! | [`kind::MODULES`] | runtime, before the first question and after every change | MODULE of each; replaces what was told before; no answer |
//! | [`kind::WARNING`] | runtime | HEAD and the parts of the warning, NAMED |
//! | [`kind::SYMBOLIZE`] | runtime | STACK, FORMAT |
//! | [`kind::SYMBOLIZE_DATA`] | runtime | ADDRESS, FORMAT |
//! | [`kind::FINISH`] | runtime, at the end of the process | COUNTS |
//! | [`kind::ANSWER`] | reporter | VERDICT, TEXT, SUMMARY, TAIL; DATA |

/// Upper 56 bits of a message's first word; the lowest byte is its [`kind`].
pub const MAGIC: u64 = 0x0054_524f_5045_5200; // "\0REPORT\0"
/// Version of this protocol, told in HELLO. Only a change that the rules above do not cover raises it.
pub const VERSION: u64 = 1;
/// Words of the longest body.
pub const MAX_BODY: u64 = 1 << 18;
/// Words before a body.
pub const HEAD_WORDS: usize = 2;

pub mod kind {
    pub const HELLO: u64 = 1;
    pub const MODULES: u64 = 2;
    pub const WARNING: u64 = 3;
    pub const SYMBOLIZE: u64 = 4;
    pub const SYMBOLIZE_DATA: u64 = 5;
    pub const FINISH: u64 = 6;
    pub const ANSWER: u64 = 7;
}

/// Codes of items, with their words.
pub mod item {
    /// `version, process id`
    pub const PROCESS: u32 = 1;
    /// `text`: options in flag syntax, those of later texts win. May come several times.
    pub const OPTIONS: u32 = 2;
    /// `text`: the contents of the suppression file.
    pub const SUPPRESSIONS: u32 = 3;
    /// `text`: suppressions that the program brings with it.
    pub const DEFAULT_SUPPRESSIONS: u32 = 4;
    /// `load bias, first address, address behind the last, build-id (text, hexadecimal), path (text)`
    pub const MODULE: u32 = 5;
    /// `warning (see super::warning), count of threads like the one shown, signal number, external tag`
    pub const HEAD: u32 = 6;
    /// `flags (see super::access), address, size, thread, external tag, number of
    /// locks, locks: (index of the MUTEX item << 1 | write)…, stack`
    pub const ACCESS: u32 = 7;
    /// `flags (1: suppressions may match it; from bit 8 on: place of the MUTEX that is waited for there, + 1), stack`
    pub const STACK: u32 = 8;
    /// `address, flags (see super::mutex), stack of its creation, or of its first use`
    pub const MUTEX: u32 = 9;
    /// `number, id in the kernel, flags (see super::thread), parent's number, name (text), stack of its creation`
    pub const THREAD: u32 = 10;
    /// `kind (see super::location), address asked for, start, size, thread, descriptor, flags (1: closed), external tag, stack`
    pub const LOCATION: u32 = 11;
    /// `number`: the thread of an edge of a deadlock's cycle, in order.
    pub const UNIQUE_THREAD: u32 = 12;
    /// `stack`: where the reporting thread slept last.
    pub const SLEEP: u32 = 13;
    /// `tag, object type (text), report header (text)`
    pub const TAG: u32 = 14;
    /// `text`: how frames are to be printed.
    pub const FORMAT: u32 = 15;
    /// `address`
    pub const ADDRESS: u32 = 16;
    /// `warnings printed`
    pub const COUNTS: u32 = 17;
    /// Answer. `1: suppressed, do not report`
    pub const VERDICT: u32 = 18;
    /// Answer. `text`: to be printed.
    pub const TEXT: u32 = 19;
    /// Answer. `text`: the summary line, printed next unless the program takes it.
    pub const SUMMARY: u32 = 20;
    /// Answer. `text`: printed last.
    pub const TAIL: u32 = 21;
    /// Answer. `first address, size, name (text)` of the variable asked for.
    pub const DATA: u32 = 22;
    /// `address, function (text), file (text), line, column`: a frame of an address that the program itself names; empty texts
    /// and 0: not known. Several of one address are its frames, innermost first.
    pub const NAMED: u32 = 23;
}

/// What a warning is about.
pub mod warning {
    pub const RACE: u64 = 1;
    /// On the pointer to the virtual functions: construction or destruction against a virtual call.
    pub const VPTR_RACE: u64 = 2;
    /// An access against the release of its memory.
    pub const USE_AFTER_FREE: u64 = 3;
    pub const VPTR_USE_AFTER_FREE: u64 = 4;
    /// On an object of a kind that the program declared.
    pub const EXTERNAL_RACE: u64 = 5;
    pub const THREAD_LEAK: u64 = 6;
    pub const MUTEX_DESTROY_LOCKED: u64 = 7;
    pub const MUTEX_DOUBLE_LOCK: u64 = 8;
    pub const MUTEX_INVALID: u64 = 9;
    pub const MUTEX_BAD_UNLOCK: u64 = 10;
    pub const MUTEX_BAD_READ_LOCK: u64 = 11;
    pub const MUTEX_BAD_READ_UNLOCK: u64 = 12;
    pub const SIGNAL_UNSAFE: u64 = 13;
    pub const ERRNO_IN_SIGNAL: u64 = 14;
    pub const DEADLOCK: u64 = 15;
    pub const MUTEX_WRONG_CONTEXT: u64 = 16;
    /// Threads that wait for each other for ever: of each in order UNIQUE_THREAD and the STACK of its wait.
    pub const DEADLOCKED: u64 = 17;
    /// The same of all threads of a process in which nobody is left to wake them.
    pub const STUCK: u64 = 18;
    /// One above the last.
    pub const END: u64 = 19;
}

/// Flags of ACCESS.
pub mod access {
    pub const WRITE: u64 = 1;
    pub const ATOMIC: u64 = 2;
    /// The release of the memory.
    pub const FREE: u64 = 4;
    pub const VPTR: u64 = 8;
}

/// Flags of MUTEX.
pub mod mutex {
    pub const DESTROYED: u64 = 1;
    /// No call initialised it, so the stack is that of its first use.
    pub const NOT_INITIALISED: u64 = 2;
}

/// Flags of THREAD.
pub mod thread {
    pub const RUNNING: u64 = 1;
    /// Of a pool that the system keeps.
    pub const WORKER: u64 = 2;
    /// Suppressions may match its creation.
    pub const SUPPRESSABLE: u64 = 4;
    /// From this bit on: how many threads its parent had created before it, + 1.
    pub const ORDINAL: u32 = 8;
}

/// Kinds of LOCATION.
pub mod location {
    /// Nothing is known in the process: the reporter looks for a variable of a module.
    pub const STATIC: u64 = 1;
    pub const HEAP: u64 = 2;
    pub const STACK: u64 = 3;
    pub const TLS: u64 = 4;
    pub const DESCRIPTOR: u64 = 5;
}

/// Words that a text of that many bytes takes.
pub const fn text_words(bytes: usize) -> usize {
    2 + bytes / 8
}

/// Builds a message in a buffer. What does not fit makes the message as a whole [incomplete](Writer::finish).
pub struct Writer<'a> {
    words: &'a mut [u64],
    length: usize,
    item: usize,
    full: bool,
}

impl<'a> Writer<'a> {
    /// A message of a [`kind`].
    pub fn new(words: &'a mut [u64], kind: u64) -> Self {
        let mut writer = Self { words, length: 0, item: 0, full: false };
        writer.word(MAGIC | kind);
        writer.word(0);
        writer
    }

    pub fn word(&mut self, word: u64) {
        match self.words.get_mut(self.length) {
            Some(place) => {
                *place = word.to_le();
                self.length += 1;
            }
            None => self.full = true,
        }
    }

    /// Begins an item; the words up to the next are its own.
    pub fn item(&mut self, code: u32) {
        self.close();
        self.item = self.length;
        self.word(u64::from(code));
    }

    fn close(&mut self) {
        if self.item > 0 && !self.full {
            let count = (self.length - self.item - 1) as u64;
            self.words[self.item] = (u64::from_le(self.words[self.item]) | count << 32).to_le();
        }
    }

    pub fn text(&mut self, text: &[u8]) {
        self.word(text.len() as u64);
        for at in (0..=text.len()).step_by(8) {
            let chunk = &text[at..text.len().min(at + 8)];
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(bytes));
        }
    }

    pub fn stack(&mut self, stack: &[u64]) {
        self.word(stack.len() as u64);
        stack.iter().for_each(|&address| self.word(address));
    }

    /// Words left for what is still to come.
    pub fn room(&self) -> usize {
        self.words.len() - self.length
    }

    /// Where the message stands: for [`Writer::rewind`].
    pub fn position(&self) -> (usize, usize) {
        (self.length, self.item)
    }

    /// Takes back all that was written since.
    pub fn rewind(&mut self, (length, item): (usize, usize)) {
        self.length = length;
        self.item = item;
        if item > 0 {
            // The item was open then; its length is set when it is closed again.
            self.words[item] = (u64::from_le(self.words[item]) & 0xffff_ffff).to_le();
        }
        self.full = false;
    }

    /// The words of the message; `None` if it did not fit.
    pub fn finish(mut self) -> Option<&'a [u64]> {
        self.close();
        if self.full || self.length < HEAD_WORDS {
            return None;
        }
        self.words[1] = ((self.length - HEAD_WORDS) as u64).to_le();
        let Self { words, length, .. } = self;
        Some(&words[..length])
    }
}

/// The [`kind`] and body length, in words, that a message's two first words tell; `None` if they are none.
pub const fn head(words: [u64; HEAD_WORDS]) -> Option<(u64, usize)> {
    let (first, length) = (u64::from_le(words[0]), u64::from_le(words[1]));
    if first & !0xff != MAGIC || length > MAX_BODY {
        return None;
    }
    Some((first & 0xff, length as usize))
}

/// Items of a body, each with its code. Ends at the first that is cut short.
#[derive(Clone, Copy, Debug)]
pub struct Items<'a>(&'a [u64]);

impl<'a> Items<'a> {
    pub const fn new(body: &'a [u64]) -> Self {
        Self(body)
    }

    /// What is left behind the last whole item: nothing in a sound message.
    pub const fn rest(&self) -> usize {
        self.0.len()
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = (u32, Reader<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (&first, behind) = self.0.split_first()?;
        let first = u64::from_le(first);
        let (words, behind) = behind.split_at_checked((first >> 32) as usize)?;
        self.0 = behind;
        Some((first as u32, Reader(words)))
    }
}

/// Reads the words of an item. Behind the end everything is 0 or empty.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u64]);

impl<'a> Reader<'a> {
    pub const fn new(words: &'a [u64]) -> Self {
        Self(words)
    }

    pub fn word(&mut self) -> u64 {
        match self.0.split_first() {
            Some((&word, rest)) => {
                self.0 = rest;
                u64::from_le(word)
            }
            None => 0,
        }
    }

    /// As many words as the next one says, or as there are; still little-endian.
    pub fn words(&mut self) -> &'a [u64] {
        let count = usize::try_from(self.word()).unwrap_or(usize::MAX).min(self.0.len());
        let (words, rest) = self.0.split_at(count);
        self.0 = rest;
        words
    }

    /// Return addresses, innermost first.
    pub fn stack(&mut self) -> impl ExactSizeIterator<Item = u64> + Clone + use<'a> {
        self.words().iter().map(|&word| u64::from_le(word))
    }

    /// A text as the words that hold it and the number of its bytes.
    pub fn packed_text(&mut self) -> (&'a [u64], usize) {
        let bytes = usize::try_from(self.word()).unwrap_or(usize::MAX).min(self.0.len() * 8);
        let (words, rest) = self.0.split_at((bytes / 8 + 1).min(self.0.len()));
        self.0 = rest;
        (words, bytes)
    }

    /// The bytes of a text.
    pub fn text(&mut self) -> impl ExactSizeIterator<Item = u8> + Clone + use<'a> {
        let (words, bytes) = self.packed_text();
        (0..bytes).map(move |at| (u64::from_le(words[at / 8]) >> (at % 8 * 8)) as u8)
    }
}
