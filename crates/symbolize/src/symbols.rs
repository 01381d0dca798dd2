//! The symbol table of a file: which function or variable spans an address.
//!
//! Addresses are those of the file, that is offsets from the load bias, for position-independent programs and others alike.

use crate::blocks::Blocks;
use crate::error::SymbolizeError;
use object::{Object, ObjectSymbol, ReadCache, SymbolKind};
use rashomon_files::Links;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub address: u64,
    pub size: u64,
    /// As in the file.
    pub name: String,
}

/// What is kept of a file: functions and variables, each sorted by address.
#[derive(Clone, Debug, Default)]
pub struct SymbolTable {
    functions: Vec<Symbol>,
    variables: Vec<Symbol>,
    pub build_id: Option<String>,
}

impl SymbolTable {
    pub fn read(path: &Path) -> Result<Self, SymbolizeError> {
        with_object(path, |object| {
            let mut table = Self { build_id: build_id_of(object)?, ..Self::default() };
            for symbol in object.symbols().chain(object.dynamic_symbols()) {
                let target = match symbol.kind() {
                    SymbolKind::Text => &mut table.functions,
                    SymbolKind::Data => &mut table.variables,
                    _ => continue,
                };
                if symbol.is_definition() {
                    let name = symbol.name().unwrap_or_default().to_owned();
                    target.push(Symbol { address: symbol.address(), size: symbol.size(), name });
                }
            }
            for list in [&mut table.functions, &mut table.variables] {
                // Of several names for one place the first of the regular table stays: the sort is stable.
                list.sort_by_key(|symbol| symbol.address);
                list.dedup_by_key(|symbol| symbol.address);
            }
            Ok(table)
        })
    }

    pub fn function_at(&self, address: u64) -> Option<&Symbol> {
        spanning(&self.functions, address)
    }

    pub fn variable_at(&self, address: u64) -> Option<&Symbol> {
        spanning(&self.variables, address).filter(|symbol| symbol.size > 0)
    }
}

/// The symbol that spans `address`; one without a size reaches to the next.
fn spanning(symbols: &[Symbol], address: u64) -> Option<&Symbol> {
    let behind = symbols.partition_point(|symbol| symbol.address <= address);
    let symbol = &symbols[behind.checked_sub(1)?];
    (symbol.size == 0 || address - symbol.address < symbol.size).then_some(symbol)
}

/// The build-id note of a file, in hexadecimal; `None` if it has none.
pub fn build_id(path: &Path) -> Result<Option<String>, SymbolizeError> {
    with_object(path, build_id_of)
}

/// An object file of which only what is asked for is in memory.
pub type CachedObject<'a> = object::File<'a, &'a ReadCache<Blocks>>;

fn build_id_of(object: &CachedObject<'_>) -> Result<Option<String>, object::Error> {
    let bytes = object.build_id()?;
    Ok(bytes.map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// Looks into an object file.
pub fn with_object<T>(
    path: &Path,
    use_object: impl FnOnce(&CachedObject<'_>) -> Result<T, object::Error>,
) -> Result<T, SymbolizeError> {
    let unreadable = |cause: std::io::Error| SymbolizeError::Unreadable { path: path.to_path_buf(), cause: cause.to_string() };
    let no_object = |cause: object::Error| SymbolizeError::NotAnObject { path: path.to_path_buf(), cause: cause.to_string() };
    let file = rashomon_files::open(path, Links::Followed).map_err(unreadable)?;
    let cache = ReadCache::new(Blocks::of(file));
    let object = object::File::parse(&cache).map_err(no_object)?;
    use_object(&object).map_err(no_object)
}

/// What unfolds to more bytes is left out: no debug information is that large, and a small file can claim to.
const LARGEST_SECTION: u64 = 4 << 30;

/// Sections of a file as shared bytes, for DWARF readers that outlive the file.
pub fn sections(path: &Path, names: &[&str]) -> Result<(Vec<Vec<u8>>, bool), SymbolizeError> {
    use object::ObjectSection;
    with_object(path, |object| {
        let contents = names.iter().map(|name| match object.section_by_name(name) {
            Some(section) => {
                let data = section.compressed_data()?;
                match data.uncompressed_size <= LARGEST_SECTION {
                    true => data.decompress().map(|data| data.into_owned()),
                    false => Ok(Vec::new()),
                }
            }
            None => Ok(Vec::new()),
        });
        Ok((contents.collect::<Result<_, _>>()?, object.is_little_endian()))
    })
}
