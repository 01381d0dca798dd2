//! What a function may call a place in a block that it uses, by the structures that it knows.

use crate::members::{At, COUNTERS, Members, is_foreign, is_reserved};

/// Names of a place in a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InBlock {
    /// Each once.
    pub names: Vec<MemberName>,
    /// Structures of the user's that the function knows and that may be a part of the block: whoever calls it may know the whole.
    pub parts: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberName {
    /// `Stats::mutex_`
    pub name: String,
    /// Structures of the user's that the place lies in.
    pub through: Vec<String>,
}

impl Members {
    /// What the code at the address may call the place at an offset of a block that it uses.
    ///
    /// `used`: how many bytes there are used as one; `None`: it is a lock, which is a structure.
    pub fn of_block(&self, code: u64, block: u64, offset: u64, used: Option<u64>) -> InBlock {
        let mut found = InBlock::default();
        for pointed in self.pointed_to(code) {
            let Ok(Some(size)) = self.size(pointed, 0) else { continue };
            let within = match block.checked_sub(size) {
                Some(0) => offset,
                Some(_) if size > 0 && self.has_open_end(pointed) => offset,
                Some(COUNTERS) if offset >= COUNTERS => offset - COUNTERS,
                Some(_) => {
                    found.parts.extend(self.users_name(pointed));
                    continue;
                }
                None => continue,
            };
            let Ok(Some(path)) = self.path(pointed, within) else { continue };
            let fits = match used {
                Some(used) => !path.is_inside && path.bytes.is_none_or(|bytes| used <= bytes),
                None => path.bytes.is_none(),
            };
            if let Some(owner) = path.owner
                && fits
                && !path.words.is_empty()
            {
                let name = format!("{owner}::{}", path.words.trim_start_matches('.'));
                if !found.names.iter().any(|known| known.name == name) {
                    found.names.push(MemberName { name, through: path.through });
                }
            }
        }
        found
    }

    fn users_name(&self, at: At) -> Option<String> {
        let (scope, name) = self.name_of_type(at, None).ok()?;
        name.filter(|name| !is_foreign(&scope) && !is_reserved(name)).map(|name| format!("{scope}{name}"))
    }
}
