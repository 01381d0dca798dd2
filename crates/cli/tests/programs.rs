//! Every program of `tests/programs` under the tool: what must be proven is, nothing else is, and nothing hangs.
//!
//! Up to five tests a program: `check` (findings as the manifest says), `same` (the same seed gives the same event stream twice,
//! with randomised addresses), `replay` (the recorded schedule, enforced, gives the identical recording), `free` (recording in
//! parallel disturbs nothing) and `loaded` (nor does the runtime when it is loaded in place of gcc's own, by a program that was
//! built without knowing it).

mod support;

use libtest_mimic::{Arguments, Trial};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use support::manifest::{Program, programs};
use support::{Failure, canonical, compile, describe, fail, findings, over, rashomon, scratch, untold};

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = vec![Trial::test("manifest::agrees_with_the_sources", manifest_agrees)];
    for program in programs() {
        let name = program.path.clone();
        let one = program.clone();
        trials.push(Trial::test(format!("check::{name}"), move || check(&one)));
        if !program.hangs && !program.may_hang && program.exit.is_some() {
            let one = program.clone();
            trials.push(Trial::test(format!("free::{name}"), move || free(&one)));
        }
        if program.group == "hazards" && !program.hangs && program.exit.is_some() {
            let one = program.clone();
            trials.push(Trial::test(format!("loaded::{name}"), move || loaded(&one)));
        }
        if program.deterministic && !program.hangs {
            let one = program.clone();
            trials.push(Trial::test(format!("same::{name}"), move || same(&one)));
        }
        if (program.deterministic || program.replays) && !program.hangs {
            trials.push(Trial::test(format!("replay::{name}"), move || replay(&program)));
        }
    }
    support::conclude(&arguments, trials)
}

/// Each source says in its header what the manifest says of it.
fn manifest_agrees() -> Result<(), Failure> {
    for program in programs() {
        if !program.path.starts_with(&format!("{}/", program.group)) {
            return Err(fail(format!("{} is not in the folder of its group", program.path)));
        }
        for (word, listed) in [("expect", &program.expect), ("allow", &program.allow), ("tells", &program.tells)] {
            if &program.header(word) != listed {
                return Err(fail(format!("{}: `// {word}:` lines and manifest differ", program.path)));
            }
        }
    }
    Ok(())
}

fn run(mut command: Command) -> Result<std::process::Output, Failure> {
    command.output().map_err(|error| fail(error.to_string()))
}

fn check(program: &Program) -> Result<(), Failure> {
    let binary = compile(program)?;
    let store = scratch().join(format!("{}-check", program.slug()));
    let report_file = scratch().join(format!("{}-report.json", program.slug()));
    let report_path = report_file.to_str().ok_or_else(|| fail("the scratch folder has an odd name"))?;
    let arguments = [&["check", "--budget", budget(program), "--json", report_path], recordings(program)].concat();
    let output = run(over(program, &arguments, &store, &binary))?;
    let report: Value = std::fs::read(&report_file)
        .map_err(|error| error.to_string())
        .and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()))
        .map_err(|error| fail(format!("no report ({error}): {}", describe(&output))))?;
    let (proven, others) = findings(&report, &program.source());
    let expected: BTreeSet<String> = program.expect.iter().map(|expectation| canonical(expectation)).collect();
    let allowed: BTreeSet<String> = program.allow.iter().map(|expectation| canonical(expectation)).collect();
    let missing: Vec<_> = expected.difference(&proven).collect();
    let surplus: Vec<_> = proven.iter().filter(|finding| !expected.contains(*finding) && !allowed.contains(*finding)).collect();
    let shown: Vec<_> = if expected.is_empty() { others.iter().collect() } else { Vec::new() };
    let untold = untold(&report, &program.tells);
    if !missing.is_empty() || !surplus.is_empty() || !shown.is_empty() || !untold.is_empty() {
        return Err(fail(format!(
            "missing {missing:?}, not expected {surplus:?}, shown unproven {shown:?}, not told {untold:?}\n{}",
            describe(&output)
        )));
    }
    if !expected.is_empty() && output.status.code() != Some(66) {
        return Err(fail(format!("proven findings make the exit code 66: {}", describe(&output))));
    }
    if let (true, Some(code)) = (expected.is_empty() && allowed.is_empty() && !program.may_hang, program.exit_code())
        && output.status.code() != Some(code)
    {
        return Err(fail(format!("the program's exit code {code} is ours: {}", describe(&output))));
    }
    if let Some(bytes) = program.stdout_bytes
        && output.stdout.len() as u64 != bytes
    {
        return Err(fail(format!("{} bytes of output instead of {bytes}", output.stdout.len())));
    }
    Ok(())
}

/// Seconds. Where nothing is to be found, schedules are tried until a share of them is over (`cargo xtask evaluate loop` looks
/// for longer).
fn budget(program: &Program) -> &'static str {
    if program.expect.is_empty() { "12" } else { "30" }
}

/// Programs whose bug only some recordings show get several, or as many as a check makes by itself; the others make do with one.
fn recordings(program: &Program) -> &'static [&'static str] {
    const WRONG_USES: [&str; 4] = ["use-after-free", "use-of-destroyed", "destroy-awaited", "lifetime-race"];
    let expects = |wanted: &[&str]| program.expect.iter().any(|expectation| wanted.contains(&expectation.as_str()));
    if expects(&WRONG_USES) {
        &[]
    } else if expects(&["stuck"]) {
        &["--recordings", "5"]
    } else {
        &["--recordings", "1"]
    }
}

fn record(program: &Program, binary: &Path, name: &str, further: &[&str]) -> Result<std::path::PathBuf, Failure> {
    let store = scratch().join(format!("{}-{name}", program.slug()));
    let mut subcommand = vec!["record"];
    subcommand.extend(further);
    let output = run(over(program, &subcommand, &store, binary))?;
    if output.status.code() == Some(125) {
        return Err(fail(format!("recording failed: {}", describe(&output))));
    }
    Ok(store)
}

fn differ(one: &Path, other: &Path) -> Result<(), Failure> {
    let output = run({
        let mut command = rashomon();
        command.args(["trace", "diff"]).arg(one).arg(other);
        command
    })?;
    if output.status.success() { Ok(()) } else { Err(fail(describe(&output))) }
}

/// Records and expects the program's own exit code and a sound recording.
fn undisturbed(program: &Program, binary: &Path, name: &str, policy: &str) -> Result<(), Failure> {
    let store = scratch().join(format!("{}-{name}", program.slug()));
    let output = run(over(program, &["record", "--policy", policy], &store, binary))?;
    if output.status.code() != program.exit {
        return Err(fail(format!("not the exit code {:?}: {}", program.exit, describe(&output))));
    }
    let output = run({
        let mut command = rashomon();
        command.args(["trace", "verify"]).arg(&store);
        command
    })?;
    if output.status.success() { Ok(()) } else { Err(fail(describe(&output))) }
}

fn free(program: &Program) -> Result<(), Failure> {
    undisturbed(program, &compile(program)?, "free", "free")
}

/// Only this way a program holds unversioned references, which the loader would bind to the oldest functions of libc.
fn loaded(program: &Program) -> Result<(), Failure> {
    let binary = scratch().join(format!("{}-loaded", program.slug()));
    let (compiler, standard) = if program.language == "c" { ("gcc", "-std=gnu11") } else { ("g++", "-std=c++17") };
    let output = run({
        let mut command = Command::new(compiler);
        command.args(["-g", "-O1", "-w", standard, "-pthread", "-fsanitize=thread", "-o"]).arg(&binary);
        command.arg(program.source()).args(&program.link);
        command
    })?;
    if !output.status.success() {
        return Err(fail(format!("does not compile: {}", describe(&output))));
    }
    undisturbed(program, &binary, "loaded-random", "random")?;
    undisturbed(program, &binary, "loaded-free", "free")
}

fn same(program: &Program) -> Result<(), Failure> {
    let binary = compile(program)?;
    let seeded = ["--policy", "random", "--seed", "7", "--aslr", "on"];
    let one = record(program, &binary, "same-1", &seeded)?;
    let other = record(program, &binary, "same-2", &seeded)?;
    differ(&one, &other)
}

fn replay(program: &Program) -> Result<(), Failure> {
    let binary = compile(program)?;
    for (seed, policy) in [("1", "random"), ("2", "pct"), ("3", "round-robin")] {
        let store = record(program, &binary, &format!("replay-{seed}"), &["--policy", policy, "--seed", seed])?;
        let again = scratch().join(format!("{}-replayed-{seed}", program.slug()));
        let output = run({
            let mut command = rashomon();
            command.args(["replay", "--recording"]).arg(&store).arg("--output").arg(&again);
            command
        })?;
        if !output.status.success() {
            return Err(fail(format!("{policy}, seed {seed}: {}", describe(&output))));
        }
        differ(&store, &again)?;
    }
    Ok(())
}
