//! One step of one thread, in twelve bytes.

/// What a thread did. The numbers are those of the file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Op {
    /// Plain accesses of a variable.
    Read = 0,
    Write = 1,
    /// Atomic accesses of a variable; [`Event::order`] says what they order. An update reads, then writes.
    AtomicRead = 2,
    AtomicWrite = 3,
    AtomicUpdate = 4,
    /// A lock, exclusively.
    Acquire = 5,
    Release = 6,
    /// A lock, together with other readers.
    AcquireShared = 7,
    ReleaseShared = 8,
    /// The thread asks for a lock, exclusively; the `Acquire` follows if it ever got it.
    Request = 9,
    RequestShared = 10,
    /// The target is a thread.
    Fork = 11,
    Join = 12,
    /// A region that should be atomic; the target is the region's name. Regions nest.
    Begin = 13,
    End = 14,
    /// Everything before a `ReleaseObject` is ordered before everything behind a later `AcquireObject` of the same object:
    /// semaphores, signals, queues, once routines.
    ReleaseObject = 15,
    AcquireObject = 16,
    /// Of a barrier's generation: every `Enter` is ordered before every `Exit`.
    Enter = 17,
    Exit = 18,
    /// The variable's life ends: whoever has its number from here on is another one.
    Forget = 19,
    /// A branch that depends on what was read.
    Branch = 20,
    /// Memory fence; [`Event::order`] says which.
    Fence = 21,
    /// Orders nothing, is no access.
    Nothing = 22,
}

impl Op {
    pub const COUNT: u8 = 23;

    pub const fn from_number(number: u8) -> Option<Self> {
        const ALL: [Op; Op::COUNT as usize] = [
            Op::Read,
            Op::Write,
            Op::AtomicRead,
            Op::AtomicWrite,
            Op::AtomicUpdate,
            Op::Acquire,
            Op::Release,
            Op::AcquireShared,
            Op::ReleaseShared,
            Op::Request,
            Op::RequestShared,
            Op::Fork,
            Op::Join,
            Op::Begin,
            Op::End,
            Op::ReleaseObject,
            Op::AcquireObject,
            Op::Enter,
            Op::Exit,
            Op::Forget,
            Op::Branch,
            Op::Fence,
            Op::Nothing,
        ];
        if number < Self::COUNT { Some(ALL[number as usize]) } else { None }
    }

    /// What it is called in messages and listings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::AtomicRead => "atomic read",
            Self::AtomicWrite => "atomic write",
            Self::AtomicUpdate => "atomic update",
            Self::Acquire => "acquire",
            Self::Release => "release",
            Self::AcquireShared => "acquire shared",
            Self::ReleaseShared => "release shared",
            Self::Request => "request",
            Self::RequestShared => "request shared",
            Self::Fork => "fork",
            Self::Join => "join",
            Self::Begin => "begin",
            Self::End => "end",
            Self::ReleaseObject => "release object",
            Self::AcquireObject => "acquire object",
            Self::Enter => "enter",
            Self::Exit => "exit",
            Self::Forget => "forget",
            Self::Branch => "branch",
            Self::Fence => "fence",
            Self::Nothing => "nothing",
        }
    }

    /// Plain or atomic.
    pub const fn is_access(self) -> bool {
        (self as u8) <= Self::AtomicUpdate as u8
    }

    pub const fn is_plain(self) -> bool {
        (self as u8) <= Self::Write as u8
    }

    pub const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::AtomicRead | Self::AtomicUpdate)
    }

    pub const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::AtomicWrite | Self::AtomicUpdate)
    }

    /// Which table the target's number belongs to.
    pub const fn space(self) -> Option<Space> {
        Some(match self {
            Self::Read | Self::Write | Self::AtomicRead | Self::AtomicWrite | Self::AtomicUpdate | Self::Forget => {
                Space::Variable
            }
            Self::Acquire | Self::Release | Self::AcquireShared | Self::ReleaseShared | Self::Request | Self::RequestShared => {
                Space::Lock
            }
            Self::Fork | Self::Join => Space::Thread,
            Self::Begin | Self::End => Space::Region,
            Self::ReleaseObject | Self::AcquireObject | Self::Enter | Self::Exit => Space::Object,
            Self::Branch | Self::Fence | Self::Nothing => return None,
        })
    }
}

/// Numbers are dense, from 0, in each of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    Thread,
    Variable,
    Lock,
    Region,
    /// Semaphores, barriers (one number a generation) and whatever else orders.
    Object,
    Location,
}

impl Space {
    pub const COUNT: usize = 6;
    pub const ALL: [Self; Self::COUNT] = [Self::Thread, Self::Variable, Self::Lock, Self::Region, Self::Object, Self::Location];

    /// What a number without a name is called by.
    pub const fn letter(self) -> char {
        match self {
            Self::Thread => 'T',
            Self::Variable => 'V',
            Self::Lock => 'L',
            Self::Region => 'R',
            Self::Object => 'O',
            Self::Location => 'P',
        }
    }

    /// What one of them is called in messages.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Variable => "variable",
            Self::Lock => "lock",
            Self::Region => "region",
            Self::Object => "object",
            Self::Location => "location",
        }
    }

    /// How many numbers there can be.
    pub const fn limit(self) -> u32 {
        match self {
            Self::Thread => 1 << 16,
            _ => u32::MAX,
        }
    }
}

/// What an atomic access or a fence orders.
pub mod order {
    pub const ACQUIRES: u8 = 1;
    pub const RELEASES: u8 = 2;
    pub const SEQUENTIALLY_CONSISTENT: u8 = 4;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Event {
    /// A variable, lock, thread, …: see [`Op::space`].
    pub target: u32,
    /// Where in the program; 0 is nowhere in particular.
    pub location: u32,
    pub thread: u16,
    pub op: Op,
    /// Bits of [`order`], of atomic accesses and fences.
    pub order: u8,
}

impl Event {
    pub const fn new(thread: u16, op: Op, target: u32, location: u32) -> Self {
        Self { target, location, thread, op, order: 0 }
    }

    /// Plain or atomic accesses of one variable by different threads, at least one of which writes and one of which is plain.
    pub const fn conflicts(&self, other: &Self) -> bool {
        self.op.is_access()
            && other.op.is_access()
            && self.target == other.target
            && self.thread != other.thread
            && (self.op.writes() || other.op.writes())
            && (self.op.is_plain() || other.op.is_plain())
    }
}

const _: () = assert!(size_of::<Event>() == 12);
