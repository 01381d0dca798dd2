//! Where variables with static storage are declared, from DWARF.
//!
//! Every entry of every unit but the runtime's is visited once per module, so nested static locals are found too. Understood: a
//! location that is one constant address. Limit: split debug information and declarations that are completed by another entry
//! without a line of their own (`DW_AT_specification`) give the declaration's line.

use crate::dwarf::{self, Bytes, address_of, name_of};
use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, Reader as _, Unit};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    pub name: String,
    pub file: Option<String>,
    pub line: Option<u32>,
}

/// Address → declaration. Empty where there is no debug information or it cannot be read.
pub fn declarations(path: &Path) -> BTreeMap<u64, Declaration> {
    let mut found = BTreeMap::new();
    // What was found before a damaged unit is as good as it was.
    let _ = dwarf::read(path).map(|dwarf| collect(&dwarf, &mut found));
    found
}

fn collect(dwarf: &Dwarf<Bytes>, found: &mut BTreeMap<u64, Declaration>) -> Result<(), gimli::Error> {
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        let unit = dwarf.unit(header)?;
        if dwarf::is_runtime(&unit) {
            continue;
        }
        let mut entries = unit.entries();
        while let Some((_, entry)) = entries.next_dfs()? {
            if entry.tag() != gimli::DW_TAG_variable {
                continue;
            }
            let Some(address) = address_of(dwarf, &unit, entry)? else {
                continue;
            };
            if let Some(declaration) = declaration_of(dwarf, &unit, entry)? {
                found.entry(address).or_insert(declaration);
            }
        }
    }
    Ok(())
}

/// Name and line of the entry, or of the one that it completes.
fn declaration_of(
    dwarf: &Dwarf<Bytes>,
    unit: &Unit<Bytes>,
    entry: &DebuggingInformationEntry<'_, '_, Bytes>,
) -> Result<Option<Declaration>, gimli::Error> {
    let mut declaration = Declaration { name: String::new(), file: None, line: None };
    describe(dwarf, unit, entry, &mut declaration)?;
    for link in [gimli::DW_AT_specification, gimli::DW_AT_abstract_origin] {
        if let Some(AttributeValue::UnitRef(offset)) = entry.attr_value(link)? {
            describe(dwarf, unit, &unit.entry(offset)?, &mut declaration)?;
        }
    }
    Ok((!declaration.name.is_empty()).then_some(declaration))
}

/// Fills in what is still missing.
fn describe(
    dwarf: &Dwarf<Bytes>,
    unit: &Unit<Bytes>,
    entry: &DebuggingInformationEntry<'_, '_, Bytes>,
    declaration: &mut Declaration,
) -> Result<(), gimli::Error> {
    if declaration.name.is_empty() {
        declaration.name = name_of(dwarf, unit, entry)?.unwrap_or_default();
    }
    if declaration.line.is_none() {
        declaration.line =
            entry.attr_value(gimli::DW_AT_decl_line)?.and_then(|value| value.udata_value()).map(|line| line as u32);
        if let Some(number) = entry.attr_value(gimli::DW_AT_decl_file)?.and_then(file_number) {
            declaration.file = file_name(dwarf, unit, number)?;
        }
    }
    Ok(())
}

fn file_number(value: AttributeValue<Bytes>) -> Option<u64> {
    match value {
        AttributeValue::FileIndex(number) => Some(number),
        other => other.udata_value(),
    }
}

fn file_name(dwarf: &Dwarf<Bytes>, unit: &Unit<Bytes>, number: u64) -> Result<Option<String>, gimli::Error> {
    let Some(program) = &unit.line_program else {
        return Ok(None);
    };
    let header = program.header();
    let Some(file) = header.file(number) else {
        return Ok(None);
    };
    let mut path = String::new();
    if let Some(directory) = &unit.comp_dir {
        append(&mut path, &directory.to_string_lossy()?);
    }
    if let Some(directory) = file.directory(header) {
        append(&mut path, &dwarf.attr_string(unit, directory)?.to_string_lossy()?);
    }
    append(&mut path, &dwarf.attr_string(unit, file.path_name())?.to_string_lossy()?);
    Ok(Some(path))
}

/// `path/part`, or `part` alone where that is absolute.
fn append(path: &mut String, part: &str) {
    if part.starts_with('/') {
        path.clear();
    } else if !path.is_empty() && !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(part);
}
