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
//! 7. `finding.advance(Trial::Shown { grade: Grade::CoEnabled, replays: Replays::default() });` in
//!    `crates/pipeline/src/analyse/mod.rs`, or `Verdict::Diverged { expected, actual }` in `crates/pipeline/src/check/prove.rs`:
//!    `laws::only_forcing_proves`; `pub grade` in `Proof` of `crates/event/src/verdict.rs`: `laws::a_proof_has_private_fields`.

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

/// Where a verdict of `proven` or `diverged` is made, and where executions are presented. Tests are left out.
#[derive(Default)]
struct Judgements {
    made: bool,
    presented: bool,
}

impl Judgements {
    fn of(text: &str) -> Self {
        let mut found = Self::default();
        found.visit_file(&syn::parse_file(text).expect("it compiles"));
        found
    }

    /// A variant of an expression: patterns, which only look, are no expressions.
    fn variant(&mut self, path: &syn::Path) {
        let mut names = path.segments.iter().rev().map(|segment| segment.ident.to_string());
        match (names.next().as_deref(), names.next().as_deref()) {
            (Some("Proven" | "Diverged"), Some("Verdict")) | (Some("Proof"), _) => self.made = true,
            (Some(_), Some("Trial")) => self.presented = true,
            _ => {}
        }
    }
}

impl<'ast> Visit<'ast> for Judgements {
    fn visit_expr_struct(&mut self, expression: &'ast syn::ExprStruct) {
        self.variant(&expression.path);
        visit::visit_expr_struct(self, expression);
    }

    fn visit_expr_path(&mut self, expression: &'ast syn::ExprPath) {
        self.variant(&expression.path);
        visit::visit_expr_path(self, expression);
    }

    /// They go by their whole names, so that this finds them.
    fn visit_use_path(&mut self, path: &'ast syn::UsePath) {
        assert!(path.ident != "Verdict" && path.ident != "Trial", "the variants of {} are not imported", path.ident);
        visit::visit_use_path(self, path);
    }

    fn visit_use_rename(&mut self, rename: &'ast syn::UseRename) {
        assert!(!["Verdict", "Trial", "Proof"].iter().any(|name| rename.ident == name), "{} has no other name", rename.ident);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.ident != "tests" {
            visit::visit_item_mod(self, module);
        }
    }
}

/// Law 7. The only file that makes a proof, and that says of what was shown or forced that it diverged.
const SAYS_PROVEN: &str = "crates/event/src/verdict.rs";
/// Who executes programs, and so may present what came of it; analyses of recordings, which are among them, may not.
const EXECUTES: &str = "crates/pipeline/src/";
const ANALYSES: &str = "crates/pipeline/src/analyse/";

#[test]
fn only_forcing_proves() {
    let files = files::all();
    assert!(files.iter().any(|file| file.path == SAYS_PROVEN), "{SAYS_PROVEN} is gone: who says `proven` instead?");
    for file in files.iter().filter(|file| file.is_library() && file.path != SAYS_PROVEN) {
        let found = Judgements::of(&file.text);
        assert!(!found.made, "{} decides about a proof: only `Verdict::advance` does", file.path);
        let executes = file.path.starts_with(EXECUTES) && !file.path.starts_with(ANALYSES);
        assert!(!found.presented || executes, "{} executes nothing, and so has no trial to present", file.path);
    }
}

/// Nobody else could make a proof if they wanted to.
#[test]
fn a_proof_has_private_fields() {
    let files = files::all();
    let text = &files.iter().find(|file| file.path == SAYS_PROVEN).expect("it is there").text;
    let items = syn::parse_file(text).expect("it compiles").items;
    let proof = items.iter().find_map(|item| match item {
        syn::Item::Struct(item) if item.ident == "Proof" => Some(item),
        _ => None,
    });
    let fields = &proof.expect("a struct Proof").fields;
    assert!(!fields.is_empty() && fields.iter().all(|field| matches!(field.vis, syn::Visibility::Inherited)));
}

/// The edits that break law 7 are found.
#[test]
fn breaking_edits_of_law_seven_are_seen() {
    let made = |text: &str| Judgements::of(&format!("fn f() {{ {text} }}")).made;
    assert!(made("finding.verdict = Verdict::Proven(proof);"));
    assert!(made("let verdict = proof.map(rashomon_event::Verdict::Proven);"));
    assert!(made("let proof = Proof { grade, replays };"));
    assert!(made("finding.verdict = Verdict::Diverged { expected, actual };"));
    assert!(!made("matches!(verdict, Verdict::Proven(_))") && !made("if let Verdict::Diverged { actual, .. } = verdict {}"));
    assert!(Judgements::of("fn f() { finding.advance(Trial::NotShown); }").presented);
}
