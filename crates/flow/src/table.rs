//! Tables of dependences, as read from the files of modules.

use object::{Object as _, ObjectSection as _};
use rashomon_abi::deep::{self, call, step, told};
use rashomon_event::{Site, SiteId, Trace};
use rashomon_units::Register;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

/// Of one table: numbers beyond it are damage.
const MOST: u64 = 1 << 22;

pub type Roots = Box<[Register]>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Phi { into: Register, ways: Vec<(u64, Roots)> },
    Read { into: Register, address: Roots },
    Write { from: Roots, address: Roots },
    Atomic { into: Register, from: Roots, address: Roots },
    Compute { into: Register, from: Roots },
    Copy,
    Fill { from: Roots },
    Call { tells: bool, callee: u64, into: Option<Register>, arguments: Vec<Roots> },
    Branch { on: Roots, meeting: u64 },
    GoOn(u64),
    Told(Vec<u64>),
    Return(Roots),
    Leave,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The block that it begins; `None`: it goes on behind a call.
    pub block: Option<u64>,
    pub told: bool,
    pub ops: Vec<Op>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub name: String,
    pub hash: u64,
    pub parameters: usize,
    pub registers: u32,
    pub segments: Vec<Segment>,
    /// Blocks where paths from a branch meet again.
    pub meetings: FxHashSet<u64>,
}

struct Reader<'b> {
    bytes: &'b [u8],
    registers: u64,
}

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let (number, count) = deep::number(self.bytes)?;
        self.bytes = &self.bytes[count..];
        Some(number)
    }

    fn count(&mut self) -> Option<u64> {
        self.number().filter(|count| *count <= MOST)
    }

    fn register(&mut self) -> Option<Register> {
        let number = self.number()?;
        (number < self.registers).then_some(Register(number as u32))
    }

    fn roots(&mut self) -> Option<Roots> {
        (0..self.count()?).map(|_| self.register()).collect()
    }

    fn op(&mut self) -> Option<Op> {
        Some(match self.number()? {
            step::PHI => {
                let into = self.register()?;
                let ways = (0..self.count()?).map(|_| Some((self.number()?, self.roots()?))).collect::<Option<_>>()?;
                Op::Phi { into, ways }
            }
            step::READ => Op::Read { into: self.register()?, address: self.roots()? },
            step::WRITE => Op::Write { from: self.roots()?, address: self.roots()? },
            step::ATOMIC => Op::Atomic { into: self.register()?, from: self.roots()?, address: self.roots()? },
            step::COMPUTE => Op::Compute { into: self.register()?, from: self.roots()? },
            step::COPY => Op::Copy,
            step::FILL => Op::Fill { from: self.roots()? },
            step::CALL => {
                let (bits, callee, into) = (self.number()?, self.number()?, self.number()?);
                let into = match into.checked_sub(1) {
                    None => None,
                    Some(register) if register < self.registers => Some(Register(register as u32)),
                    Some(_) => return None,
                };
                let arguments = (0..self.count()?).map(|_| self.roots()).collect::<Option<_>>()?;
                Op::Call { tells: bits & call::CALLEE_TELLS != 0, callee, into, arguments }
            }
            step::BRANCH => Op::Branch { on: self.roots()?, meeting: self.count()? },
            step::GO_ON => Op::GoOn(self.number()?),
            step::TOLD => Op::Told((0..self.count()?).map(|_| self.number()).collect::<Option<_>>()?),
            step::RETURN => Op::Return(self.roots()?),
            step::LEAVE => Op::Leave,
            _ => return None,
        })
    }

    fn segment(&mut self) -> Option<Segment> {
        let block = self.count()?.checked_sub(1);
        let told = self.number()? != told::NOT;
        let mut ops = Vec::new();
        loop {
            let op = self.op()?;
            let ends = matches!(op, Op::GoOn(_) | Op::Told(_) | Op::Return(_) | Op::Leave);
            ops.push(op);
            if ends {
                return Some(Segment { block, told, ops });
            }
        }
    }
}

impl Table {
    /// `None`: the bytes are no table.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader { bytes, registers: 0 };
        if reader.number()? != deep::VERSION {
            return None;
        }
        let length = usize::try_from(reader.count()?).ok()?;
        let name = reader.bytes.get(..length)?;
        let hash = deep::name_hash(name);
        let name = String::from_utf8_lossy(name).into_owned();
        reader.bytes = &reader.bytes[length..];
        let (parameters, registers) = (reader.count()? as usize, reader.count()?);
        let (_blocks, count) = (reader.count()?, reader.count()?);
        reader.registers = registers;
        let segments = (0..count).map(|_| reader.segment()).collect::<Option<Vec<_>>>()?;
        let ops = || segments.iter().flat_map(|segment| &segment.ops);
        let follows = |op: &Op| match op {
            Op::GoOn(next) => *next < count,
            Op::Told(all) => all.iter().all(|next| *next < count),
            _ => true,
        };
        if segments.is_empty() || parameters as u64 > registers || !ops().all(follows) {
            return None;
        }
        let meetings = ops().filter_map(|op| if let Op::Branch { meeting, .. } = op { Some(*meeting) } else { None }).collect();
        Some(Self { name, hash, parameters, registers: registers as u32, segments, meetings })
    }
}

/// Why tables that a recording names are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Lost {
    #[error("the file cannot be read")]
    File,
    #[error("the file is another build than the one that was recorded")]
    Build,
    #[error("its tables were stripped")]
    Section,
    #[error("its tables are damaged, or of another version of the plugin")]
    Damaged,
}

/// The tables of a recording's modules, read when they are asked for.
#[derive(Default)]
pub struct Tables {
    known: FxHashMap<SiteId, Option<Rc<Table>>>,
    /// By module: where its section begins, and the bytes.
    sections: FxHashMap<u32, Result<(u64, Vec<u8>), Lost>>,
    lost: BTreeMap<String, Lost>,
}

impl Tables {
    /// The table at an address of the recorded program.
    pub fn get(&mut self, trace: &Trace, id: SiteId) -> Option<Rc<Table>> {
        if let Some(known) = self.known.get(&id) {
            return known.clone();
        }
        let found = trace.sites.get(id.index()).and_then(|site| self.find(trace, site)).map(Rc::new);
        self.known.insert(id, found.clone());
        found
    }

    fn find(&mut self, trace: &Trace, site: &Site) -> Option<Table> {
        let number = site.module?;
        let module = trace.modules.get(number as usize)?;
        let section = self
            .sections
            .entry(number)
            .or_insert_with(|| section_of(&rashomon_event::path_of(&module.path), module.build_id.as_deref()));
        let table = section.as_ref().map_err(|lost| *lost).and_then(|(start, bytes)| {
            let at = site.offset.checked_sub(*start).and_then(|at| usize::try_from(at).ok());
            at.and_then(|at| Table::read(bytes.get(at..)?)).ok_or(Lost::Damaged)
        });
        table.map_err(|lost| self.lost.insert(module.path.clone(), lost)).ok()
    }

    /// Modules of which tables were asked for that are not known, and why.
    pub const fn lost(&self) -> &BTreeMap<String, Lost> {
        &self.lost
    }
}

/// The section of a file that is still the one that was recorded.
fn section_of(path: &Path, build_id: Option<&str>) -> Result<(u64, Vec<u8>), Lost> {
    let found = rashomon_symbolize::build_id(path).map_err(|_| Lost::File)?;
    if build_id.is_some_and(|recorded| found.as_deref() != Some(recorded)) {
        return Err(Lost::Build);
    }
    let read = rashomon_symbolize::with_object(path, |object| {
        let section = object.section_by_name(deep::DEPENDENCES);
        Ok(section.and_then(|section| Some((section.address(), section.data().ok()?.to_vec()))))
    });
    read.map_err(|_| Lost::File)?.ok_or(Lost::Section)
}
