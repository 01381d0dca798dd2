//! Ids of findings: the kind, and a hash of the two (or more) places, each as function name and place within the function.
//!
//! The place is line and column, counted from the function's first line, or the offset from its first instruction where there is no
//! debug information. So an id stays the same over runs, over address-space randomisation, and over rebuilds that leave the functions
//! concerned as they are; and the read and the write of one `x++` are one place. Two findings with equal places are one
//! finding, whichever objects they touch.

use crate::symbols::Symbols;
use rashomon_event::{FindingKind, SiteId, Trace};

/// Text that identifies a code place.
pub fn place_key<S: Symbols + ?Sized>(trace: &Trace, symbols: &S, site: SiteId) -> String {
    let site = trace.site(site);
    let Some(module) = site.module.and_then(|module| trace.modules.get(module as usize)) else {
        return format!("{:#x}", site.address);
    };
    let instruction = site.offset.saturating_sub(1);
    let name = module.path.rsplit('/').next().unwrap_or(&module.path);
    match symbols.function_start(module, instruction) {
        Some(start) => {
            // The outermost function is the one whose code the place counts in; what is inlined into it moves with it.
            let frames = symbols.frames(module, instruction);
            let function = frames.last().and_then(|frame| frame.function.clone()).unwrap_or_default();
            let first_line = symbols.frames(module, start).last().and_then(|frame| frame.line);
            let lines: Option<Vec<String>> = frames
                .iter()
                .map(|frame| {
                    let line = i64::from(frame.line?) - i64::from(first_line?);
                    Some(format!("{line}:{}", frame.column.unwrap_or(0)))
                })
                .collect();
            match lines {
                // Lines of inlined functions count from the function around them: it suffices that they are told apart.
                Some(lines) => format!("{function}@{}", lines.join("<")),
                None => format!("{function}+{:#x}", instruction.saturating_sub(start)),
            }
        }
        None => format!("{name}+{instruction:#x}"),
    }
}

/// `race-3f2a91c4`. The order of the places does not matter.
pub fn finding_id(kind: FindingKind, mut places: Vec<String>) -> String {
    places.sort();
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for place in &places {
        // A separator that no name holds.
        for byte in place.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    let word = match kind {
        FindingKind::DataRace => "race",
        FindingKind::Deadlock => "deadlock",
        FindingKind::Stuck => "stuck",
    };
    format!("{word}-{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_do_not_depend_on_the_order_of_the_sides() {
        let id = |places: [&str; 2]| finding_id(FindingKind::DataRace, places.map(str::to_owned).to_vec());
        assert_eq!(id(["f+0x4", "g+0x8"]), id(["g+0x8", "f+0x4"]));
        assert_ne!(id(["f+0x4", "g+0x8"]), id(["f+0x4", "g+0x9"]));
        assert_ne!(id(["ab", "c"]), id(["a", "bc"]));
        assert_eq!(id(["f+0x4", "g+0x8"]).len(), "race-00000000".len());
    }
}
