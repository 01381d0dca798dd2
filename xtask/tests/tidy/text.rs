//! What must not be in the text: prints in libraries, files too long to read, promises, places of one machine.

use crate::files::{self, TextFile};
use crate::source::{lines, words};

const MAX_LINES: usize = 500;

/// Files that are longer, and how long they are. A number may only fall; a file that fits is taken off.
const LONGER: [(&str, usize); 0] = [];

#[test]
fn files_are_short_enough_to_read() {
    for file in files::all().iter().filter(|file| file.is_source()) {
        let count = file.text.lines().count();
        match LONGER.iter().find(|(path, _)| *path == file.path) {
            None => assert!(count <= MAX_LINES, "{} has {count} lines: split it by concept (at most {MAX_LINES})", file.path),
            Some((_, limit)) => {
                assert!(count <= *limit, "{} grew to {count} lines: it must shrink from {limit}", file.path);
                assert!(count > MAX_LINES, "{} has {count} lines now: take it off the list", file.path);
            }
        }
    }
}

/// What ARCHITECTURE.md puts between backquotes: a path is one from the root, a name of a file is in the tree, `Type::item` is in
/// the code.
#[test]
fn what_the_architecture_names_is_there() {
    let all = files::all();
    let architecture = all.iter().find(|file| file.path == "ARCHITECTURE.md").expect("it is part of the project");
    let mut missing = Vec::new();
    for (number, line) in architecture.text.lines().enumerate() {
        for name in line.split('`').skip(1).step_by(2) {
            let is_path = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_./-".contains(c));
            let there = if is_path && name.contains('/') {
                files::root().join(name).exists()
            } else if is_path && name.ends_with(".rs") {
                all.iter().any(|file| file.path.ends_with(&format!("/{name}")))
            } else if let Some((_, item)) = name.split_once("::") {
                all.iter().any(|file| file.is_rust() && file.text.contains(item))
            } else {
                true
            };
            if !there {
                missing.push(format!("ARCHITECTURE.md:{}: `{name}`", number + 1));
            }
        }
    }
    assert!(missing.is_empty(), "what is named is not there:\n{}", missing.join("\n"));
}

#[test]
fn libraries_do_not_print() {
    const PRINTS: [&str; 5] = ["print", "println", "eprint", "eprintln", "dbg"];
    let mut found = Vec::new();
    for file in files::all().iter().filter(|file| file.is_library()) {
        for (number, line) in lines(&file.text).iter().enumerate() {
            if words(&line.code).any(|(word, behind)| PRINTS.contains(&word) && behind.starts_with('!')) {
                found.push(format!("{}:{}", file.path, number + 1));
            }
        }
    }
    assert!(found.is_empty(), "libraries return what there is to say:\n{}", found.join("\n"));
}

/// The files of the tool that write to the terminal, and why they may. `terminal.rs` makes what comes from outside harmless and
/// minds no reader that went away.
const WRITERS: [(&str, &str); 3] = [
    ("crates/cli/src/terminal.rs", "everything else goes through it"),
    ("crates/cli/src/bin/beside/mod.rs", "programs of their own, with one sentence"),
    ("crates/cli/src/commands/detect.rs", "the reporter's answers to the runtime"),
];

#[test]
fn what_is_printed_is_made_harmless() {
    const PRINTS: [&str; 4] = ["print", "println", "eprint", "eprintln"];
    let mut found = Vec::new();
    for file in files::all().iter().filter(|file| file.path.starts_with("crates/cli/src/")) {
        if WRITERS.iter().any(|(path, _)| *path == file.path) {
            continue;
        }
        for (number, line) in lines(&file.text).iter().enumerate() {
            let macros = words(&line.code).any(|(word, behind)| PRINTS.contains(&word) && behind.starts_with('!'));
            if macros || line.code.contains("stdout()") || line.code.contains("stderr()") {
                found.push(format!("{}:{}", file.path, number + 1));
            }
        }
    }
    assert!(found.is_empty(), "write with crate::terminal:\n{}", found.join("\n"));
}

#[test]
fn nothing_is_left_for_later() {
    // Put together here so that this file does not find itself.
    let marks = [["FIX", "ME"], ["XX", "X"], ["TO", "DO"], ["HA", "CK"]].map(|halves| halves.concat());
    let macros = [["to", "do"], ["unimple", "mented"]].map(|halves| halves.concat());
    let mut found = Vec::new();
    for file in files::all().iter().filter(|file| file.is_source() || file.path.ends_with(".md") || file.path.ends_with(".toml"))
    {
        for (number, line) in file.text.lines().enumerate() {
            let promise = words(line).any(|(word, behind)| {
                marks.iter().any(|mark| mark == word) || macros.iter().any(|name| name == word) && behind.starts_with('!')
            });
            if promise {
                found.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "finish it or leave it out:\n{}", found.join("\n"));
}

#[test]
fn no_path_of_one_machine() {
    let homes = [["/wo", "rk/"], ["/ro", "ot/"], ["/ho", "me/"], ["/Us", "ers/"]].map(|halves| halves.concat());
    let mut found = Vec::new();
    each_line(|file, number, line| {
        // A user that every example knows.
        let line = line.replace(concat!("/ho", "me/user/"), "");
        if homes.iter().any(|home| line.contains(home.as_str())) {
            found.push(format!("{}:{number}: {}", file.path, line.trim()));
        }
    });
    assert!(found.is_empty(), "paths of one machine:\n{}", found.join("\n"));
}

/// Hosts that text may name. A registry or mirror that one machine uses is none of them.
const HOSTS: [&str; 17] = [
    "github.com",
    "doc.rust-lang.org",
    "docs.rs",
    "crates.io",
    "www.rust-lang.org",
    "rustup.rs",
    "sh.rustup.rs",
    "doi.org",
    "arxiv.org",
    "www.apache.org",
    "clang.llvm.org",
    "sourceware.org",
    "json.schemastore.org",
    "docs.oasis-open.org",
    "json-schema.org",
    "ui.perfetto.dev",
    "www.debian.org",
];

#[test]
fn no_host_but_public_ones() {
    let schemes = ["http", "https", "sparse+http", "sparse+https"].map(|scheme| format!("{scheme}:{}", "//"));
    let mut found = Vec::new();
    each_line(|file, number, line| {
        for scheme in &schemes {
            for (start, _) in line.match_indices(scheme.as_str()) {
                let host: String =
                    line[start + scheme.len()..].chars().take_while(|c| c.is_alphanumeric() || ".-:@".contains(*c)).collect();
                let host = host.trim_end_matches(['.', ':']);
                if !host.is_empty() && !HOSTS.contains(&host) {
                    found.push(format!("{}:{number}: {host}", file.path));
                }
            }
        }
    });
    assert!(found.is_empty(), "hosts that are not on the list:\n{}", found.join("\n"));
}

fn each_line(mut visit: impl FnMut(&TextFile, usize, &str)) {
    for file in &files::all() {
        for (number, line) in file.text.lines().enumerate() {
            visit(file, number + 1, line);
        }
    }
}

#[test]
fn every_crate_takes_the_common_lints() {
    for file in files::all() {
        let member = ["crates/", "evaluation/", "xtask/"].iter().any(|folder| file.path.starts_with(folder));
        if member && file.path.ends_with("/Cargo.toml") {
            assert!(file.text.contains("[lints]\nworkspace = true"), "{} lacks `[lints] workspace = true`", file.path);
        }
    }
}
