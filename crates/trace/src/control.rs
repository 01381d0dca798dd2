//! The `control` file: what the host asks of the runtime, encoded.
//!
//! The layout is `rashomon_abi::control`. A schedule's tables are rewritten: missing parents of threads are added so that a
//! parent precedes its children, and equal object names share one entry.

use crate::control_provoke::ProvokeRequest;
use crate::error::ControlError;
use crate::header::RunMode;
use rashomon_abi::PROTOCOL_VERSION;
use rashomon_abi::control::{HEAD_WORDS, MAGIC, MAX_ENTRIES, NO_MODULE, after, field, goal, object, option, policy, turn};
use rashomon_event::schedule::SCHEDULE_VERSION;
use rashomon_event::{CodePlace, Goal, KeptPlace, ObjectName, Place, Schedule, ThreadPath, Turn, path_bytes};
use std::collections::HashMap;

/// Who is next in a serial run while there are no turns, or after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    RoundRobin,
    Random,
    Pct,
    /// A thread runs until it blocks; then the lowest thread number that can run.
    RunToBlock,
    /// As the session's `exploration` file says.
    Explore,
}

impl Policy {
    pub const fn code(self) -> u64 {
        match self {
            Self::RoundRobin => policy::ROUND_ROBIN,
            Self::Random => policy::RANDOM,
            Self::Pct => policy::PCT,
            Self::RunToBlock => policy::RUN_TO_BLOCK,
            Self::Explore => policy::EXPLORE,
        }
    }

    pub const fn from_code(code: u64) -> Option<Self> {
        Some(match code {
            policy::ROUND_ROBIN => Self::RoundRobin,
            policy::RANDOM => Self::Random,
            policy::PCT => Self::Pct,
            policy::RUN_TO_BLOCK => Self::RunToBlock,
            policy::EXPLORE => Self::Explore,
            _ => return None,
        })
    }
}

/// What the runtime does when the outcome is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// End the process.
    Stop,
    /// Call `rashomon_finding_reached` and go on under the policy.
    Continue,
}

/// How closely a schedule is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enforcement {
    /// Who leaves the schedule has diverged.
    #[default]
    Strict,
    /// Positions are recognised by what the thread does there; where the turns cannot be kept, threads are held at the goal's
    /// places.
    Elastic,
    /// No turn is enforced: the policy says who runs, and threads are held at the goal's places.
    HoldOnly,
}

impl Enforcement {
    const fn options(self) -> u64 {
        match self {
            Self::Strict => 0,
            Self::Elastic => option::ELASTIC,
            Self::HoldOnly => option::ELASTIC | option::HOLD_ONLY,
        }
    }
}

#[derive(Clone, Debug)]
pub struct ControlRequest<'a> {
    pub mode: RunMode,
    pub policy: Policy,
    pub seed: u64,
    /// Accesses after which a serial thread has to offer its turn; 0: never. A schedule's own quantum takes its place.
    pub quantum: u64,
    /// Random policy: one in how many synchronisation points is a switch.
    pub switch_period: u64,
    pub pct_changes: u64,
    pub pct_length: u64,
    /// Bit set of `rashomon_abi::control::option`.
    pub options: u64,
    pub call_timeout_ms: u64,
    /// Bytes of trace after which plain accesses are no longer kept; 0: no limit.
    pub trace_limit: u64,
    /// How often an access (thread, site, address, locks held) is kept, repetitions without an event in between apart; 0: no
    /// limit.
    pub access_cap: u64,
    /// With `option::TREE`: locations that each thread remembers at most; 0: as many as the runtime thinks right.
    pub filter_locations: u64,
    /// The most processes of the session that are recorded; 0: no limit.
    pub processes: u64,
    pub after: After,
    /// Serial: nanoseconds of `CLOCK_REALTIME` at which virtual time begins; 0: the real time at the start.
    pub base_time_nanoseconds: u64,
    pub schedule: Option<&'a Schedule>,
    /// What to do where the program leaves the schedule; only with a goal.
    pub enforcement: Enforcement,
    /// Places whose plain accesses alone are recorded; none: all are. A schedule's own take their place.
    pub kept: &'a [KeptPlace],
    /// With an enforcement that holds threads: pairs of code places of the schedule's modules whose meeting is no news.
    pub known: &'a [[CodePlace; 2]],
    /// With `option::VALUES`: the code places whose values are recorded, by the schedule's modules; all if there are none.
    pub valued: &'a [CodePlace],
    /// Free mode: what to provoke. There must be no schedule then.
    pub provoke: Option<&'a ProvokeRequest<'a>>,
}

impl Default for ControlRequest<'_> {
    /// A serial recording that switches at one in four synchronisation points.
    fn default() -> Self {
        Self {
            mode: RunMode::Serial,
            policy: Policy::Random,
            seed: 1,
            quantum: 10_000,
            switch_period: 4,
            pct_changes: 2,
            pct_length: 1_000,
            options: 0,
            call_timeout_ms: 10_000,
            trace_limit: 0,
            access_cap: 0,
            filter_locations: 0,
            processes: 0,
            after: After::Stop,
            base_time_nanoseconds: 0,
            schedule: None,
            enforcement: Enforcement::Strict,
            kept: &[],
            known: &[],
            valued: &[],
            provoke: None,
        }
    }
}

/// The bytes of the `control` file.
pub fn encode(request: &ControlRequest<'_>) -> Result<Vec<u8>, ControlError> {
    let mut head = [0u64; HEAD_WORDS];
    head[field::MAGIC] = MAGIC;
    head[field::VERSION] = u64::from(PROTOCOL_VERSION);
    head[field::MODE] = request.mode.code();
    head[field::POLICY] = request.policy.code();
    head[field::SEED] = request.seed;
    head[field::QUANTUM] = request.schedule.map_or(request.quantum, |schedule| schedule.quantum);
    head[field::SWITCH_PERIOD] = request.switch_period;
    head[field::PCT_CHANGES] = request.pct_changes;
    head[field::PCT_LENGTH] = request.pct_length;
    let provoke = match request.provoke {
        Some(provoke) if provoke.recorded => option::PROVOKE | option::RECORDED | option::NO_ACCESSES,
        Some(_) => option::PROVOKE,
        None => 0,
    };
    let calls = if request.schedule.is_some_and(|schedule| schedule.unseen_calls) { option::UNSEEN_CALLS } else { 0 };
    head[field::OPTIONS] = request.options | provoke | calls | request.enforcement.options();
    head[field::CALL_TIMEOUT_MS] = request.call_timeout_ms;
    head[field::TRACE_LIMIT] = request.trace_limit;
    head[field::ACCESS_CAP] = request.access_cap;
    head[field::FILTER_LOCATIONS] = request.filter_locations;
    head[field::PROCESSES] = request.processes;
    head[field::AFTER] = match request.after {
        After::Stop => after::STOP,
        After::Continue => after::CONTINUE,
    };
    head[field::BASE_TIME] = request.base_time_nanoseconds;
    let mut tables = match (request.schedule, request.provoke) {
        (Some(schedule), _) => {
            let mut tables = Tables::of(schedule)?;
            for &[first, second] in request.known {
                let ([first, at], [second, then]) = (tables.code_place(first)?, tables.code_place(second)?);
                tables.known.push([first, at, second, then]);
            }
            for &place in request.valued {
                let words = tables.code_place(place)?;
                tables.frames.push(words);
            }
            tables.check_lengths()?;
            tables
        }
        (None, Some(provoke)) => Tables::of_provocation(provoke, &mut head)?,
        (None, None) => Tables::default(),
    };
    tables.kept(request.schedule.map_or(request.kept, |schedule| &schedule.kept));
    tables.check_lengths()?;
    head[field::GOAL] = tables.goal;
    head[field::MODULES] = tables.modules.len() as u64;
    head[field::THREADS] = tables.threads.len() as u64;
    head[field::OBJECTS] = tables.objects.len() as u64;
    head[field::TURNS] = tables.turns.len() as u64;
    head[field::GOALS] = tables.goals.len() as u64;
    head[field::DESCRIPTORS] = tables.descriptors.len() as u64;
    head[field::FRAMES] = tables.frames.len() as u64;
    head[field::KNOWN] = tables.known.len() as u64;
    head[field::KEPT] = tables.kept.len() as u64;
    head[field::STRING_BYTES] = tables.strings.len() as u64;

    let words = head
        .iter()
        .chain(tables.modules.as_flattened())
        .chain(tables.threads.as_flattened())
        .chain(tables.objects.as_flattened())
        .chain(tables.turns.as_flattened())
        .chain(tables.goals.as_flattened())
        .chain(tables.descriptors.as_flattened())
        .chain(tables.frames.as_flattened())
        .chain(tables.known.as_flattened());
    let mut bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend_from_slice(&tables.strings);
    if !tables.kept.is_empty() {
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend(tables.kept.as_flattened().iter().flat_map(|word| word.to_le_bytes()));
    }
    Ok(bytes)
}

#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) modules: Vec<[u64; rashomon_abi::control::MODULE_WORDS]>,
    threads: Vec<[u64; rashomon_abi::control::THREAD_WORDS]>,
    objects: Vec<[u64; rashomon_abi::control::OBJECT_WORDS]>,
    turns: Vec<[u64; rashomon_abi::control::TURN_WORDS]>,
    goals: Vec<[u64; rashomon_abi::control::GOAL_WORDS]>,
    pub(crate) descriptors: Vec<[u64; rashomon_abi::control::DESCRIPTOR_WORDS]>,
    pub(crate) frames: Vec<[u64; rashomon_abi::control::FRAME_WORDS]>,
    pub(crate) known: Vec<[u64; rashomon_abi::control::KNOWN_WORDS]>,
    kept: Vec<[u64; rashomon_abi::control::KEPT_WORDS]>,
    strings: Vec<u8>,
    goal: u64,
    thread_of_path: HashMap<ThreadPath, u64>,
    object_of_words: HashMap<[u64; rashomon_abi::control::OBJECT_WORDS], u64>,
    /// Index in the schedule's table → index in ours.
    thread_of_index: Vec<u64>,
}

/// Word of a field that means nothing for this entry.
const UNUSED: u64 = u64::MAX;

impl Tables {
    fn of(schedule: &Schedule) -> Result<Self, ControlError> {
        if schedule.version != SCHEDULE_VERSION {
            return Err(ControlError::Version { found: schedule.version, supported: SCHEDULE_VERSION });
        }
        let mut tables = Self::default();
        schedule.modules.iter().for_each(|module| tables.module(&module.path));
        tables.thread(&ThreadPath::default());
        for path in &schedule.threads {
            let index = tables.thread(path);
            tables.thread_of_index.push(index);
        }
        for turn in &schedule.turns {
            let words = tables.turn(turn)?;
            tables.turns.push(words);
        }
        let sides: &[u32] = match &schedule.goal {
            Goal::None => &[],
            Goal::Race { turns } => turns,
            Goal::Deadlock { turns } => turns,
        };
        tables.goal = match schedule.goal {
            Goal::None => goal::NONE,
            Goal::Race { .. } => goal::RACE,
            Goal::Deadlock { .. } => goal::DEADLOCK,
        };
        for &side in sides {
            let entries = tables.turns.len() as u64;
            let turn = tables.turns.get(side as usize).ok_or(ControlError::NoSuchEntry {
                what: "turn",
                index: u64::from(side),
                entries,
            })?;
            tables.goals.push([turn[0], u64::from(side)]);
        }
        tables.check_lengths()?;
        Ok(tables)
    }

    pub(crate) fn module(&mut self, path: &str) {
        let path = path_bytes(path.as_bytes());
        self.modules.push([self.strings.len() as u64, path.len() as u64, 0]);
        self.strings.extend_from_slice(&path);
    }

    /// Modules are named once more: the program is the first one, whatever the path.
    fn kept(&mut self, places: &[KeptPlace]) {
        if self.modules.is_empty() && !places.is_empty() {
            self.module("");
        }
        let mut modules: HashMap<&str, u64> = HashMap::new();
        for place in places {
            let number = *modules.entry(&place.module).or_insert_with(|| {
                self.module(&place.module);
                self.modules.len() as u64 - 1
            });
            self.kept.push([number, place.offset]);
        }
    }

    pub(crate) fn check_lengths(&self) -> Result<(), ControlError> {
        let lengths = [
            ("modules", self.modules.len()),
            ("threads", self.threads.len()),
            ("objects", self.objects.len()),
            ("turns", self.turns.len()),
            ("goals", self.goals.len()),
            ("descriptors", self.descriptors.len()),
            ("frames", self.frames.len()),
            ("kept places", self.kept.len()),
            ("known pairs", self.known.len()),
        ];
        match lengths.into_iter().find(|&(_, entries)| entries as u64 > MAX_ENTRIES) {
            Some((what, entries)) => Err(ControlError::TooMany { what, entries: entries as u64, limit: MAX_ENTRIES }),
            None => Ok(()),
        }
    }

    /// Index of a thread, entered behind its ancestors.
    pub(crate) fn thread(&mut self, path: &ThreadPath) -> u64 {
        let mut parent = UNUSED;
        for length in 0..=path.0.len() {
            let ancestor = ThreadPath(path.0[..length].to_vec());
            let ordinal = length.checked_sub(1).map_or(0, |last| u64::from(path.0[last]));
            let entries = &mut self.threads;
            parent = *self.thread_of_path.entry(ancestor).or_insert_with(|| {
                entries.push([parent, ordinal]);
                entries.len() as u64 - 1
            });
        }
        parent
    }

    fn thread_at(&self, index: u32) -> Result<u64, ControlError> {
        let entries = self.thread_of_index.len() as u64;
        let found = self.thread_of_index.get(index as usize).copied();
        found.ok_or(ControlError::NoSuchEntry { what: "thread", index: u64::from(index), entries })
    }

    pub(crate) fn code_place(&self, place: CodePlace) -> Result<[u64; 2], ControlError> {
        let entries = self.modules.len() as u64;
        match place.module {
            None => Ok([NO_MODULE, place.offset]),
            Some(module) if u64::from(module) < entries => Ok([u64::from(module), place.offset]),
            Some(module) => Err(ControlError::NoSuchEntry { what: "module", index: u64::from(module), entries }),
        }
    }

    fn object(&mut self, name: ObjectName) -> Result<u64, ControlError> {
        let words = match name {
            ObjectName::Global { place } => {
                let [module, offset] = self.code_place(place)?;
                [object::GLOBAL, 0, module, offset, 0]
            }
            ObjectName::Heap { thread, site, ordinal } => {
                let [module, offset] = self.code_place(site)?;
                [object::HEAP, self.thread_at(thread)?, module, offset, u64::from(ordinal)]
            }
            ObjectName::Mapping { thread, site, ordinal } => {
                let [module, offset] = self.code_place(site)?;
                [object::MAPPING, self.thread_at(thread)?, module, offset, u64::from(ordinal)]
            }
            ObjectName::Stack { thread } => [object::STACK, self.thread_at(thread)?, NO_MODULE, 0, 0],
            ObjectName::Tls { thread } => [object::TLS, self.thread_at(thread)?, NO_MODULE, 0, 0],
            ObjectName::Any => [object::ANY, 0, NO_MODULE, 0, 0],
        };
        let objects = &mut self.objects;
        Ok(*self.object_of_words.entry(words).or_insert_with(|| {
            objects.push(words);
            objects.len() as u64 - 1
        }))
    }

    fn turn(&mut self, entry: &Turn) -> Result<[u64; rashomon_abi::control::TURN_WORDS], ControlError> {
        let thread = self.thread_at(entry.thread)?;
        let ordinal = u64::from(entry.until.ordinal);
        let plain = |flags, count, op| [thread, flags, ordinal, count, NO_MODULE, 0, UNUSED, 0, 0, op];
        Ok(match entry.until.place {
            Place::Synchronisation { op } => match entry.landmark {
                None => plain(0, 0, u64::from(op)),
                Some(landmark) => {
                    let [module, offset] = self.code_place(landmark.site)?;
                    let occurrence = u64::from(landmark.occurrence);
                    [thread, turn::LANDMARK, ordinal, occurrence, module, offset, UNUSED, 0, 0, u64::from(op)]
                }
            },
            Place::Count { accesses } => plain(turn::AT_COUNT, accesses, 0),
            Place::Waiting { accesses } => plain(turn::WAITING, accesses, 0),
            Place::End => plain(turn::TO_END, 0, 0),
            Place::Access { site, object, delta, size } => {
                let [module, offset] = self.code_place(site)?;
                let object = self.object(object)?;
                [thread, turn::AT_SITE, ordinal, 0, module, offset, object, delta, u64::from(size), 0]
            }
        })
    }
}
