//! Which of the loaded libraries anybody can call.
//!
//! Programs are linked with libraries that they never call, and those bring others with them. What never runs orders nothing.
//! A library counts as called if
//! 1. it was opened while the program ran: no chain of needed libraries leads from instrumented code to it;
//! 2. a module that counts as called imports a function or variable that the library defines, or has the name of one at the end
//!    of a constant text, as `dlsym` wants it (linkers let a text begin inside a longer one);
//! 3. it imports something from a library that counts as called, where its constructors could have left a callback.
//!
//! Libraries that the runtime knows call nobody by themselves; callbacks left with them (`atexit`) run where it sees them.

use crate::analyse::libraries::names;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind, SymbolSection, elf};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Instrumented,
    /// The runtime stands in for it, or knows it.
    Modelled,
    Library,
}

/// What is asked of a module.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// By which others need it.
    pub name: String,
    pub needed: Vec<String>,
    pub defined: FxHashSet<String>,
    pub imported: FxHashSet<String>,
    /// Ends of constant texts, in which names are looked for: as far back as there is neither a blank nor anything but ASCII.
    pub texts: FxHashSet<String>,
}

/// Longer names are not looked for among texts.
const LONGEST_NAME: usize = 256;
/// No module has more constant data that is looked at.
const LARGEST_SECTION: u64 = 1 << 28;

impl Facts {
    /// `None`: the file cannot be read.
    pub fn of(path: &Path) -> Option<Self> {
        let file_name = path.file_name()?.to_str()?.to_owned();
        let name = names(path, elf::DT_SONAME)?.pop().unwrap_or(file_name);
        let mut facts = Self { name, needed: names(path, elf::DT_NEEDED)?, ..Self::default() };
        rashomon_symbolize::with_object(path, |file| {
            // Names of versions are absolute.
            for symbol in file.dynamic_symbols().filter(|symbol| symbol.section() != SymbolSection::Absolute) {
                let Ok(name) = symbol.name() else { continue };
                let to = if symbol.is_definition() { &mut facts.defined } else { &mut facts.imported };
                to.insert(name.to_owned());
            }
            let constant = |kind| matches!(kind, SectionKind::ReadOnlyData | SectionKind::ReadOnlyString);
            for section in file.sections().filter(|it| constant(it.kind()) && it.size() <= LARGEST_SECTION) {
                let ends = section.data()?.split(|byte| *byte == 0).map(end_of).filter(|end| !end.is_empty());
                for end in ends {
                    if !facts.texts.contains(end) {
                        facts.texts.insert(end.to_owned());
                    }
                }
            }
            Ok(())
        })
        .ok()?;
        Some(facts)
    }

    /// The names by which it may call somebody.
    fn names(&self) -> impl Iterator<Item = &str> {
        let ends = self.texts.iter().flat_map(|text| (0..text.len()).map(move |start| &text[start..]));
        self.imported.iter().map(String::as_str).chain(ends)
    }

    /// `modelled`: what the runtime stands in for; the program may define it because the runtime is inside.
    fn may_register_with(&self, other: &Self, modelled: &FxHashSet<&String>) -> bool {
        self.imported.iter().any(|name| other.defined.contains(name) && !modelled.contains(name))
    }
}

/// The end of a text, as far back as a name may reach that is looked for.
fn end_of(text: &[u8]) -> &str {
    let from = text.len().saturating_sub(LONGEST_NAME);
    let start = text[from..].iter().rposition(|byte| !byte.is_ascii_graphic()).map_or(from, |place| from + place + 1);
    std::str::from_utf8(&text[start..]).unwrap_or_default()
}

/// For each module the libraries that it may call by a name that they define.
fn reached(modules: &[(Role, Facts)]) -> Vec<BTreeSet<usize>> {
    let mut by_name: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
    for (index, (_, facts)) in modules.iter().enumerate().filter(|(_, (role, _))| *role == Role::Library) {
        facts.defined.iter().for_each(|name| by_name.entry(name).or_default().push(index));
    }
    let of = |facts: &Facts| facts.names().filter_map(|name| by_name.get(name)).flatten().copied().collect();
    modules.iter().map(|(role, facts)| if *role == Role::Modelled { BTreeSet::new() } else { of(facts) }).collect()
}

/// For each module whether it counts as called.
pub fn called(modules: &[(Role, Facts)]) -> Vec<bool> {
    let is_linked = linked(modules);
    let known = modules.iter().filter(|(role, _)| *role == Role::Modelled);
    let modelled: FxHashSet<&String> = known.flat_map(|(_, facts)| &facts.defined).collect();
    let mut called: Vec<bool> =
        modules.iter().zip(is_linked).map(|((role, _), linked)| *role == Role::Instrumented || !linked).collect();
    let reached = reached(modules);
    let mut next: Vec<usize> = (0..modules.len()).filter(|index| called[*index]).collect();
    while let Some(by) = next.pop() {
        let (role, facts) = &modules[by];
        for (index, (_, library)) in modules.iter().enumerate().filter(|(_, (other, _))| *other == Role::Library) {
            let calls = || reached[by].contains(&index) || library.may_register_with(facts, &modelled);
            if *role != Role::Modelled && !called[index] && calls() {
                called[index] = true;
                next.push(index);
            }
        }
    }
    called
}

/// Which modules chains of needed libraries lead to from instrumented ones.
pub fn linked(modules: &[(Role, Facts)]) -> Vec<bool> {
    let mut linked: Vec<bool> = modules.iter().map(|(role, _)| *role == Role::Instrumented).collect();
    let mut names: Vec<&String> =
        modules.iter().filter(|(role, _)| *role == Role::Instrumented).flat_map(|(_, facts)| &facts.needed).collect();
    let mut seen = BTreeSet::new();
    while let Some(name) = names.pop() {
        if !seen.insert(name) {
            continue;
        }
        for (index, (_, facts)) in modules.iter().enumerate().filter(|(_, (_, facts))| facts.name == *name) {
            linked[index] = true;
            names.extend(&facts.needed);
        }
    }
    linked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(role: Role, name: &str, needed: &[&str], defined: &[&str], imported: &[&str]) -> (Role, Facts) {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
        let facts = Facts {
            name: name.into(),
            needed: owned(needed),
            defined: owned(defined).into_iter().collect(),
            imported: owned(imported).into_iter().collect(),
            texts: FxHashSet::default(),
        };
        (role, facts)
    }

    /// The program needs and calls `libused`; it needs `libidle`, which needs and calls `libbehind`, and calls neither. The
    /// runtime is in the program.
    fn modules() -> Vec<(Role, Facts)> {
        vec![
            module(Role::Instrumented, "program", &["libused.so", "libidle.so", "libc.so"], &["main", "malloc"], &["used"]),
            module(Role::Library, "libused.so", &["libc.so"], &["used"], &["malloc"]),
            module(Role::Library, "libidle.so", &["libbehind.so", "libc.so"], &["idle"], &["behind", "malloc"]),
            module(Role::Library, "libbehind.so", &["libc.so"], &["behind"], &[]),
            module(Role::Modelled, "libc.so", &[], &["malloc"], &[]),
        ]
    }

    /// The libraries that count as called.
    fn called_of(modules: &[(Role, Facts)]) -> Vec<&str> {
        let all = modules.iter().zip(called(modules));
        all.filter(|((role, _), called)| *role == Role::Library && *called).map(|((_, facts), _)| facts.name.as_str()).collect()
    }

    #[test]
    fn what_nobody_imports_from_is_not_called() {
        assert_eq!(called_of(&modules()), ["libused.so"]);
    }

    #[test]
    fn calls_lead_on() {
        let mut modules = modules();
        modules[1].1.imported.insert("idle".into());
        assert_eq!(called_of(&modules), ["libused.so", "libidle.so", "libbehind.so"]);
    }

    #[test]
    fn a_name_among_the_texts_is_looked_up_perhaps() {
        let mut modules = modules();
        modules[0].1.texts.insert("look behind".into());
        // `libidle` imports from it, too.
        assert_eq!(called_of(&modules), ["libused.so", "libidle.so", "libbehind.so"]);
    }

    #[test]
    fn what_could_leave_a_callback_is_called() {
        let mut modules = modules();
        modules[2].1.imported.insert("used".into());
        assert_eq!(called_of(&modules), ["libused.so", "libidle.so", "libbehind.so"]);
    }

    #[test]
    fn what_was_opened_later_is_called() {
        let mut modules = modules();
        modules.push(module(Role::Library, "plugin.so", &["libc.so"], &["start"], &[]));
        assert_eq!(called_of(&modules), ["libused.so", "plugin.so"]);
    }
}
