//! The shape of the code: how long a function and a line may be, and which file knows which.

use crate::files::{self, TextFile};
use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// Longer functions do more than one thing.
const MAX_FUNCTION: usize = 80;
/// Columns of a line of code, comments included.
const MAX_COLUMNS: usize = 130;

fn parsed(file: &TextFile) -> syn::File {
    syn::parse_file(&file.text).unwrap_or_else(|error| panic!("{}: {error}", file.path))
}

#[derive(Default)]
struct Lengths(Vec<(String, usize)>);

impl Lengths {
    fn note(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let lines = body.brace_token.span.close().end().line - signature.fn_token.span.start().line + 1;
        self.0.push((signature.ident.to_string(), lines));
    }
}

impl<'ast> Visit<'ast> for Lengths {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.note(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.note(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }
}

#[test]
fn functions_are_short_enough_to_read() {
    let mut too_long = Vec::new();
    for file in files::all().iter().filter(|file| file.is_rust()) {
        let mut lengths = Lengths::default();
        lengths.visit_file(&parsed(file));
        for (name, lines) in lengths.0.into_iter().filter(|(_, lines)| *lines > MAX_FUNCTION) {
            too_long.push(format!("{}: {name} has {lines} lines", file.path));
        }
    }
    assert!(too_long.is_empty(), "functions of more than {MAX_FUNCTION} lines:\n{}", too_long.join("\n"));
}

/// A row of a table cannot be broken, in a document or in a comment.
fn is_row(file: &TextFile, line: &str) -> bool {
    let text = line.trim_start();
    let text = if file.path.ends_with(".md") { text } else { text.strip_prefix("//! ").unwrap_or_default() };
    text.starts_with('|')
}

#[test]
fn lines_are_short_enough_to_read() {
    let mut wide = Vec::new();
    for file in files::all().iter().filter(|file| file.is_source() || file.path.ends_with(".md")) {
        let too_wide = |line: &str| line.chars().count() > MAX_COLUMNS;
        for (number, line) in file.text.lines().enumerate().filter(|(_, line)| too_wide(line) && !is_row(file, line)) {
            wide.push(format!("{}:{} has {} columns", file.path, number + 1, line.chars().count()));
        }
    }
    assert!(wide.is_empty(), "lines of more than {MAX_COLUMNS} columns:\n{}", wide.join("\n"));
}

/// One crate: its modules, and the files that they are in.
struct Crate {
    /// Each module by its path, with the number of its file.
    modules: BTreeMap<Vec<String>, usize>,
    /// Names that a module passes on, with what they stand for.
    passed_on: BTreeMap<(Vec<String>, String), Vec<String>>,
    files: Vec<Source>,
}

struct Source {
    path: String,
    module: Vec<String>,
    parsed: syn::File,
}

impl Crate {
    fn of(root: &str, texts: &BTreeMap<&str, &TextFile>) -> Self {
        let mut new = Self { modules: BTreeMap::new(), passed_on: BTreeMap::new(), files: Vec::new() };
        let folder = root.rsplit_once('/').expect("a path").0.to_owned();
        new.take(root, Vec::new(), &folder, texts);
        for number in 0..new.files.len() {
            let items = std::mem::take(&mut new.files[number].parsed.items);
            new.pass_on(&items, &new.files[number].module.clone());
            new.files[number].parsed.items = items;
        }
        new
    }

    /// `folder`: in which the files of its child modules are.
    fn take(&mut self, path: &str, module: Vec<String>, folder: &str, texts: &BTreeMap<&str, &TextFile>) {
        let Some(file) = texts.get(path) else { return };
        let parsed = parsed(file);
        self.modules.insert(module.clone(), self.files.len());
        let mut children = Vec::new();
        for item in &parsed.items {
            // A list of one line each that declares modules.
            if let syn::Item::Macro(list) = item
                && list.ident.is_none()
            {
                children.extend(list.mac.tokens.clone().into_iter().filter_map(|token| match token {
                    proc_macro2::TokenTree::Ident(name) => Some(name.to_string()),
                    _ => None,
                }));
            }
            if let syn::Item::Mod(child) = item
                && child.content.is_none()
                && !is_test(&child.attrs)
            {
                children.push(child.ident.to_string());
            }
        }
        self.files.push(Source { path: path.to_owned(), module: module.clone(), parsed });
        for child in children {
            let inner = format!("{folder}/{child}");
            let own = [format!("{inner}/mod.rs"), format!("{inner}.rs")];
            let module = [module.as_slice(), std::slice::from_ref(&child)].concat();
            if let Some(path) = own.iter().find(|path| texts.contains_key(path.as_str())) {
                self.take(path, module, &inner, texts);
            }
        }
    }

    fn pass_on(&mut self, items: &[syn::Item], module: &[String]) {
        for item in items {
            if let syn::Item::Use(import) = item
                && !matches!(import.vis, syn::Visibility::Inherited)
            {
                let mut targets = Vec::new();
                targets_of(&import.tree, &mut Vec::new(), &mut targets);
                for target in targets {
                    let Some(name) = target.last().cloned() else { continue };
                    let target = absolute(&target, module).unwrap_or_else(|| [module, &target].concat());
                    self.passed_on.insert((module.to_vec(), name), target);
                }
            }
        }
    }

    /// Each file with each other file of which its code names something.
    fn named(&self) -> BTreeSet<(usize, usize)> {
        let mut pairs = BTreeSet::new();
        for (number, source) in self.files.iter().enumerate() {
            let mut named = Named { module: source.module.clone(), paths: BTreeSet::new() };
            named.visit_file(&source.parsed);
            let targets = named.paths.iter().filter_map(|path| self.file_of(path, 0));
            pairs.extend(targets.filter(|target| *target != number).map(|target| (number, target)));
        }
        pairs
    }

    /// The file of what an absolute path names.
    fn file_of(&self, path: &[String], depth: usize) -> Option<usize> {
        let (module, rest) = (0..=path.len())
            .rev()
            .find_map(|length| self.modules.contains_key(&path[..length]).then(|| path.split_at(length)))?;
        if let Some(name) = rest.first()
            && depth < 8
            && let Some(target) = self.passed_on.get(&(module.to_vec(), name.clone()))
            && target.as_slice() != path
        {
            return self.file_of(target, depth + 1);
        }
        self.modules.get(module).copied()
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Ident>().is_ok_and(|name| name == "test")
    })
}

/// What a `use` names, as segments.
fn targets_of(tree: &syn::UseTree, before: &mut Vec<String>, targets: &mut Vec<Vec<String>>) {
    let with = |name: &syn::Ident| [before.as_slice(), &[name.to_string()]].concat();
    match tree {
        syn::UseTree::Path(path) => {
            before.push(path.ident.to_string());
            targets_of(&path.tree, before, targets);
            before.pop();
        }
        syn::UseTree::Name(name) if name.ident == "self" => targets.push(before.clone()),
        syn::UseTree::Name(name) => targets.push(with(&name.ident)),
        syn::UseTree::Rename(name) => targets.push(with(&name.ident)),
        syn::UseTree::Glob(_) => targets.push(before.clone()),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| targets_of(tree, before, targets)),
    }
}

/// The path from the root of the crate; `None` where it begins elsewhere.
fn absolute(path: &[String], module: &[String]) -> Option<Vec<String>> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([module, rest].concat()),
        "super" => {
            let parent = &module[..module.len().checked_sub(1)?];
            let again = rest.first().is_some_and(|next| next == "super");
            if again { absolute(rest, parent) } else { Some([parent, rest].concat()) }
        }
        _ => None,
    }
}

/// The paths within its crate that a file's code names.
struct Named {
    module: Vec<String>,
    paths: BTreeSet<Vec<String>>,
}

impl<'ast> Visit<'ast> for Named {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            self.module.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
        // What is passed on is used by whoever names it.
        if matches!(import.vis, syn::Visibility::Inherited) && !is_test(&import.attrs) {
            let mut targets = Vec::new();
            targets_of(&import.tree, &mut Vec::new(), &mut targets);
            self.paths.extend(targets.iter().filter_map(|target| absolute(target, &self.module)));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.paths.extend(absolute(&segments, &self.module));
        visit::visit_path(self, path);
    }
}

/// Each file of the crate at `root` with each other of which its code names something, by their paths.
pub fn files_named_by_files(root: &str) -> BTreeSet<(String, String)> {
    let all = files::all();
    let texts = all.iter().filter(|file| file.is_rust()).map(|file| (file.path.as_str(), file)).collect();
    let one = Crate::of(root, &texts);
    let path = |file: usize| one.files[file].path.clone();
    one.named().into_iter().map(|(file, named)| (path(file), path(named))).collect()
}

/// The folder that a file belongs to: `x.rs` beside a folder `x` belongs to that.
fn folder_of(path: &str, paths: &BTreeSet<&str>) -> String {
    let stem = path.strip_suffix(".rs").expect("a Rust file");
    let own = format!("{stem}/");
    if paths.iter().any(|other| other.starts_with(&own)) {
        stem.to_owned()
    } else {
        path.rsplit_once('/').expect("a path").0.to_owned()
    }
}

#[test]
fn files_of_different_folders_do_not_know_each_other() {
    let all = files::all();
    let texts: BTreeMap<&str, &TextFile> =
        all.iter().filter(|file| file.is_rust()).map(|file| (file.path.as_str(), file)).collect();
    let roots = texts.keys().filter(|path| path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs"));
    let mut found = Vec::new();
    for root in roots {
        let one = Crate::of(root, &texts);
        let mut graph = DiGraph::<usize, ()>::new();
        let nodes: Vec<_> = (0..one.files.len()).map(|file| graph.add_node(file)).collect();
        for (file, named) in one.named() {
            graph.update_edge(nodes[file], nodes[named], ());
        }
        let paths: BTreeSet<&str> = one.files.iter().map(|source| source.path.as_str()).collect();
        for component in tarjan_scc(&graph) {
            let files: BTreeSet<&str> = component.iter().map(|node| one.files[graph[*node]].path.as_str()).collect();
            let folders: BTreeSet<String> = files.iter().map(|path| folder_of(path, &paths)).collect();
            if folders.len() > 1 {
                found.push(format!("{}:\n  {}", Vec::from_iter(folders).join(", "), Vec::from_iter(files).join("\n  ")));
            }
        }
    }
    assert!(found.is_empty(), "files of different folders know each other:\n{}", found.join("\n"));
}

/// A file of tests that no `mod` names is never compiled, and nothing else would say so.
#[test]
fn every_file_beside_the_main_file_of_a_test_is_its_module() {
    let all = files::all();
    let mut forgotten = Vec::new();
    for main in all.iter().filter(|file| file.path.contains("/tests/") && file.path.ends_with("/main.rs")) {
        let folder = main.path.trim_end_matches("main.rs");
        let name_of = |item: syn::Item| if let syn::Item::Mod(module) = item { Some(module.ident.to_string()) } else { None };
        let modules: BTreeSet<String> = parsed(main).items.into_iter().filter_map(name_of).collect();
        for file in &all {
            let name = file.path.strip_prefix(folder).and_then(|rest| rest.strip_suffix(".rs"));
            if name.is_some_and(|name| name != "main" && !name.contains('/') && !modules.contains(name)) {
                forgotten.push(file.path.as_str());
            }
        }
    }
    assert!(forgotten.is_empty(), "no `mod` in main.rs names them:\n{}", forgotten.join("\n"));
}
