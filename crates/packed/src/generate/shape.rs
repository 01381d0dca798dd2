//! What a made-up trace looks like.

/// Names of regions.
pub(super) const REGIONS: u32 = 64;

/// Shares are between 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    pub events: u64,
    pub threads: u32,
    pub locks: u32,
    /// Locks that a thread holds at the same time, at most.
    pub nesting: u32,
    /// Variables of all kinds; what the racy and the read-shared ones leave is shared out to locks and threads by halves.
    pub variables: u32,
    pub racy: u32,
    pub read_shared: u32,
    pub locations: u32,
    /// Share of accesses inside critical sections, roughly.
    pub locked: f64,
    /// Share of accesses that go to racy variables.
    pub race_rate: f64,
    /// Share of reads among accesses of variables that may be written.
    pub reads: f64,
    /// A thread's locks are taken in the order of their numbers: no deadlock is possible.
    pub ordered: bool,
    /// Whether requests of locks are events.
    pub requests: bool,
    /// Whether threads begin and end regions.
    pub transactions: bool,
    pub seed: u64,
}

/// Shapes with names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// 12 threads, 100 locks, one at a time; variables fit a second-level cache.
    Flat,
    /// 16 threads, up to four locks at a time.
    Nest,
    /// As `Flat`, with 10^7 variables.
    Wide,
    /// As `Flat`, with regions.
    Regions,
}

impl Preset {
    pub fn shape(self, events: u64, seed: u64) -> Shape {
        let flat = Shape {
            events,
            threads: 12,
            locks: 100,
            nesting: 1,
            variables: 6_850,
            racy: 50,
            read_shared: 2_000,
            locations: 5_000,
            locked: 0.4,
            race_rate: 0.0,
            reads: 0.7,
            ordered: true,
            requests: false,
            transactions: false,
            seed,
        };
        match self {
            Self::Flat => flat,
            Self::Nest => Shape { threads: 16, nesting: 4, ..flat },
            Self::Wide => Shape { threads: 16, variables: 10_000_000, ..flat },
            Self::Regions => Shape { transactions: true, ..flat },
        }
    }
}

/// Variables of a kind, one behind the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool {
    pub first: u32,
    pub variables: u32,
    /// Share of reads, as a part of 2^16.
    pub reads: u32,
}

/// What follows from a shape: first numbers of each kind of variables, and shares as parts of 2^16.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub per_lock: u32,
    pub per_thread: u32,
    pub local_first: u32,
    pub shared_first: u32,
    pub racy_first: u32,
    pub variables: u32,
    pub racy: u32,
    pub read_shared: u32,
    pub reads: u32,
    /// Chance to enter a critical section when the thread's turn comes.
    pub enters: u32,
    inside: usize,
    outside: usize,
}

impl Layout {
    pub fn of(shape: &Shape) -> Result<Self, String> {
        let shares = [("locked", shape.locked), ("race rate", shape.race_rate), ("reads", shape.reads)];
        if let Some((name, share)) = shares.into_iter().find(|(_, share)| !(0.0..=1.0).contains(share)) {
            return Err(format!("the share called {name} is {share}, and not between 0 and 1"));
        }
        if !(1..=1 << 16).contains(&shape.threads) {
            return Err(format!("{} threads; there can be 1 to 65536", shape.threads));
        }
        if shape.locks == 0 && (shape.locked > 0.0 || shape.nesting > 0) {
            return Err("critical sections need locks: with none, --locked and --nesting must be 0".into());
        }
        if shape.locks > 0 && shape.nesting == 0 {
            return Err("with a nesting of 0 no lock is ever taken: --locks must be 0, too".into());
        }
        if shape.locks > 1 << 24 || shape.locations == 0 || shape.locations > 1 << 24 || shape.nesting > 1 << 10 {
            return Err("at most 2^24 locks, 1 to 2^24 locations, a nesting of at most 1024".into());
        }
        if shape.variables > 1 << 27 {
            return Err("at most 2^27 variables".into());
        }
        if shape.race_rate > 0.0 && shape.racy == 0 {
            return Err("a race rate needs racy variables".into());
        }
        let divided = u64::from(shape.variables)
            .checked_sub(u64::from(shape.racy) + u64::from(shape.read_shared))
            .ok_or("fewer variables than the racy and the read-shared ones")?;
        let protected = if shape.locks > 0 { divided * 4 / 7 } else { 0 };
        let per_lock = if shape.locks > 0 { protected / u64::from(shape.locks) } else { 0 };
        let per_thread = (divided - per_lock * u64::from(shape.locks)) / u64::from(shape.threads);
        if per_thread == 0 || shape.locks > 0 && per_lock == 0 {
            return Err("too few variables: each thread and each lock needs one of its own".into());
        }
        let local_first = per_lock as u32 * shape.locks;
        let shared_first = local_first + per_thread as u32 * shape.threads;
        let racy_first = shared_first + shape.read_shared;
        let part = |share: f64| (share * 65536.0) as u32;
        let racy = part(shape.race_rate);
        // Every critical section, however deep, has as many accesses on average; so the chance to enter decides the share.
        let depth = f64::from(shape.nesting.min(3)).max(1.0);
        let (inside, outside) = (8.0, 8.0);
        let weight = depth * inside / outside;
        let enters = if shape.locked >= 1.0 { 1.0 } else { shape.locked / (shape.locked + (1.0 - shape.locked) * weight) };
        let needed = u64::from(shape.read_shared) + 2 * (u64::from(shape.threads) - 1);
        if shape.events < needed {
            return Err(format!("{} events; this shape needs {needed} to begin and to end", shape.events));
        }
        Ok(Self {
            per_lock: per_lock as u32,
            per_thread: per_thread as u32,
            local_first,
            shared_first,
            racy_first,
            variables: racy_first + shape.racy,
            racy,
            read_shared: if shape.read_shared > 0 { racy + (65536 - racy) / 5 } else { 0 },
            reads: part(shape.reads),
            enters: part(enters),
            inside: inside as usize,
            outside: outside as usize,
        })
    }

    /// The kinds of variables that a thread accesses while it holds the lock, and where one kind ends and the next begins.
    #[inline]
    pub fn pools(&self, shape: &Shape, thread: u32, lock: Option<u32>) -> ([Pool; 3], [u32; 2]) {
        let racy = Pool { first: self.racy_first, variables: shape.racy, reads: self.reads };
        let Some(lock) = lock else {
            let shared = Pool { first: self.shared_first, variables: shape.read_shared, reads: 1 << 16 };
            let local =
                Pool { first: self.local_first + thread * self.per_thread, variables: self.per_thread, reads: self.reads };
            return ([racy, shared, local], [self.racy, self.read_shared.max(self.racy)]);
        };
        let protected = Pool { first: lock * self.per_lock, variables: self.per_lock, reads: self.reads };
        ([racy, protected, protected], [self.racy, self.racy])
    }

    /// Longest run of accesses.
    #[inline]
    pub fn burst(&self, inside: bool) -> usize {
        if inside { self.inside } else { self.outside }
    }
}
