//! Where a command line goes over into that of the program: behind `--`, or, without it, at the first word that is no option of
//! ours. All that comes behind the program's name is the program's.
//!
//! Behind a FILE that `check` and others take, options of ours may still follow: there the program's arguments begin without `--`
//! only if the first of them is no option. A single word behind `provoke` is a store.

use crate::arguments::Arguments;
use clap::{Arg, Command, CommandFactory as _};
use std::ffi::{OsStr, OsString};

/// The positional argument that takes the program's command line, by its name in [`crate::arguments::Command`].
const PROGRAM: &str = "command";
const SEPARATOR: &str = "--";

/// The words with `--` before those of the program.
pub fn separated(mut words: Vec<OsString>) -> Vec<OsString> {
    let mut known = Arguments::command();
    known.build();
    if let Some(at) = begin(&known, &words) {
        words.insert(at, SEPARATOR.into());
    }
    words
}

/// Where `--` is missing. `None`: it is there, none belongs there, or the line is not understood, which clap says better.
fn begin(known: &Command, words: &[OsString]) -> Option<usize> {
    let name = next_word(known, words, 1)?;
    let command = known.find_subcommand(&words[name])?;
    let program = command.get_positionals().find(|argument| argument.get_id() == PROGRAM && argument.is_last_set())?;
    let first = next_word(command, words, name + 1)?;
    let Some(other) = command.get_positionals().find(|argument| argument.get_id() != PROGRAM) else { return Some(first) };
    let second = words.get(first + 1).filter(|word| !begins_with_hyphen(word))?;
    debug_assert!(second != SEPARATOR);
    let excludes = command.get_arg_conflicts_with(other).iter().any(|argument| argument.get_id() == program.get_id());
    Some(if excludes { first } else { first + 1 })
}

fn begins_with_hyphen(word: &OsStr) -> bool {
    word.as_encoded_bytes().first() == Some(&b'-')
}

/// The first word from a place on that is neither an option of the command nor the value of one.
fn next_word(command: &Command, words: &[OsString], mut at: usize) -> Option<usize> {
    loop {
        let word = words.get(at)?;
        // `-` alone stands for standard input.
        if !begins_with_hyphen(word) || word.len() == 1 {
            return Some(at);
        }
        at += 1 + values_of(command, word.to_str()?)?;
    }
}

/// How many of the words behind an option are its values. `None`: there is no such option.
fn values_of(command: &Command, option: &str) -> Option<usize> {
    if option == SEPARATOR {
        return None;
    }
    if let Some(long) = option.strip_prefix(SEPARATOR) {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        let is_it = |argument: &&Arg| {
            argument.get_long() == Some(name) || argument.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
        };
        let argument = command.get_arguments().find(is_it)?;
        return Some(if value.is_some() { 0 } else { least_values(argument) });
    }
    let shorts = option.strip_prefix('-')?;
    for (place, short) in shorts.char_indices() {
        let argument = command.get_arguments().find(|argument| argument.get_short() == Some(short))?;
        let values = least_values(argument);
        if values > 0 {
            // What follows in the same word is the value.
            let is_last = place + short.len_utf8() == shorts.len();
            return Some(if is_last { values } else { 0 });
        }
    }
    Some(0)
}

fn least_values(argument: &Arg) -> usize {
    if argument.get_action().takes_values() { argument.get_num_args().map_or(1, |range| range.min_values()) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn separated_line(line: &str) -> String {
        let words = separated(line.split(' ').map(OsString::from).collect());
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_first_word_that_is_no_option_is_the_program() {
        for (line, expected) in [
            ("rashomon record ./p a -b", "rashomon record -- ./p a -b"),
            ("rashomon record --seed 3 ./p --seed 4", "rashomon record --seed 3 -- ./p --seed 4"),
            ("rashomon record --seed=3 ./p", "rashomon record --seed=3 -- ./p"),
            ("rashomon record -q ./p -- x", "rashomon record -q -- ./p -- x"),
            ("rashomon --color never -q detect ./p", "rashomon --color never -q detect -- ./p"),
            ("rashomon check ./p a --seed 3", "rashomon check ./p -- a --seed 3"),
            ("rashomon explore --seed 3 ./p a", "rashomon explore --seed 3 ./p -- a"),
            ("rashomon provoke ./p a", "rashomon provoke -- ./p a"),
        ] {
            assert_eq!(separated_line(line), expected);
        }
    }

    #[test]
    fn what_is_separated_or_has_no_program_stays() {
        for line in [
            "rashomon",
            "rashomon record -- ./p a",
            "rashomon record",
            "rashomon record --no-such-option ./p",
            "rashomon check a.c",
            "rashomon check a.c -- -x 1",
            "rashomon check a.c --seed 3",
            "rashomon check --seed 3 -- ./p -- y",
            "rashomon provoke store",
            "rashomon replay race-1 store",
            "rashomon predict store",
            "rashomon no-such-command ./p",
        ] {
            assert_eq!(separated_line(line), line);
        }
    }
}
