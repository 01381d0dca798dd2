//! The debug information of a file, in memory, and what its readers share.

use crate::symbols::sections;
use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, EndianArcSlice, Operation, Reader as _, RunTimeEndian, SectionId, Unit,
};
use std::path::Path;

pub type Bytes = EndianArcSlice<RunTimeEndian>;

const SECTIONS: [SectionId; 11] = [
    SectionId::DebugAbbrev,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugAddr,
    SectionId::DebugRngLists,
    SectionId::DebugRanges,
];

/// `None` where there is none or it cannot be read.
pub fn read(path: &Path) -> Option<Dwarf<Bytes>> {
    let names = SECTIONS.map(|id| id.name());
    let (contents, little) = sections(path, &names).ok()?;
    let endian = if little { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let slices: Vec<Bytes> = contents.into_iter().map(|bytes| Bytes::new(bytes.into(), endian)).collect();
    let empty = Bytes::new(Vec::new().into(), endian);
    let section = |id: SectionId| {
        let at = SECTIONS.iter().position(|&known| known == id);
        Ok::<_, gimli::Error>(at.map_or_else(|| empty.clone(), |at| slices[at].clone()))
    };
    Dwarf::load(section).ok()
}

/// Whether the unit is of the runtime that is linked into the program: it declares nothing of the program's, and is longer than
/// most programs are.
pub fn is_runtime(unit: &Unit<Bytes>) -> bool {
    // As rustc names a unit: file of the crate, crate, unit of code.
    let name = unit.name.as_ref().and_then(|name| name.to_string_lossy().ok());
    name.is_some_and(|name| name.contains("/@/rashomon_runtime."))
}

/// Where a variable lies, if that is one constant address.
pub fn address_of(
    dwarf: &Dwarf<Bytes>,
    unit: &Unit<Bytes>,
    entry: &DebuggingInformationEntry<'_, '_, Bytes>,
) -> Result<Option<u64>, gimli::Error> {
    let Some(AttributeValue::Exprloc(expression)) = entry.attr_value(gimli::DW_AT_location)? else {
        return Ok(None);
    };
    let mut operations = expression.operations(unit.encoding());
    let address = match operations.next()? {
        Some(Operation::Address { address }) => address,
        Some(Operation::AddressIndex { index }) => dwarf.address(unit, index)?,
        _ => return Ok(None),
    };
    Ok(operations.next()?.is_none().then_some(address))
}

/// The name of an entry.
pub fn name_of(
    dwarf: &Dwarf<Bytes>,
    unit: &Unit<Bytes>,
    entry: &DebuggingInformationEntry<'_, '_, Bytes>,
) -> Result<Option<String>, gimli::Error> {
    let Some(value) = entry.attr_value(gimli::DW_AT_name)? else { return Ok(None) };
    Ok(Some(dwarf.attr_string(unit, value)?.to_string_lossy()?.into_owned()))
}
