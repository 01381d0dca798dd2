//! What lies where in variables and objects: members by their offsets, from DWARF.
//!
//! A variable has a type, so the member at an offset of it is known. A block of the heap has none in the debug information. Who
//! uses it does: a function with a parameter, a variable, or a capture of a lambda that points to a structure of exactly the
//! block's size is taken to use it through that, if no other such structure gives the place another name.
//!
//! Limits: members of unions other than the first at an offset, variants of Rust's enums, types in units of their own
//! (`-fdebug-types-section`) and split debug information have no names here. Debug information beyond [`LARGEST`] is left alone.

use crate::dwarf::{self, Bytes, address_of, name_of};
use gimli::{AttributeValue, DebuggingInformationEntry, DwTag, Dwarf, Reader as _, Section as _, Unit, UnitOffset};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;

pub type Entry<'abbrev, 'unit> = DebuggingInformationEntry<'abbrev, 'unit, Bytes>;
pub type Result<T> = std::result::Result<T, gimli::Error>;

/// Bytes of `.debug_info`.
const LARGEST: usize = 256 << 20;
/// Types within types, and links from one to the next: what is damaged may go round in circles.
pub const DEEPEST: u32 = 24;
/// Types that are looked at for what a function points to.
const MOST_TYPES: usize = 2000;
/// What precedes an object that shares a block with its two counters, as `std::make_shared` makes it.
pub const COUNTERS: u64 = 16;

/// An entry: its unit's number, and where it is in there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct At {
    pub unit: usize,
    pub offset: UnitOffset,
}

/// Of a unit, once it was asked for.
#[derive(Debug, Default)]
struct Index {
    /// Beginning, end, entry.
    functions: Vec<(u64, u64, UnitOffset)>,
    /// Namespaces and types around each type, with `::` behind each.
    scopes: HashMap<UnitOffset, String>,
}

pub struct Members {
    pub dwarf: Dwarf<Bytes>,
    pub units: Vec<Unit<Bytes>>,
    /// Ranges of addresses, with the unit that they are of.
    ranges: OnceCell<Vec<(u64, u64, usize)>>,
    indices: RefCell<HashMap<usize, Rc<Index>>>,
    /// The types of variables, by address.
    variables: OnceCell<BTreeMap<u64, At>>,
}

impl Members {
    pub fn read(path: &Path) -> Option<Self> {
        let dwarf = dwarf::read(path)?;
        if dwarf.debug_info.reader().len() > LARGEST {
            return None;
        }
        let mut units = Vec::new();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            units.extend(dwarf.unit(header).into_iter().filter(|unit| !dwarf::is_runtime(unit)));
        }
        Some(Self { dwarf, units, ranges: OnceCell::new(), indices: RefCell::default(), variables: OnceCell::new() })
    }

    /// The member at an offset of the variable that begins at the address, as it is written behind the variable's name:
    /// `.table[3].lock`. `None`: it is not known, or the variable has no members.
    pub fn of_variable(&self, address: u64, offset: u64) -> Option<String> {
        let variables = self.variables.get_or_init(|| {
            let mut found = BTreeMap::new();
            for number in 0..self.units.len() {
                let _ = self.collect_variables(number, &mut found);
            }
            found
        });
        let path = self.path(*variables.get(&address)?, offset).ok()??;
        (!path.words.is_empty()).then_some(path.words)
    }

    fn collect_variables(&self, number: usize, found: &mut BTreeMap<u64, At>) -> Result<()> {
        let unit = &self.units[number];
        let mut entries = unit.entries();
        while let Some((_, entry)) = entries.next_dfs()? {
            if entry.tag() == gimli::DW_TAG_variable
                && let Some(address) = address_of(&self.dwarf, unit, entry)?
                && let Some(of) = self.type_of(number, entry, 0)?
            {
                found.entry(address).or_insert(of);
            }
        }
        Ok(())
    }

    /// The type of an entry, or of the one that it completes.
    pub fn type_of(&self, number: usize, entry: &Entry<'_, '_>, depth: u32) -> Result<Option<At>> {
        if let Some(of) = self.link(number, entry, gimli::DW_AT_type)? {
            return Ok(Some(of));
        }
        for link in [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification] {
            if let Some(other) = self.link(number, entry, link)?.filter(|_| depth < DEEPEST) {
                let completed = self.units[other.unit].entry(other.offset)?;
                return self.type_of(other.unit, &completed, depth + 1);
            }
        }
        Ok(None)
    }

    pub fn link(&self, number: usize, entry: &Entry<'_, '_>, attribute: gimli::DwAt) -> Result<Option<At>> {
        Ok(match entry.attr_value(attribute)? {
            Some(AttributeValue::UnitRef(offset)) => Some(At { unit: number, offset }),
            Some(AttributeValue::DebugInfoRef(offset)) => {
                let behind = self.units.partition_point(|unit| unit.header.offset().as_debug_info_offset() <= Some(offset));
                let unit = behind.checked_sub(1);
                unit.and_then(|unit| Some(At { unit, offset: offset.to_unit_offset(&self.units[unit].header)? }))
            }
            _ => None,
        })
    }

    /// The type without its qualifiers and other names; the last of these names.
    fn bare(&self, mut at: At) -> Result<Option<(At, DwTag, Option<String>)>> {
        let mut name = None;
        for _ in 0..DEEPEST {
            let unit = &self.units[at.unit];
            let entry = unit.entry(at.offset)?;
            match entry.tag() {
                gimli::DW_TAG_typedef => name = name_of(&self.dwarf, unit, &entry)?,
                gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_restrict_type
                | gimli::DW_TAG_atomic_type => {}
                tag => return Ok(Some((at, tag, name))),
            }
            let Some(next) = self.link(at.unit, &entry, gimli::DW_AT_type)? else { return Ok(None) };
            at = next;
        }
        Ok(None)
    }

    pub fn size(&self, at: At, depth: u32) -> Result<Option<u64>> {
        let Some((at, tag, _)) = self.bare(at)?.filter(|_| depth < DEEPEST) else { return Ok(None) };
        let unit = &self.units[at.unit];
        let entry = unit.entry(at.offset)?;
        if let Some(size) = entry.attr_value(gimli::DW_AT_byte_size)?.and_then(|value| value.udata_value()) {
            return Ok(Some(size));
        }
        Ok(match tag {
            gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type => {
                Some(u64::from(unit.encoding().address_size))
            }
            gimli::DW_TAG_array_type => {
                let Some(of) = self.link(at.unit, &entry, gimli::DW_AT_type)? else { return Ok(None) };
                let one = self.size(of, depth + 1)?;
                let many = self.counts(at)?.into_iter().try_fold(1u64, u64::checked_mul);
                one.zip(many).and_then(|(one, many)| one.checked_mul(many))
            }
            _ => None,
        })
    }

    /// Elements in each dimension of an array.
    fn counts(&self, at: At) -> Result<Vec<u64>> {
        let unit = &self.units[at.unit];
        let mut tree = unit.entries_tree(Some(at.offset))?;
        let mut children = tree.root()?.children();
        let mut counts = Vec::new();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            if entry.tag() == gimli::DW_TAG_subrange_type {
                let number =
                    |attribute| Ok::<_, gimli::Error>(entry.attr_value(attribute)?.and_then(|value| value.udata_value()));
                let last = number(gimli::DW_AT_upper_bound)?.and_then(|last| last.checked_add(1));
                counts.push(number(gimli::DW_AT_count)?.or(last).unwrap_or(0));
            }
        }
        Ok(counts)
    }

    /// An array that does not say where it ends: as the last member of a structure it goes on to the end of the block.
    fn is_open(&self, of: At) -> Result<bool> {
        let Some((of, tag, _)) = self.bare(of)? else { return Ok(false) };
        Ok(tag == gimli::DW_TAG_array_type && self.counts(of)?.first() == Some(&0))
    }

    /// Whether a block may be larger than the structure in it, by its last member.
    pub fn has_open_end(&self, of: At) -> bool {
        matches!(self.member(of, u64::MAX), Ok(Some(_)))
    }

    /// How the place at an offset of a type is written. `None`: there is nothing, such as padding.
    pub fn path(&self, of: At, offset: u64) -> Result<Option<Written>> {
        let mut written = Written::default();
        let (mut at, mut offset) = (of, offset);
        for _ in 0..DEEPEST {
            let Some((bare, tag, alias)) = self.bare(at)? else { return Ok(None) };
            match tag {
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                    let (scope, name) = self.name_of_type(bare, alias)?;
                    let foreign = is_foreign(&scope);
                    // What a library keeps in its own objects is its own business, but for the user's object in one of them.
                    if foreign && !written.words.is_empty() {
                        break;
                    }
                    let Some((member, of, into)) = self.member(bare, offset)? else {
                        return Ok(None);
                    };
                    if let Some(name) = name.filter(|_| !foreign).map(|name| format!("{scope}{name}")) {
                        written.owner.get_or_insert_with(|| name.clone());
                        written.through.push(name);
                    }
                    match member {
                        Some(member) if is_reserved(&member) && (!written.words.is_empty() || !foreign) => {
                            written.is_inside = !foreign && offset > 0;
                            break;
                        }
                        Some(member) if !foreign => written.words.push_str(&format!(".{member}")),
                        _ => {}
                    }
                    (at, offset) = (of, into);
                }
                gimli::DW_TAG_array_type => {
                    let entry = self.units[bare.unit].entry(bare.offset)?;
                    let Some(of) = self.link(bare.unit, &entry, gimli::DW_AT_type)? else { return Ok(None) };
                    let Some(size) = self.size(of, 0)?.filter(|size| *size > 0) else { return Ok(None) };
                    let counts = self.counts(bare)?;
                    let mut element = offset / size;
                    for (dimension, _) in counts.iter().enumerate() {
                        let inner = counts[dimension + 1..].iter().try_fold(1u64, |all, count| all.checked_mul(*count));
                        let Some(inner) = inner.filter(|inner| *inner > 0) else { return Ok(None) };
                        written.words.push_str(&format!("[{}]", element / inner));
                        element %= inner;
                    }
                    (at, offset) = (of, offset % size);
                }
                _ => {
                    written.bytes = Some(self.size(bare, 0)?.unwrap_or(0));
                    written.is_inside = offset > 0;
                    break;
                }
            }
        }
        Ok(Some(written))
    }

    /// The member that holds the offset: its name, its type, and how far into it the offset is.
    fn member(&self, of: At, offset: u64) -> Result<Option<(Option<String>, At, u64)>> {
        let unit = &self.units[of.unit];
        let mut tree = unit.entries_tree(Some(of.offset))?;
        let mut children = tree.root()?.children();
        let mut open = None;
        while let Some(child) = children.next()? {
            let entry = child.entry();
            let name = match entry.tag() {
                gimli::DW_TAG_member => name_of(&self.dwarf, unit, entry)?,
                gimli::DW_TAG_inheritance => None,
                _ => continue,
            };
            // Static members and fields of bits have no place of their own.
            let begins = match entry.attr_value(gimli::DW_AT_data_member_location)? {
                Some(value) => value.udata_value(),
                None if entry.attr_value(gimli::DW_AT_external)?.is_some() => None,
                None if entry.attr_value(gimli::DW_AT_data_bit_offset)?.is_some() => None,
                None => Some(0),
            };
            let Some((begins, of)) = begins.zip(self.link(of.unit, entry, gimli::DW_AT_type)?) else { continue };
            let Some(into) = offset.checked_sub(begins) else { continue };
            if self.size(of, 0)?.is_some_and(|size| into < size) {
                return Ok(Some((name, of, into)));
            }
            // Such an array in front of others says where they begin.
            open = self.is_open(of)?.then_some((name, of, into));
        }
        Ok(open)
    }

    /// What is around the name of a type, and the name.
    pub fn name_of_type(&self, at: At, alias: Option<String>) -> Result<(String, Option<String>)> {
        let unit = &self.units[at.unit];
        let name = name_of(&self.dwarf, unit, &unit.entry(at.offset)?)?.or(alias);
        let scope = self.index(at.unit).scopes.get(&at.offset).cloned().unwrap_or_default();
        Ok((scope, name))
    }

    /// Whether somebody who wrote the program gave the type its name. Compilers give lambdas names that no identifier can be.
    fn is_the_users(&self, at: At) -> Result<bool> {
        let (scope, name) = self.name_of_type(at, None)?;
        let is_identifier = |name: &String| !name.starts_with(|first: char| !first.is_alphabetic() && first != '_');
        Ok(!is_foreign(&scope) && name.filter(is_identifier).is_some_and(|name| !is_reserved(&name)))
    }

    fn index(&self, number: usize) -> Rc<Index> {
        if let Some(index) = self.indices.borrow().get(&number) {
            return Rc::clone(index);
        }
        let mut index = Index::default();
        // What was found before a damaged entry is as good as it was.
        let _ = self.fill(number, &mut index);
        let index = Rc::new(index);
        self.indices.borrow_mut().insert(number, Rc::clone(&index));
        index
    }

    fn fill(&self, number: usize, index: &mut Index) -> Result<()> {
        let unit = &self.units[number];
        let mut entries = unit.entries();
        // Of each entry around the one at hand: how deep it is, and what it puts before names in it.
        let mut around: Vec<(isize, String)> = Vec::new();
        let mut depth = 0;
        while let Some((further, entry)) = entries.next_dfs()? {
            depth += further;
            while around.last().is_some_and(|(outer, _)| *outer >= depth) {
                around.pop();
            }
            let names = match entry.tag() {
                gimli::DW_TAG_subprogram => {
                    let mut ranges = self.dwarf.die_ranges(unit, entry)?;
                    while let Some(range) = ranges.next()? {
                        index.functions.push((range.begin, range.end, entry.offset()));
                    }
                    false
                }
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                    let scope = around.last().map(|(_, scope)| scope.clone()).unwrap_or_default();
                    index.scopes.insert(entry.offset(), scope);
                    true
                }
                gimli::DW_TAG_namespace => true,
                _ => false,
            };
            if names && entry.has_children() {
                let outer = around.last().map_or("", |(_, scope)| scope);
                let scope = match name_of(&self.dwarf, unit, entry)? {
                    Some(name) => format!("{outer}{name}::"),
                    None => outer.to_owned(),
                };
                around.push((depth, scope));
            }
        }
        Ok(())
    }

    /// Structures that what the function at the address knows points to.
    pub fn pointed_to(&self, code: u64) -> Vec<At> {
        let mut found = Pointed::default();
        for (number, function) in self.functions_at(code) {
            let _ = self.look_at_function(number, function, &mut found);
        }
        found.structures
    }

    /// The functions around an instruction: the numbers of their units, and their entries.
    pub fn functions_at(&self, code: u64) -> Vec<(usize, UnitOffset)> {
        let ranges = self.ranges.get_or_init(|| {
            let mut all = Vec::new();
            for (number, unit) in self.units.iter().enumerate() {
                let Ok(mut ranges) = self.dwarf.unit_ranges(unit) else { continue };
                while let Ok(Some(range)) = ranges.next() {
                    all.push((range.begin, range.end, number));
                }
            }
            all
        });
        let holds = |begin: u64, end: u64| (begin..end).contains(&code);
        let mut found = Vec::new();
        let units: HashSet<usize> =
            ranges.iter().filter(|(begin, end, _)| holds(*begin, *end)).map(|(_, _, number)| *number).collect();
        for number in units {
            let index = self.index(number);
            let functions = index.functions.iter().filter(|(begin, end, _)| holds(*begin, *end));
            found.extend(functions.map(|(_, _, function)| (number, *function)));
        }
        found
    }

    fn look_at_function(&self, number: usize, function: UnitOffset, found: &mut Pointed) -> Result<()> {
        let unit = &self.units[number];
        let mut entries = unit.entries_at_offset(function)?;
        let mut depth = 0;
        let mut first = true;
        while let Some((further, entry)) = entries.next_dfs()? {
            depth += further;
            if !first && depth <= 0 {
                break;
            }
            first = false;
            if matches!(entry.tag(), gimli::DW_TAG_formal_parameter | gimli::DW_TAG_variable)
                && let Some(of) = self.type_of(number, entry, 0)?
            {
                self.look_at_type(of, 0, found)?;
            }
        }
        Ok(())
    }

    /// Pointers in a type, such as those in a smart pointer or a lambda. What they point to is not looked into, unless it has no
    /// name of the user's: the function may have been handed a lambda, whose `this` it uses. Structures of the user's point to so
    /// many others that one of them has the size of the block by chance.
    fn look_at_type(&self, of: At, pointers: u32, found: &mut Pointed) -> Result<()> {
        let Some((of, tag, _)) = self.bare(of)? else { return Ok(()) };
        if found.seen.len() >= MOST_TYPES || !found.seen.insert((of, pointers)) {
            return Ok(());
        }
        match tag {
            gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type => {
                let entry = self.units[of.unit].entry(of.offset)?;
                let Some(to) = self.link(of.unit, &entry, gimli::DW_AT_type)? else { return Ok(()) };
                let Some((to, tag, _)) = self.bare(to)? else { return Ok(()) };
                if is_structure(tag) && !found.structures.contains(&to) {
                    found.structures.push(to);
                }
                if pointers == 0 && !(is_structure(tag) && self.is_the_users(to)?) {
                    self.look_at_type(to, 1, found)?;
                }
            }
            tag if is_structure(tag) => {
                let mut tree = self.units[of.unit].entries_tree(Some(of.offset))?;
                let mut children = tree.root()?.children();
                while let Some(child) = children.next()? {
                    let entry = child.entry();
                    let is_part = matches!(entry.tag(), gimli::DW_TAG_member | gimli::DW_TAG_inheritance);
                    if is_part && let Some(part) = self.link(of.unit, entry, gimli::DW_AT_type)? {
                        self.look_at_type(part, pointers, found)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// A place in a type.
#[derive(Debug, Default)]
pub struct Written {
    /// The outermost structure of the user's.
    pub owner: Option<String>,
    /// Structures of the user's that the place lies in, the outermost first.
    pub through: Vec<String>,
    /// Behind the name of it.
    pub words: String,
    /// Of what is no structure.
    pub bytes: Option<u64>,
    /// The place is inside of a number or a pointer, or of a structure of C's library, such as a mutex: no program uses it.
    pub is_inside: bool,
}

#[derive(Default)]
struct Pointed {
    structures: Vec<At>,
    seen: HashSet<(At, u32)>,
}

fn is_structure(tag: DwTag) -> bool {
    matches!(tag, gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type)
}

/// Whether a scope is of the languages' libraries.
pub fn is_foreign(scope: &str) -> bool {
    ["std::", "core::", "alloc::", "__gnu_cxx::", "__cxxabiv1::"].iter().any(|library| scope.starts_with(library))
}

/// Whether C and C++ keep the name for their libraries.
pub fn is_reserved(name: &str) -> bool {
    name.strip_prefix('_').is_some_and(|rest| rest.starts_with(|next: char| next == '_' || next.is_ascii_uppercase()))
}
