//! Identities of synchronisation objects.
//!
//! The first object at an address is named by the synthetic address of its bytes. Initialising it again, or using it after it was
//! destroyed, begins another object at the same bytes: it gets an address from [`IDENTITY_BASE`] on, where no data lies. So do
//! objects that are no memory (file descriptors, signals, processes). [`SyncObjects`] leads from an identity back to the bytes.

use rashomon_abi::record::{Op, lock_kind, sync_source};
use rashomon_event::Address;
use rustc_hash::FxHashMap;

pub const IDENTITY_BASE: u64 = 1 << 61;
const IDENTITY_STEP: u64 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SyncKind {
    Mutex,
    RwLock,
    Spin,
    /// `flockfile`, annotated user locks.
    OtherLock,
    Condition,
    Barrier,
    Semaphore,
    Once,
    /// What `Release` and `Acquire` name: source as in `rashomon_abi::record::sync_source`.
    Channel {
        source: u16,
    },
}

/// What an identity stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncObject {
    pub identity: Address,
    /// The synthetic address of its bytes; `None` for what is no memory.
    pub data: Option<Address>,
    /// Machine address, or the number (file descriptor, signal, …) where it is no memory.
    pub machine: u64,
    pub kind: SyncKind,
    pub recursive: bool,
    /// 0 for the first object at these bytes.
    pub incarnation: u32,
}

/// All synchronisation objects of a recording, sorted by identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncObjects(Vec<SyncObject>);

impl SyncObjects {
    pub fn get(&self, identity: Address) -> Option<&SyncObject> {
        self.0.binary_search_by_key(&identity, |object| object.identity).ok().map(|at| &self.0[at])
    }
    /// The bytes behind an identity; any other address is returned as it is.
    pub fn data_address(&self, identity: Address) -> Address {
        self.get(identity).and_then(|object| object.data).unwrap_or(identity)
    }
    pub fn iter(&self) -> impl Iterator<Item = &SyncObject> {
        self.0.iter()
    }
}

#[derive(Clone, Copy, Debug)]
struct Current {
    object: u32,
    /// Nothing but its initialisation was seen since it began.
    untouched: bool,
    destroyed: bool,
}

#[derive(Debug, Default)]
pub struct Identities {
    objects: Vec<SyncObject>,
    /// Namespace (0: memory) and address → the object that lives there.
    current: FxHashMap<(u64, u64), Current>,
    fresh: u64,
}

impl SyncKind {
    /// Whether such objects are named by an address, not by a number.
    pub const fn is_memory(self) -> bool {
        match self {
            Self::Channel { source } => matches!(source, sync_source::FUTEX | sync_source::ANNOTATION | sync_source::OTHER),
            _ => true,
        }
    }
    /// Numbers of different sources are different objects.
    const fn namespace(self) -> u64 {
        match self {
            Self::Channel { source } if !self.is_memory() => source as u64,
            _ => 0,
        }
    }
}

impl Identities {
    /// The identity of the object that an operation other than initialisation or destruction names.
    pub fn used(&mut self, kind: SyncKind, data: Address, machine: u64) -> Address {
        self.resolve(kind, data, machine, |current| {
            current.untouched = false;
            std::mem::take(&mut current.destroyed)
        })
    }

    /// Of the lock or the like that lives there, without using it.
    pub fn known(&self, data: Address) -> Address {
        self.current.get(&(0, data.0)).map_or(data, |current| self.objects[current.object as usize].identity)
    }

    pub fn initialised(&mut self, kind: SyncKind, data: Address, machine: u64) -> Address {
        self.resolve(kind, data, machine, |current| {
            current.destroyed = false;
            !std::mem::replace(&mut current.untouched, true)
        })
    }

    pub fn destroyed(&mut self, kind: SyncKind, data: Address, machine: u64) -> Address {
        self.resolve(kind, data, machine, |current| {
            current.destroyed = true;
            current.untouched = false;
            false
        })
    }

    /// `begins_another` says whether the object that lives there is over, and notes what happened to the one that does.
    fn resolve(&mut self, kind: SyncKind, data: Address, machine: u64, begins_another: impl Fn(&mut Current) -> bool) -> Address {
        let space = kind.namespace();
        let place = if space == 0 { data.0 } else { machine };
        let key = (space, place);
        let Some(current) = self.current.get_mut(&key) else {
            let mut current = Current { object: self.objects.len() as u32, untouched: true, destroyed: false };
            begins_another(&mut current);
            self.current.insert(key, current);
            let identity = if space == 0 { data } else { self.fresh_identity() };
            return self.begin(kind, identity, (space == 0).then_some(data), machine, 0);
        };
        if !begins_another(current) {
            return self.objects[current.object as usize].identity;
        }
        let incarnation = self.objects[current.object as usize].incarnation + 1;
        current.object = self.objects.len() as u32;
        let identity = self.fresh_identity();
        self.begin(kind, identity, (space == 0).then_some(data), machine, incarnation)
    }

    fn fresh_identity(&mut self) -> Address {
        self.fresh += 1;
        Address(IDENTITY_BASE + self.fresh * IDENTITY_STEP)
    }

    fn begin(&mut self, kind: SyncKind, identity: Address, data: Option<Address>, machine: u64, incarnation: u32) -> Address {
        self.objects.push(SyncObject { identity, data, machine, kind, recursive: false, incarnation });
        identity
    }

    /// What an acquisition or initialisation says about the lock at `data`; the operations before it may not have said it.
    pub fn describe_lock(&mut self, data: Address, aux: u16) {
        if let Some(current) = self.current.get(&(0, data.0)) {
            let object = &mut self.objects[current.object as usize];
            object.kind = lock_kind_of(aux);
            object.recursive |= aux & lock_kind::RECURSIVE != 0;
        }
    }

    pub fn into_objects(mut self) -> SyncObjects {
        self.objects.sort_by_key(|object| object.identity);
        SyncObjects(self.objects)
    }
}

/// The kind of lock that the aux bits of a `Lock…` record name.
pub const fn lock_kind_of(aux: u16) -> SyncKind {
    match aux & lock_kind::KIND_MASK {
        lock_kind::RWLOCK => SyncKind::RwLock,
        lock_kind::SPIN => SyncKind::Spin,
        lock_kind::OTHER => SyncKind::OtherLock,
        _ => SyncKind::Mutex,
    }
}

/// What an operation's object is, where it is a synchronisation object.
pub const fn kind_of(op: Op, aux: u16) -> Option<SyncKind> {
    Some(match op {
        Op::Lock | Op::LockInit | Op::LockFailed | Op::LockAgain => lock_kind_of(aux),
        Op::LockShared | Op::UnlockShared => SyncKind::RwLock,
        Op::Unlock | Op::LockRequest | Op::UnlockInner | Op::LockDestroy => SyncKind::Mutex,
        Op::CondWaitBegin | Op::CondWaitEnd | Op::CondSignal | Op::CondBroadcast | Op::CondInit | Op::CondDestroy => {
            SyncKind::Condition
        }
        Op::BarrierEnter | Op::BarrierExit | Op::BarrierInit | Op::BarrierDestroy => SyncKind::Barrier,
        Op::SemaphorePost | Op::SemaphoreWait | Op::SemaphoreFailed | Op::SemaphoreInit | Op::SemaphoreDestroy => {
            SyncKind::Semaphore
        }
        Op::OnceBegin | Op::OnceDone | Op::OnceSeen => SyncKind::Once,
        Op::Release | Op::Acquire => SyncKind::Channel { source: aux },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Address = Address(0x4000);

    #[test]
    fn a_lock_initialised_again_is_another_lock() {
        let mut identities = Identities::default();
        let first = identities.used(SyncKind::Mutex, AT, 0x4000);
        assert_eq!(first, AT);
        assert_eq!(identities.used(SyncKind::Mutex, AT, 0x4000), first);
        let second = identities.initialised(SyncKind::Mutex, AT, 0x4000);
        assert_ne!(first, second);
        assert_eq!(identities.used(SyncKind::Mutex, AT, 0x4000), second);
        let objects = identities.into_objects();
        assert_eq!(objects.data_address(second), AT);
        assert_eq!(objects.get(second).map(|object| object.incarnation), Some(1));
    }

    #[test]
    fn initialisation_before_first_use_keeps_the_plain_identity() {
        let mut identities = Identities::default();
        assert_eq!(identities.initialised(SyncKind::Mutex, AT, 0x4000), AT);
        assert_eq!(identities.used(SyncKind::Mutex, AT, 0x4000), AT);
    }

    #[test]
    fn use_after_destruction_begins_another() {
        let mut identities = Identities::default();
        identities.used(SyncKind::Barrier, AT, 0x4000);
        assert_eq!(identities.destroyed(SyncKind::Barrier, AT, 0x4000), AT);
        let second = identities.used(SyncKind::Barrier, AT, 0x4000);
        assert_ne!(second, AT);
        identities.destroyed(SyncKind::Barrier, AT, 0x4000);
        let third = identities.initialised(SyncKind::Barrier, AT, 0x4000);
        assert!(third != AT && third != second);
        assert_eq!(identities.used(SyncKind::Barrier, AT, 0x4000), third);
    }

    #[test]
    fn file_descriptors_do_not_meet_memory() {
        let mut identities = Identities::default();
        let file = identities.used(SyncKind::Channel { source: sync_source::FILE }, Address(5), 5);
        let memory = identities.used(SyncKind::Mutex, Address(5), 5);
        assert_ne!(file, memory);
        assert_eq!(identities.into_objects().get(file).and_then(|object| object.data), None);
    }
}
