//! `unsafe` is in the runtime and in a few named modules, and every use says why it is sound.

use crate::files;
use crate::source::{Line, lines, words};

/// Modules of the host tool that may use `unsafe`, and why they must.
const ALLOWED: [(&str, &str); 8] = [
    ("crates/engine/src/hints.rs", "prefetch instructions and advice about memory are unsafe calls"),
    ("crates/packed/src/window.rs", "mapping a file is unsafe: others may change it"),
    ("crates/spill/src/memory.rs", "an allocator is an unsafe trait, and to map a file is unsafe"),
    ("crates/trace/src/map.rs", "mapping a file is unsafe: others may change it"),
    ("crates/confirm/src/keeper.rs", "fork, signal sets and what a process wants to be told have no safe bindings"),
    ("plugin/src/ir.rs", "LLVM's interface is that of C"),
    ("plugin/src/entry.rs", "LLVM calls it by names of C"),
    ("crates/confirm/src/process.rs", "hooks between fork and exec are unsafe, and personality(2) has no safe binding"),
];

/// Programs that the tool is tried on: what is wrong with their `unsafe` code is what they are for.
fn is_tried_on(file: &files::TextFile) -> bool {
    ["tests/rust/", "tests/gates/"].iter().any(|folder| file.path.starts_with(folder))
}

/// Crates with such a module deny `unsafe` and except the module; all others forbid it.
fn has_exception(folder: &str) -> bool {
    ALLOWED.iter().any(|(path, _)| path.starts_with(folder))
}

#[test]
fn unsafe_only_where_it_is_named() {
    let mut used = Vec::new();
    for file in files::all().iter().filter(|file| file.is_rust() && !file.path.starts_with("runtime/") && !is_tried_on(file)) {
        let uses = lines(&file.text).iter().any(|line| words(&line.code).any(|(word, _)| word == "unsafe"));
        if uses {
            used.push(file.path.clone());
        }
    }
    let strangers: Vec<_> = used.iter().filter(|path| !ALLOWED.iter().any(|(allowed, _)| allowed == path)).collect();
    assert!(strangers.is_empty(), "unsafe outside the named modules: {strangers:?}");
    let idle: Vec<_> = ALLOWED.iter().filter(|(allowed, _)| !used.iter().any(|path| path == allowed)).collect();
    assert!(idle.is_empty(), "these no longer use unsafe, take them off the list: {idle:?}");
}

#[test]
fn every_crate_forbids_unsafe() {
    let roots = files::all().into_iter().filter(|file| {
        let crates = ["crates/", "evaluation/", "xtask/"].iter().any(|folder| file.path.starts_with(folder));
        crates && (file.path.ends_with("/src/lib.rs") || file.path.ends_with("/src/main.rs"))
    });
    let mut count = 0;
    for file in roots {
        count += 1;
        let folder = file.path.split_once("src/").unwrap().0.to_owned();
        let wanted = if has_exception(&folder) { "#![deny(unsafe_code)]" } else { "#![forbid(unsafe_code)]" };
        assert!(file.text.lines().any(|line| line == wanted), "{} lacks {wanted}", file.path);
    }
    assert!(count > 10, "only {count} crates found");
}

#[test]
fn every_unsafe_block_says_why_it_is_sound() {
    let mut bare = Vec::new();
    let mut blocks = 0;
    for file in files::all().iter().filter(|file| file.is_rust() && !is_tried_on(file)) {
        let lines = lines(&file.text);
        for (number, line) in lines.iter().enumerate() {
            let opens = words(&line.code).any(|(word, behind)| {
                let behind = behind.trim_start();
                word == "unsafe" && (behind.starts_with('{') || behind.starts_with("impl"))
            });
            if opens {
                blocks += 1;
                if !is_explained(&lines, number) {
                    bare.push(format!("{}:{}", file.path, number + 1));
                }
            }
        }
    }
    assert!(bare.is_empty(), "unsafe without a `// SAFETY:` comment at its statement:\n{}", bare.join("\n"));
    assert!(blocks > 50, "only {blocks} unsafe blocks found: does this test still see them?");
}

#[test]
fn every_reason_belongs_to_unsafe_code() {
    let mut stale = Vec::new();
    for file in files::all().iter().filter(|file| file.is_rust() && file.path.starts_with("runtime/")) {
        let lines = lines(&file.text);
        for (number, _) in lines.iter().enumerate().filter(|(_, line)| line.comment.trim_start().starts_with("SAFETY:")) {
            if !explains(&lines, number) {
                stale.push(format!("{}:{}", file.path, number + 1));
            }
        }
    }
    assert!(stale.is_empty(), "`// SAFETY:` comments at statements that are safe:\n{}", stale.join("\n"));
}

/// Whether there is unsafe code on the comment's line, or in the statement below it up to its first block.
fn explains(lines: &[Line], number: usize) -> bool {
    let statement = lines[number..].iter().skip_while(|line| line.is_comment_only());
    let mut ended = false;
    statement
        .take_while(|line| !std::mem::replace(&mut ended, line.code.trim_end().ends_with([';', '{', '}', ','])))
        .any(|line| words(&line.code).any(|(word, _)| word == "unsafe"))
}

#[test]
fn no_file_is_excepted_from_that() {
    const LINT: &str = "clippy::undocumented_unsafe_blocks";
    let excepted = |file: &&files::TextFile| {
        let inside = file.is_rust() && file.path.starts_with("runtime/") && file.path != "runtime/src/lib.rs";
        inside && lines(&file.text).iter().any(|line| line.code.contains(LINT))
    };
    let all = files::all();
    let excepted: Vec<&str> = all.iter().filter(excepted).map(|file| file.path.as_str()).collect();
    assert!(excepted.is_empty(), "each block has its own reason, also in {}", excepted.join(", "));
}

/// Whether the line, or the comment above the statement that it belongs to, holds the reason.
fn is_explained(lines: &[Line], number: usize) -> bool {
    const MARK: &str = "SAFETY:";
    if lines[number].comment.contains(MARK) {
        return true;
    }
    let mut above = number;
    while above > 0 {
        above -= 1;
        let line = &lines[above];
        if line.is_comment_only() {
            let block = lines[..=above].iter().rev().take_while(|line| line.is_comment_only());
            return block.into_iter().any(|line| line.comment.contains(MARK));
        }
        // A statement before ours ends here.
        let code = line.code.trim_end();
        if line.comment.contains(MARK) {
            return true;
        }
        if code.trim().is_empty() || code.ends_with([';', '{', '}']) {
            return false;
        }
    }
    false
}

#[test]
fn reasons_are_found_where_they_belong() {
    let explained = |text: &str| {
        let lines = lines(text);
        let number = lines.iter().position(|line| line.code.contains("unsafe")).unwrap();
        is_explained(&lines, number)
    };
    assert!(explained("// SAFETY: a\nunsafe { b }"));
    assert!(explained("// SAFETY: a\n// more\nlet x =\n    unsafe { b };"));
    assert!(explained("x => unsafe { b } // SAFETY: a"));
    assert!(!explained("// SAFETY: a\nlet y = 1;\nunsafe { b }"));
    assert!(!explained("// because\nunsafe { b }"));
    assert!(!explained("let s = \"// SAFETY: a\"; unsafe { b }"));
}
