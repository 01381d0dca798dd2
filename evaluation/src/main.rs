//! `cargo xtask evaluate NAME`: one measurement of what the tool costs or finds, with the bars it has to meet.
//! `docs/evaluation.md` explains every column.
#![forbid(unsafe_code)]

mod bars;
mod common;
mod papers;

use anyhow::Result;
use clap::{CommandFactory as _, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask evaluate", about, disable_help_subcommand = true)]
struct Arguments {
    /// Without one they are listed.
    #[command(subcommand)]
    evaluation: Option<Evaluation>,
}

#[derive(Debug, Subcommand)]
enum Evaluation {
    /// Recording in free and serial mode against no instrumentation and clang's ThreadSanitizer.
    Spine(bars::spine::Options),
    /// Online detection against no instrumentation and clang's ThreadSanitizer.
    Runtime(bars::runtime::Options),
    /// What one operation costs: copies, locks, atomics, pipes, threads, against clang's ThreadSanitizer.
    Primitives(bars::primitives::Options),
    /// What the TREE filter skips, costs and saves; that it loses no race.
    Tree(papers::tree::Options),
    /// The races clang's ThreadSanitizer reports on the test programs, and silence where there are none.
    Detect(bars::detect::Options),
    /// Every analysis and decider against brute force, on millions of small traces.
    Oracle(bars::oracle::Options),
    /// The online detector on drawn programs of accesses to ranges, against a model that looks at each byte.
    Ranges(bars::ranges::Options),
    /// The figures of papers: races by brute force, and what every analysis and decider finds.
    Speedygo(papers::speedygo::Options),
    /// Races that a solver hid from one algorithm each.
    Raceinjector(papers::raceinjector::Options),
    /// How fast traces come from files of each format, and from the generator.
    Formats(bars::formats::Options),
    /// Every output format of a check, read by tools that nobody here wrote, from PyPI and npm.
    FormatsOut(bars::formats_out::Options),
    /// Every way to install the tool: a wheel, a Debian package, crates. Each installs, and shows the README's first proof.
    Packages(bars::packages::Options),
    /// Programs with known bugs, edited in many ways: each finding is known again, and none is taken for another.
    Fingerprints(bars::fingerprints::Options),
    /// Damaged trace files through every reader: no panic, bounded memory, every refusal with a place.
    Mutations(bars::mutations::Options),
    /// Serial recordings of every program, replayed and compared event by event.
    Replay(bars::replay::Options),
    /// Races of a small ARINC-653-like library, proven by provocation: what is found, and what it takes.
    Provoke(papers::provoke::Options),
    /// Programs with races from --corpora: what check proves of what one run of ThreadSanitizer reports.
    Public(bars::public::Options),
    /// A real program from Debian's source package, built and checked.
    Pbzip2(bars::pbzip2::Options),
    /// A real server from Debian's source package under load, detected and recorded.
    Memcached(bars::memcached::Options),
    /// Servers and databases, from Debian's source packages and ours: operations a second, tail latency, memory, beside
    /// ThreadSanitizer.
    Servers(bars::servers::Options),
    /// Programs from Debian's source packages: built as the README says, detected, recorded and checked.
    Real(bars::real::Options),
    /// Schedules that each strategy needs to make small programs fail, against stress.
    Explore(bars::explore::Options),
    /// Small programs, drawn: what exhaustive exploration reaches against brute force, and what a schedule costs.
    Complete(bars::complete::Options),
    /// Programs that crash always, or rarely: the story of the address, and replays.
    Crashes(bars::crashes::Options),
    /// Seeded errors that need several accesses in one order, in long executions: plain check beside sampling.
    Long(bars::long::Options),
    /// A program of ten million accesses and one of 64 threads: plain check keeps to its budget and to its memory, and tells.
    Scale(bars::scale::Options),
    /// Every program with a known bug, and those without, under plain check: what is proven, by what, in which time.
    Loop(bars::whole::Options),
    /// Random programs and budgets, the tool ended at random: it ends in time and loses nothing.
    Budgets(bars::budgets::Options),
    /// A check by way of a queue, workers and server killed at random: findings as without one, none lost, none twice.
    Distribute(bars::distribute::Options),
    /// A thousand workers on one queue, their executions being sleeps: what the queue costs.
    Workers(bars::workers::Options),
    /// Projects under CTest, GoogleTest and nextest, bugs put in, accepted and mended: red for what is new alone.
    Gates(bars::gates::Options),
    /// Damaged stores through every command: no crash, no hang, nothing outside touched, bounded memory.
    Stores(bars::stores::Options),
    /// Witnesses by model checking for the programs of Shacham et al. 2007: Tables 2 to 4.
    Witnesses(papers::witnesses::Options),
    /// Critical sections that belong together: plain check on such bugs and their mended twins, beside other detectors.
    Correlated(papers::correlated::Options),
    /// Libraries without instrumentation: true and false races of each technique, with and without what their calls may order.
    Causality(papers::causality::Options),
    /// The CSP engine on programs with known bugs, its model against brute force, and what large models cost.
    Csp(papers::csp::Options),
    /// LLVM's own tests of ThreadSanitizer, with clang's runtime and with ours.
    LlvmTsan(bars::llvm_tsan::Options),
    /// Throughput and memory of the linear analyses on generated traces.
    Engine(bars::engine::Options),
    /// Analyses that need all variables at once, with a quarter of the memory: the same, with tables on disk.
    Memory(bars::engine::memory::Options),
    /// The memory that prediction from recordings of up to a hundred million events takes.
    MemoryOfCheck(bars::memory_of_check::Options),
    /// Clocks as rows against clocks as trees, by threads and who communicates with whom.
    Clocks(bars::engine::clocks::Options),
    /// A thousand million events, analysed as they are generated, within 4 GB.
    EngineLarge(bars::engine::LargeOptions),
    /// Counts the records of one recording, for the others.
    #[command(name = common::trace_size::COMMAND, hide = true)]
    CountRecording { session: PathBuf },
}

/// `memory` puts tables on disk.
#[global_allocator]
static ALLOCATOR: rashomon_spill::Allocator = rashomon_spill::Allocator;

/// Whether every bar is met.
fn run(evaluation: &Evaluation) -> Result<bool> {
    match evaluation {
        Evaluation::Spine(options) => bars::spine::run(options),
        Evaluation::Runtime(options) => bars::runtime::run(options),
        Evaluation::Primitives(options) => bars::primitives::run(options),
        Evaluation::Tree(options) => papers::tree::run(options),
        Evaluation::Detect(options) => bars::detect::run(options),
        Evaluation::Oracle(options) => bars::oracle::run(options),
        Evaluation::Ranges(options) => bars::ranges::run(options),
        Evaluation::Speedygo(options) => papers::speedygo::run(options),
        Evaluation::Raceinjector(options) => papers::raceinjector::run(options),
        Evaluation::Formats(options) => bars::formats::run(options),
        Evaluation::FormatsOut(options) => bars::formats_out::run(options),
        Evaluation::Packages(options) => bars::packages::run(options),
        Evaluation::Fingerprints(options) => bars::fingerprints::run(options),
        Evaluation::Mutations(options) => bars::mutations::run(options),
        Evaluation::Replay(options) => bars::replay::run(options),
        Evaluation::Provoke(options) => papers::provoke::run(options),
        Evaluation::Public(options) => bars::public::run(options),
        Evaluation::Pbzip2(options) => bars::pbzip2::run(options),
        Evaluation::Memcached(options) => bars::memcached::run(options),
        Evaluation::MemoryOfCheck(options) => bars::memory_of_check::run(options),
        Evaluation::Servers(options) => bars::servers::run(options),
        Evaluation::Real(options) => bars::real::run(options),
        Evaluation::Explore(options) => bars::explore::run(options),
        Evaluation::Complete(options) => bars::complete::run(options),
        Evaluation::Crashes(options) => bars::crashes::run(options),
        Evaluation::Long(options) => bars::long::run(options),
        Evaluation::Scale(options) => bars::scale::run(options),
        Evaluation::Loop(options) => bars::whole::run(options),
        Evaluation::Budgets(options) => bars::budgets::run(options),
        Evaluation::Distribute(options) => bars::distribute::run(options),
        Evaluation::Workers(options) => bars::workers::run(options),
        Evaluation::Gates(options) => bars::gates::run(options),
        Evaluation::Stores(options) => bars::stores::run(options),
        Evaluation::Witnesses(options) => papers::witnesses::run(options),
        Evaluation::Correlated(options) => papers::correlated::run(options),
        Evaluation::Causality(options) => papers::causality::run(options),
        Evaluation::Csp(options) => papers::csp::run(options),
        Evaluation::LlvmTsan(options) => bars::llvm_tsan::run(options),
        Evaluation::Engine(options) => bars::engine::run(options),
        Evaluation::Memory(options) => bars::engine::memory::run(options),
        Evaluation::Clocks(options) => bars::engine::clocks::run(options),
        Evaluation::EngineLarge(options) => bars::engine::run_large(options),
        Evaluation::CountRecording { session } => {
            println!("{}", serde_json::to_string(&common::trace_size::count(session)?)?);
            Ok(true)
        }
    }
}

fn list() {
    println!("evaluations:");
    let command = Arguments::command();
    for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        println!("  {:<12} {}", one.get_name(), one.get_about().map(ToString::to_string).unwrap_or_default());
    }
}

fn main() -> ExitCode {
    let Some(evaluation) = Arguments::parse().evaluation else {
        list();
        return ExitCode::SUCCESS;
    };
    match run(&evaluation) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_an_evaluation_ignores_is_refused() {
        Arguments::command().debug_assert();
        let parse = |line: &str| Arguments::try_parse_from(line.split(' '));
        assert!(parse("evaluate").is_ok_and(|arguments| arguments.evaluation.is_none()));
        assert!(parse("evaluate spine --runs 3 --quick --json").is_ok());
        assert!(parse("evaluate spine --corpora x").is_err());
        assert!(parse("evaluate engine-large --runs 3").is_err());
        assert!(parse("evaluate none-is-called-so").is_err());
    }
}
