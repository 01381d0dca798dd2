//! Each command of the tool is in the file that bears its name.

use crate::files;
use std::collections::BTreeSet;

const ARGUMENTS: &str = "crates/cli/src/arguments.rs";
const COMMANDS: &str = "crates/cli/src/commands/";

/// Commands that another file is about, and that file.
const ELSEWHERE: [(&str, &str); 4] = [
    ("cc", "crates/cli/src/wrapper.rs"),
    ("cxx", "crates/cli/src/wrapper.rs"),
    ("cargo", "crates/cli/src/cargo.rs"),
    // What `rashomon detect` starts beside the program.
    ("reporter", "crates/cli/src/commands/detect.rs"),
];

/// What several commands share.
const SHARED: [&str; 2] = ["prepare", "trust"];

/// `RuntimePath` as a file is named.
fn file_name(variant: &str) -> String {
    let mut name = String::new();
    for letter in variant.chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

#[test]
fn each_command_is_in_the_file_that_bears_its_name() {
    let all = files::all();
    let arguments = all.iter().find(|file| file.path == ARGUMENTS).expect("the definition of the command line");
    let parsed = syn::parse_file(&arguments.text).expect("it compiles");
    let commands: BTreeSet<String> = parsed
        .items
        .iter()
        .filter_map(|item| if let syn::Item::Enum(one) = item { Some(one) } else { None })
        .filter(|one| one.ident == "Command")
        .flat_map(|one| one.variants.iter().map(|variant| file_name(&variant.ident.to_string())))
        .collect();
    assert!(commands.contains("check"), "{ARGUMENTS} defines no commands any more");
    for (command, path) in ELSEWHERE {
        assert!(commands.contains(command), "there is no command {command} any more");
        assert!(all.iter().any(|file| file.path == path), "{path}, where {command} is, is not there");
    }
    let expected: BTreeSet<&str> =
        commands.iter().map(String::as_str).filter(|command| ELSEWHERE.iter().all(|(other, _)| other != command)).collect();
    let there: BTreeSet<&str> = all
        .iter()
        .filter_map(|file| file.path.strip_prefix(COMMANDS)?.strip_suffix(".rs"))
        .filter(|name| !name.contains('/') && !SHARED.contains(name))
        .collect();
    assert_eq!(there, expected, "files of {COMMANDS} beside the commands that there are");
}
