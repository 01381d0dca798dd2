//! Which recorded calls into unseen code count: what the user leaves out, and what not.
//!
//! A call is named by its function (`foo_get`, `foo_*`), by a shared object that it goes into or comes from (`libfoo.so.1`, up to
//! the version), or by a folder or file of the source that it is made in (anything with a `/`, such as `src/net/`). A call that
//! an exclusion names and no inclusion does orders nothing. Where there are only inclusions, nor does any call that none of them
//! names.

use crate::analyse::libraries::is_named;
use object::{Object as _, ObjectSymbol as _};
use rashomon_event::{Gap, ModuleInfo, Trace, path_of};
use rashomon_symbolize::Symbolizer;
use std::collections::BTreeMap;

/// How the rules stand among what a store remembers of libraries ([`crate::RunRecord::trusted_libraries`]).
const EXCLUDED: &str = "exclude-calls=";
const INCLUDED: &str = "include-calls=";

/// In the form in which stores remember it.
pub fn excluded(what: &str) -> String {
    format!("{EXCLUDED}{what}")
}

/// In the form in which stores remember it.
pub fn included(what: &str) -> String {
    format!("{INCLUDED}{what}")
}

/// Names of functions by where they begin in a module.
type Functions = BTreeMap<u64, Vec<String>>;

/// What the user has said of calls, and what has been read to tell which are meant.
pub struct Calls<'a> {
    excluded: Vec<&'a str>,
    included: Vec<&'a str>,
    symbolizer: Symbolizer,
    functions: BTreeMap<String, Functions>,
    /// Source files of places of calls, by module and offset.
    sources: BTreeMap<(u32, u64), Vec<String>>,
}

impl<'a> Calls<'a> {
    /// Among what else is remembered.
    pub fn of(remembered: &'a [String]) -> Self {
        let of = |prefix: &str| remembered.iter().filter_map(|it| it.strip_prefix(prefix)).collect();
        Self {
            excluded: of(EXCLUDED),
            included: of(INCLUDED),
            symbolizer: Symbolizer::new(),
            functions: BTreeMap::new(),
            sources: BTreeMap::new(),
        }
    }

    /// Whether the call counts.
    pub fn count(&mut self, trace: &Trace, gap: &Gap) -> bool {
        if self.excluded.is_empty() && self.included.is_empty() {
            return true;
        }
        let (excluded, included) = (self.excluded.clone(), self.included.clone());
        if self.is_meant(trace, gap, &included) {
            return true;
        }
        !excluded.is_empty() && !self.is_meant(trace, gap, &excluded)
    }

    fn is_meant(&mut self, trace: &Trace, gap: &Gap, rules: &[&str]) -> bool {
        let site = trace.site(trace.event(gap.begin).site);
        let info = |module: Option<u32>| trace.modules.get(module? as usize);
        let (caller, called) = (info(site.module), info(gap.module));
        rules.iter().any(|rule| {
            if rule.contains('/') {
                return caller.is_some_and(|info| {
                    let files = self.files_at((site.module.unwrap_or(u32::MAX), site.offset), info);
                    files.iter().any(|file| lies_in(file, rule))
                });
            }
            if rule.contains(".so") {
                return [called, caller].into_iter().flatten().any(|info| is_named(file_name(&info.path), rule));
            }
            let Some((info, function)) = called.zip(gap.function) else { return false };
            let names = self.functions_of(info).get(&trace.site(function).offset);
            names.is_some_and(|names| names.iter().any(|name| is_function(name, rule)))
        })
    }

    fn files_at(&mut self, place: (u32, u64), info: &ModuleInfo) -> &[String] {
        let Self { symbolizer, sources, .. } = self;
        sources.entry(place).or_insert_with(|| {
            let frames = symbolizer.frames_of_return_address(info, place.1);
            frames.into_iter().filter_map(|frame| frame.file).collect()
        })
    }

    fn functions_of(&mut self, info: &ModuleInfo) -> &Functions {
        self.functions.entry(info.path.clone()).or_insert_with(|| {
            let mut all = Functions::new();
            let read = rashomon_symbolize::with_object(&path_of(&info.path), |file| {
                for symbol in file.dynamic_symbols().chain(file.symbols()).filter(|symbol| symbol.is_definition()) {
                    if let Ok(name) = symbol.name() {
                        all.entry(symbol.address()).or_default().push(name.to_owned());
                    }
                }
                Ok(())
            });
            // A file that cannot be read names no function: its calls count.
            read.map_or_else(|_| Functions::new(), |()| all)
        })
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_function(name: &str, rule: &str) -> bool {
    rule.strip_suffix('*').map_or_else(|| name == rule, |beginning| name.starts_with(beginning))
}

/// Whether a source file is the one that is meant, or lies in a folder of that name: at the beginning of its path or within it.
fn lies_in(file: &str, rule: &str) -> bool {
    let wanted = rule.trim_end_matches('/');
    if wanted.is_empty() {
        return file.starts_with('/');
    }
    file.match_indices(wanted).any(|(at, _)| {
        let (before, behind) = (&file[..at], &file[at + wanted.len()..]);
        (before.is_empty() || before.ends_with('/') && !wanted.starts_with('/')) && (behind.is_empty() || behind.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_files_are_whole() {
        for (file, rule) in [
            ("/opt/a/src/net/poll.c", "src/net/"),
            ("/opt/a/src/net/poll.c", "/opt/a"),
            ("src/net/poll.c", "src/net"),
            ("/opt/a/src/net/poll.c", "net/poll.c"),
            ("/opt/a/a.c", "/"),
        ] {
            assert!(lies_in(file, rule), "{file} {rule}");
        }
        for (file, rule) in [
            ("/opt/a/src/network/poll.c", "src/net/"),
            ("/opt/a/mysrc/net/poll.c", "src/net"),
            ("/opt/a/src/net/poll.c", "/src/net"),
            ("/opt/a/src/net/poll.c", "net/poll"),
            ("a.c", "/"),
        ] {
            assert!(!lies_in(file, rule), "{file} {rule}");
        }
    }

    #[test]
    fn functions_are_whole_or_begin_so() {
        assert!(is_function("g_queue_push", "g_queue_*") && is_function("g_queue_push", "g_queue_push"));
        assert!(!is_function("g_queue_push_tail", "g_queue_push") && !is_function("my_g_queue_push", "g_queue_*"));
    }

    #[test]
    fn what_is_remembered_of_libraries_is_no_rule() {
        let remembered = ["libfoo.so.1".to_owned(), excluded("foo_get"), included("src/")];
        let calls = Calls::of(&remembered);
        assert_eq!((calls.excluded, calls.included), (vec!["foo_get"], vec!["src/"]));
        assert!(!crate::analyse::libraries::is_trusted("/lib/foo_get", &remembered));
    }
}
