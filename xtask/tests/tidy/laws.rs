//! The seven laws of ARCHITECTURE.md, each with the edit that breaks it and the test that then fails.
//!
//! 1. `rashomon-predict.workspace = true` in `crates/witness/Cargo.toml`: `dependencies::the_witness_checker_stands_alone`.
//! 2. `rashomon-confirm.workspace = true` in `crates/order/Cargo.toml`:
//!    `dependencies::analyses_see_neither_the_command_line_nor_the_runtime`.
//! 3. `rashomon-event = { path = "../crates/event" }` in `runtime/Cargo.toml`: `dependencies::the_two_worlds_share_one_crate`.
//! 4. `let byte = unsafe { *(address.0 as *const u8) };` in `crates/trace/src/space.rs`:
//!    `unsafety::unsafe_only_where_it_is_named`;
//!    a block without its `// SAFETY:` in `runtime/src/system/sys.rs`: `unsafety::every_unsafe_block_says_why_it_is_sound`.
//! 5. `println!("proven");` in `crates/pipeline/src/explore.rs`: `text::libraries_do_not_print`.
//! 6. `pub address: Address,` in `Turn` of `crates/event/src/schedule.rs`: `laws::what_survives_re_execution_holds_no_address`.
//! 7. `finding.verdict = Verdict::Proven { grade: Grade::CoEnabled };` in `crates/pipeline/src/analyse/mod.rs`:
//!    `laws::only_forcing_proves`.

use crate::files;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// The names of types in a type.
#[derive(Default)]
struct TypeNames(BTreeSet<String>);

impl<'ast> Visit<'ast> for TypeNames {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.extend(path.segments.last().map(|segment| segment.ident.to_string()));
        visit::visit_path(self, path);
    }
}

/// Each struct and enum of a folder, with the types of its fields.
#[derive(Default)]
struct Definitions(BTreeMap<String, BTreeSet<String>>);

impl Definitions {
    fn note<'a>(&mut self, name: &syn::Ident, fields: impl Iterator<Item = &'a syn::Field>) {
        let mut names = TypeNames::default();
        fields.for_each(|field| names.visit_type(&field.ty));
        self.0.insert(name.to_string(), names.0);
    }
}

impl<'ast> Visit<'ast> for Definitions {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.note(&item.ident, item.fields.iter());
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.note(&item.ident, item.variants.iter().flat_map(|variant| variant.fields.iter()));
    }
}

/// Law 6. What names a thing in a later execution, or is written to the store, is made of none of these types.
#[test]
fn what_survives_re_execution_holds_no_address() {
    const SURVIVE: [&str; 7] = ["Schedule", "Finding", "FindingId", "Provocation", "ThreadPath", "ProcessPath", "ObjectName"];
    const OF_ONE_EXECUTION: [&str; 6] = ["Address", "EventIndex", "ContextId", "SiteId", "ObjectId", "ThreadId"];
    let mut definitions = Definitions::default();
    for file in files::all().iter().filter(|file| file.is_rust() && file.path.starts_with("crates/event/src/")) {
        definitions.visit_file(&syn::parse_file(&file.text).expect("it compiles"));
    }
    let mut reached = BTreeSet::new();
    let mut open: Vec<String> = SURVIVE.map(String::from).to_vec();
    while let Some(name) = open.pop() {
        let Some(fields) = definitions.0.get(&name) else { continue };
        assert!(!OF_ONE_EXECUTION.contains(&name.as_str()), "{name} means something in one execution only");
        if reached.insert(name) {
            open.extend(fields.iter().cloned());
        }
    }
    for name in SURVIVE {
        assert!(reached.contains(name), "{name} is not in crates/event any more: what survives re-execution instead?");
    }
    let found: Vec<_> = OF_ONE_EXECUTION.iter().filter(|name| reached.contains(**name)).collect();
    assert!(found.is_empty(), "what survives re-execution holds {found:?}");
}

/// Where a verdict of `proven` is made. Tests are left out.
#[derive(Default)]
struct Proven(usize);

impl<'ast> Visit<'ast> for Proven {
    fn visit_expr_struct(&mut self, expression: &'ast syn::ExprStruct) {
        let names: Vec<String> = expression.path.segments.iter().rev().take(2).map(|segment| segment.ident.to_string()).collect();
        self.0 += usize::from(names == ["Proven", "Verdict"] || names == ["Proven", "Self"]);
        visit::visit_expr_struct(self, expression);
    }

    /// A verdict goes by its whole name, so that this finds it.
    fn visit_use_path(&mut self, path: &'ast syn::UsePath) {
        assert!(path.ident != "Verdict", "the variants of Verdict are not imported");
        visit::visit_use_path(self, path);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.ident != "tests" {
            visit::visit_item_mod(self, module);
        }
    }
}

/// Law 7. The files that may say `proven`, each behind an execution that showed it, and how often each says so.
const SAY_PROVEN: [(&str, usize); 6] = [
    // A schedule was forced and came to its goal; the recorded one was, and no happens-before edge ordered both accesses.
    ("crates/pipeline/src/check/prove.rs", 2),
    // A schedule that exploration found was executed again.
    ("crates/pipeline/src/explore.rs", 1),
    // A recorded execution ended blocked; two threads were held side by side.
    ("crates/pipeline/src/findings/compose.rs", 2),
    // A recorded failure came about again under its schedule, and not under the control's.
    ("crates/pipeline/src/findings/failure.rs", 1),
    // The recorded execution itself used a lock or a thread wrongly.
    ("crates/pipeline/src/findings/misuse.rs", 1),
    // Two threads were held side by side while races were provoked.
    ("crates/pipeline/src/provoke/catch.rs", 1),
];

#[test]
fn only_forcing_proves() {
    let mut found = BTreeMap::new();
    let files = files::all();
    for file in files.iter().filter(|file| file.is_library()) {
        let mut proven = Proven::default();
        proven.visit_file(&syn::parse_file(&file.text).expect("it compiles"));
        if proven.0 > 0 {
            found.insert(file.path.as_str(), proven.0);
        }
    }
    assert_eq!(found, BTreeMap::from(SAY_PROVEN), "who may say `proven`, and how often, is listed in {}", file!());
}
