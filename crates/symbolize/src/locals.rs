//! Variables and parameters of functions, by where they lie in a frame, from DWARF.
//!
//! Understood: a location that is one constant distance from the frame's base, which is the canonical frame address or, as clang
//! and rustc have it, the frame or stack pointer. A variable may be in a register at times. One that is in several places of the
//! frame one after the other is none that another thread can reach.

use crate::dwarf::{Bytes, name_of};
use crate::members::{At, DEEPEST, Entry, Members, Result, is_reserved};
use gimli::{AttributeValue, Expression, Operation, Register, Unit, UnitOffset, X86_64};

/// A frame on a stack: `[stack_pointer, address)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackFrame {
    /// The canonical frame address: the one behind the return address.
    pub address: u64,
    /// Inside the function, behind what it does first.
    pub stack_pointer: u64,
}

/// Bytes of a variable of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// With the member that is meant: `totals[3].count`.
    pub name: String,
    /// Without its scope.
    pub function: String,
}

/// What pushes the frame pointer puts between it and the frame's address.
const BELOW_ADDRESS: u64 = 16;

/// What surrounds a variable.
struct Scope {
    depth: isize,
    /// The instruction lies in it.
    is_here: bool,
    function: Option<String>,
}

/// A variable that lies where it was asked for.
struct Found {
    local: Local,
    is_here: bool,
    depth: isize,
}

impl Members {
    /// The variable at an address of a frame of the function around the instruction `code`. Where several share the place, it is
    /// the innermost one in whose scope the instruction is.
    pub fn local(&self, code: u64, frame: StackFrame, address: u64) -> Option<Local> {
        let mut found: Vec<Found> = Vec::new();
        for (number, function) in self.functions_at(code) {
            // What was found before a damaged entry is as good as it was.
            let _ = self.collect_locals(number, function, (code, frame, address), &mut found);
        }
        if found.len() > 1 {
            found.retain(|variable| variable.is_here);
        }
        found.into_iter().max_by_key(|variable| variable.depth).map(|variable| variable.local)
    }

    fn collect_locals(
        &self,
        number: usize,
        function: UnitOffset,
        (code, frame, address): (u64, StackFrame, u64),
        found: &mut Vec<Found>,
    ) -> Result<()> {
        let unit = &self.units[number];
        let Some(base) = base_of(unit, &unit.entry(function)?, frame)? else { return Ok(()) };
        let mut entries = unit.entries_at_offset(function)?;
        let mut depth = 0;
        let mut scopes: Vec<Scope> = Vec::new();
        // A function in it has frames of its own.
        let mut other: Option<isize> = None;
        while let Some((further, entry)) = entries.next_dfs()? {
            depth += further;
            if !scopes.is_empty() && depth <= 0 {
                break;
            }
            scopes.retain(|scope| scope.depth < depth);
            other = other.filter(|inner| *inner < depth);
            if other.is_some() {
                continue;
            }
            match entry.tag() {
                gimli::DW_TAG_subprogram if depth > 0 => other = Some(depth),
                gimli::DW_TAG_subprogram | gimli::DW_TAG_inlined_subroutine => {
                    let function = self.completed_name(number, entry)?;
                    scopes.push(Scope { depth, is_here: self.covers(unit, entry, code)?, function });
                }
                gimli::DW_TAG_lexical_block => {
                    scopes.push(Scope { depth, is_here: self.covers(unit, entry, code)?, function: None });
                }
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                    let Some(begins) = self.place_of(unit, entry, (base, frame))? else { continue };
                    let Some(name) = self.local_at(number, entry, address.checked_sub(begins))? else { continue };
                    let function = scopes.iter().rev().find_map(|scope| scope.function.clone()).map(in_words);
                    let local = Local { name, function: function.unwrap_or_default() };
                    found.push(Found { local, is_here: scopes.iter().all(|scope| scope.is_here), depth });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Where a variable lies in the frame; `None`: in no one place.
    fn place_of(&self, unit: &Unit<Bytes>, entry: &Entry<'_, '_>, frame: (u64, StackFrame)) -> Result<Option<u64>> {
        let Some(location) = entry.attr_value(gimli::DW_AT_location)? else { return Ok(None) };
        if let AttributeValue::Exprloc(expression) = location {
            return place(unit, expression, frame);
        }
        let Some(mut list) = self.dwarf.attr_locations(unit, location)? else { return Ok(None) };
        let mut only = None;
        while let Some(piece) = list.next()? {
            let here = place(unit, piece.data, frame)?;
            if only.is_some() && here.is_some() && here != only {
                return Ok(None);
            }
            only = only.or(here);
        }
        Ok(only)
    }

    /// How the byte of a variable is written; `None`: it is none of its, or the variable is the compiler's own.
    fn local_at(&self, number: usize, entry: &Entry<'_, '_>, into: Option<u64>) -> Result<Option<String>> {
        let Some((into, of)) = into.zip(self.type_of(number, entry, 0)?) else { return Ok(None) };
        if self.size(of, 0)?.is_none_or(|size| into >= size) {
            return Ok(None);
        }
        let name = self.completed_name(number, entry)?.filter(|name| !is_reserved(name) && !name.starts_with('.'));
        let Some(name) = name else { return Ok(None) };
        let member = self.path(of, into)?.map_or_else(String::new, |path| path.words);
        Ok(Some(format!("{name}{member}")))
    }

    /// The name of an entry, or of the one that it completes.
    fn completed_name(&self, number: usize, entry: &Entry<'_, '_>) -> Result<Option<String>> {
        let mut name = name_of(&self.dwarf, &self.units[number], entry)?;
        let mut next = self.completed(number, entry)?;
        for _ in 0..DEEPEST {
            let Some(at) = next.filter(|_| name.is_none()) else { break };
            let entry = self.units[at.unit].entry(at.offset)?;
            name = name_of(&self.dwarf, &self.units[at.unit], &entry)?;
            next = self.completed(at.unit, &entry)?;
        }
        Ok(name)
    }

    fn completed(&self, number: usize, entry: &Entry<'_, '_>) -> Result<Option<At>> {
        let origin = self.link(number, entry, gimli::DW_AT_abstract_origin)?;
        Ok(origin.or(self.link(number, entry, gimli::DW_AT_specification)?))
    }

    fn covers(&self, unit: &Unit<Bytes>, entry: &Entry<'_, '_>, code: u64) -> Result<bool> {
        let mut ranges = self.dwarf.die_ranges(unit, entry)?;
        while let Some(range) = ranges.next()? {
            if (range.begin..range.end).contains(&code) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Functions that the sources give no name.
fn in_words(function: String) -> String {
    match function.as_str() {
        "operator()" => "a lambda".to_owned(),
        name if name.starts_with("{closure") => "a closure".to_owned(),
        _ => function,
    }
}

fn register(register: Register, frame: StackFrame) -> Option<u64> {
    match register {
        X86_64::RBP => frame.address.checked_sub(BELOW_ADDRESS),
        X86_64::RSP => Some(frame.stack_pointer),
        _ => None,
    }
}

fn base_of(unit: &Unit<Bytes>, function: &Entry<'_, '_>, frame: StackFrame) -> Result<Option<u64>> {
    let Some(AttributeValue::Exprloc(expression)) = function.attr_value(gimli::DW_AT_frame_base)? else { return Ok(None) };
    Ok(match only_operation(unit, expression)? {
        Some(Operation::CallFrameCFA) => Some(frame.address),
        Some(Operation::Register { register: number }) => register(number, frame),
        _ => None,
    })
}

fn place(unit: &Unit<Bytes>, expression: Expression<Bytes>, (base, frame): (u64, StackFrame)) -> Result<Option<u64>> {
    Ok(match only_operation(unit, expression)? {
        Some(Operation::FrameOffset { offset }) => base.checked_add_signed(offset),
        Some(Operation::RegisterOffset { register: number, offset, .. }) => {
            register(number, frame).and_then(|value| value.checked_add_signed(offset))
        }
        _ => None,
    })
}

fn only_operation(unit: &Unit<Bytes>, expression: Expression<Bytes>) -> Result<Option<Operation<Bytes>>> {
    let mut operations = expression.operations(unit.encoding());
    let only = operations.next()?;
    Ok(only.filter(|_| matches!(operations.next(), Ok(None))))
}
