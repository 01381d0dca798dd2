//! The examples at the end of each command's help. A test reads every line that begins with `rashomon` as a command line.

pub const TOP: &str = "\
Examples:
  rashomon check examples/listing1.c             compile, record, predict, prove, report
  rashomon check -- ./program argument           the same for a program that is built already
  rashomon replay race-1ce68bfe --gdb            stop where a finding happens
  rashomon COMMAND --help                        options, defaults and examples of a command";

pub const CHECK: &str = "\
Examples:
  rashomon check race.c
  rashomon check --budget 20 -- ./program --threads 4 input
  rashomon check --recordings 10 --json report.json --fail-on predicted -- ./tests
  rashomon check --from .rashomon/1-program --recordings 1
  rashomon check --queue nats://queue.example:4222 --units 200 --ship input -- ./program input
  rashomon check --before-each 'rm -f out.bz2' -- ./pbzip2 -k in
  rashomon check --with-client './load 6379' -- ./server --port 6379";

pub const RECORD: &str = "\
Example: record now, analyse later
  rashomon record --output store -- ./program
  rashomon predict store
  rashomon confirm store";

pub const PROVOKE: &str = "\
Examples:
  rashomon provoke -- ./program
  rashomon provoke --budget 300 --whole-budget -- ./program
  rashomon provoke .rashomon/1-program";

pub const DETECT: &str = "\
Examples:
  rashomon detect -- ./program
  rashomon detect --format tsan --suppressions known.supp -- ./program
  rashomon detect --option report_signal_unsafe=0 -- ./program";

pub const EXPLORE: &str = "\
Examples:
  rashomon explore -- ./program
  rashomon explore --strategy preemptions --preemptions 2 --schedules 100000 -- ./program
  rashomon explore --all --budget 60 queue.c";

pub const WITNESS: &str = "\
Examples:
  rashomon witness -- ./program
  rashomon witness --eraser --preemptions 3 -- ./program";

pub const PREDICT: &str = "\
Examples:
  rashomon predict
  rashomon predict --predict-within 0 .rashomon/1-program
  rashomon predict trace.std.gz";

pub const ANALYSE: &str = "\
Examples:
  rashomon analyse trace.std.gz
  rashomon analyse --analysis wcp,serialisability --memory 4G trace.packed
  rashomon analyse --json --fail-on real .rashomon/1-program";

pub const CONFIRM: &str = "\
Examples:
  rashomon confirm
  rashomon confirm --budget 300 --proofs 5 .rashomon/1-program";

pub const REPLAY: &str = "\
Examples:
  rashomon replay race-1ce68bfe
  rashomon replay race-1c --times 20
  rashomon replay race-1ce68bfe --gdb -- -batch -ex 'thread apply all bt'
  rashomon replay race-1ce68bfe --lldb --back-to 3
  rashomon replay race-1ce68bfe --vscode > .vscode/launch.json
  rashomon replay --recording .rashomon/1-program --output again";

pub const MINIMISE: &str = "\
Example:
  rashomon minimise deadlock-77ab --budget 60";

pub const REPORT: &str = "\
Examples:
  rashomon report
  rashomon report --store .rashomon/1-program --show suspicions
  rashomon report --format json";

pub const ACCEPT: &str = "\
Examples:
  rashomon accept race-2be3b5eb
  rashomon accept --all --store .rashomon/1-program --baseline known.txt";

pub const MERGE: &str = "\
Examples:
  rashomon merge part-1 part-2 part-3
  rashomon merge --report junit=races.xml .rashomon/1-first .rashomon/2-second";

pub const WORKER: &str = "\
Examples:
  rashomon worker --trust --queue nats://queue.example:4222 --jobs 4
  rashomon worker --trust --queue tls://queue.example --queue-credentials secret --queue-ca ca.pem --once";

pub const TRACE: &str = "\
Examples:
  rashomon trace stat .rashomon/1-program
  rashomon trace import trace.std.gz --output trace.packed
  rashomon trace export .rashomon --to std --lossy --output -
  rashomon trace gen --preset nest --events 100000 --seed 7 --output made-up";

pub const TRACE_STAT: &str = "\
Example:
  rashomon trace stat trace.std.gz";

pub const TRACE_DUMP: &str = "\
Example:
  rashomon trace dump .rashomon/1-program";

pub const TRACE_VERIFY: &str = "\
Example: exit code 1 if it is damaged
  rashomon trace verify .rashomon/1-program";

pub const TRACE_DIFF: &str = "\
Example: exit code 1 if they differ
  rashomon trace diff recorded replayed";

pub const TRACE_IMPORT: &str = "\
Examples:
  rashomon trace import trace.std.gz --output trace.packed
  rashomon trace import --format speedygo --lenient - --output trace.packed";

pub const TRACE_EXPORT: &str = "\
Examples:
  rashomon trace export .rashomon --to std --lossy --output trace.std
  rashomon trace export .rashomon --to perfetto --output trace.pftrace
  rashomon trace export .rashomon --to parquet --output events.parquet";

pub const TRACE_GEN: &str = "\
Example:
  rashomon trace gen --preset wide --events 1000000 --race-rate 0.001 --output made-up";

pub const DOCTOR: &str = "\
Example:
  rashomon doctor ./program";

pub const RUNTIME_PATH: &str = "\
Example:
  rashomon runtime-path";

pub const ENV: &str = "\
Example: in a shell
  eval \"$(rashomon env)\"";

pub const COMPLETIONS: &str = "\
Example:
  rashomon completions bash > ~/.local/share/bash-completion/completions/rashomon";

pub const CSP: &str = "\
Example:
  rashomon csp check philosophers.csp";

pub const CSP_EXPORT: &str = "\
Examples:
  rashomon csp export --output model.csp
  rashomon csp export .rashomon/1-listing1 | tee model.csp && rashomon csp check model.csp";

pub const CSP_ENFORCE: &str = "\
Examples:
  rashomon csp enforce
  rashomon csp enforce --counterexamples 1 --json orders.json .rashomon/1-listing1";

pub const CSP_CHECK: &str = "\
Examples:
  rashomon csp check philosophers.csp
  rashomon csp check --within 10 --counterexamples 5 model.csp";

pub const CONFIG: &str = "\
Examples:
  rashomon config check -- ./program
  rashomon config record --seed 7 -- ./program";

pub const SCHEMA: &str = "\
Examples:
  rashomon schema > report.schema.json
  rashomon schema warning";

pub const MAN: &str = "\
Examples:
  rashomon man | man -l -
  rashomon man check | man -l -
  rashomon man --output ~/.local/share/man/man1";

#[cfg(test)]
mod tests {
    use crate::arguments::Arguments;
    use clap::{Command, CommandFactory as _, Parser as _};
    use std::path::{Path, PathBuf};

    /// Whose options are all somebody else's.
    const PASSED_ON: [&str; 3] = ["cc", "c++", "cargo"];

    /// The words of a simple shell command, up to a comment, a pipe or a redirection. `None`: quotes that do not end.
    fn words(line: &str) -> Option<Vec<String>> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for c in line.chars() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (Some(_), c) => word.get_or_insert_default().push(c),
                (None, '\'' | '"') => {
                    word.get_or_insert_default();
                    quote = Some(c);
                }
                (None, '#') if word.is_none() => break,
                (None, '|' | '>' | '&' | ';') => break,
                (None, ' ') => words.extend(word.take()),
                (None, c) => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        quote.is_none().then_some(words)
    }

    /// Why the line is no command line of ours.
    fn fault(line: &str) -> Option<String> {
        let Some(words) = words(line) else { return Some(format!("{line}: a quote does not end")) };
        let passed_on = words.get(1).is_some_and(|command| PASSED_ON.contains(&command.as_str()));
        match Arguments::try_parse_from(&words) {
            Err(error) if !passed_on && error.exit_code() != 0 => Some(format!("{line}: {error}")),
            _ => None,
        }
    }

    fn check(name: &str, command: &Command, faults: &mut Vec<String>) {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let mut lines = text.lines().map(str::trim).filter(|line| line.starts_with("rashomon ")).peekable();
        if lines.peek().is_none() && !text.contains("$(rashomon") {
            faults.push(format!("{name} shows no example"));
        }
        // Of the table of all, some words stand for others.
        faults.extend(lines.filter(|line| !line.contains("COMMAND")).filter_map(|line| fault(line.split("   ").next()?)));
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            if !PASSED_ON.contains(&inner.get_name()) {
                check(&format!("{name} {}", inner.get_name()), inner, faults);
            }
        }
    }

    #[test]
    fn every_command_shows_an_example_that_it_understands() {
        let mut faults = Vec::new();
        check("rashomon", &Arguments::command(), &mut faults);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn every_option_says_what_it_does() {
        fn silent(name: &str, command: &Command, found: &mut Vec<String>) {
            let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set() && argument.get_help().is_none());
            found.extend(arguments.map(|argument| format!("{name}: {}", argument.get_id())));
            for inner in command.get_subcommands() {
                silent(&format!("{name} {}", inner.get_name()), inner, found);
            }
        }
        let mut found = Vec::new();
        silent("rashomon", &Arguments::command(), &mut found);
        assert!(found.is_empty(), "no help:\n{}", found.join("\n"));
    }

    fn markdown(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                markdown(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }

    #[test]
    fn the_documents_show_commands_that_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut files = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
        markdown(&root.join("docs"), &mut files);
        let (mut faults, mut seen) = (Vec::new(), 0);
        for file in &files {
            let text = std::fs::read_to_string(file).unwrap();
            let mut shell = false;
            for line in text.lines() {
                if line.trim_start().starts_with("```") {
                    shell = line.trim() == "```sh";
                } else if shell && line.starts_with("rashomon ") && !line.ends_with('\\') && !line.contains('…') {
                    seen += 1;
                    faults.extend(fault(line).map(|fault| format!("{}: {fault}", file.display())));
                }
            }
        }
        assert!(seen > 20, "only {seen} commands found in {} files", files.len());
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
