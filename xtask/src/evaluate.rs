//! `cargo xtask evaluate NAME`: one measurement of what the tool costs or finds, with the bars it has to meet.
//! `docs/evaluation.md` explains every column.

mod bar;
mod budgets;
mod compile;
mod debian;
mod detect;
mod detector;
mod engine;
mod explore;
mod formats;
mod hypothesis;
mod imported;
mod llvm_tsan;
mod measure;
mod memcached;
mod mutations;
mod oracle;
mod pbzip2;
mod plot;
mod programs;
mod provoke;
mod public;
mod raceinjector;
mod races;
mod real;
mod replay;
mod runtime;
mod speedygo;
mod spine;
mod stores;
mod suite;
mod table;
pub mod trace_size;
mod tree;
mod witnesses;

use anyhow::{Result, bail};
use clap::Args;

#[derive(Debug, Args)]
pub struct Options {
    /// Which; without it the names are listed.
    name: Option<String>,
    /// Machine-readable output.
    #[arg(long)]
    json: bool,
    /// Runs of each configuration, of which the medians are taken (5); of `budgets`, runs altogether (100).
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: Option<u32>,
    /// Of `stores`: so many damaged stores (1 000).
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    damages: Option<u32>,
    /// What is drawn at random follows from it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One run on small inputs: shows that everything works, measures nothing.
    #[arg(long)]
    quick: bool,
    /// Only programs (or inputs, or tests) whose name contains this.
    #[arg(long, visible_aliases = ["filter", "program"])]
    only: Option<String>,
    /// Folder of traces with known answers; without it `tests/corpora`.
    #[arg(long)]
    corpora: Option<std::path::PathBuf>,
    /// Seconds of load on a server.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Seeds that every program is recorded under.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,
    /// Free executions of each program with a rare race.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    free_runs: u32,
    /// Tests that run at the same time; without it as many as there are processors.
    #[arg(long)]
    jobs: Option<std::num::NonZeroUsize>,
}

impl Options {
    /// Of each configuration.
    fn runs(&self) -> u32 {
        self.runs.unwrap_or(5)
    }
}

type Evaluation = fn(&Options) -> Result<bool>;

const EVALUATIONS: [(&str, &str, Evaluation); 24] = [
    ("spine", "recording in free and serial mode against no instrumentation and clang's ThreadSanitizer", spine::run),
    ("runtime", "online detection against no instrumentation and clang's ThreadSanitizer", runtime::run),
    ("tree", "what the TREE filter skips, costs and saves; that it loses no race", tree::run),
    ("detect", "the races clang's ThreadSanitizer reports on the test programs, and silence where there are none", detect::run),
    ("oracle", "every analysis and decider against brute force, on millions of small traces", oracle::run),
    ("speedygo", "the figures of papers: races by brute force, and what every analysis and decider finds", speedygo::run),
    ("raceinjector", "races that a solver hid from one algorithm each", raceinjector::run),
    ("formats", "how fast traces come from files of each format, and from the generator", formats::run),
    (
        "mutations",
        "damaged trace files through every reader: no panic, bounded memory, every refusal with a place",
        mutations::run,
    ),
    ("replay", "serial recordings of every program, replayed and compared event by event", replay::run),
    ("provoke", "races of a small ARINC-653-like library, proven by provocation: what is found, and what it takes", provoke::run),
    ("public", "programs with races from --corpora: what check proves of what one run of ThreadSanitizer reports", public::run),
    ("pbzip2", "a real program from Debian's source package, built and checked", pbzip2::run),
    ("memcached", "a real server from Debian's source package under load, detected and recorded", memcached::run),
    ("real", "programs from Debian's source packages: built as the README says, detected, recorded and checked", real::run),
    ("explore", "schedules that each strategy needs to make small programs fail, against stress", explore::run),
    ("budgets", "random programs and budgets, the tool ended at random: it ends in time and loses nothing", budgets::run),
    ("stores", "damaged stores through every command: no crash, no hang, nothing outside touched, bounded memory", stores::run),
    ("witnesses", "witnesses by model checking for the programs of Shacham et al. 2007: Tables 2 to 4", witnesses::run),
    ("llvm-tsan", "LLVM's own tests of ThreadSanitizer, with clang's runtime and with ours", llvm_tsan::run),
    ("engine", "throughput and memory of the linear analyses on generated traces", engine::run),
    (
        "memory",
        "analyses that need all variables at once, with a quarter of the memory: the same, with tables on disk",
        engine::memory::run,
    ),
    ("clocks", "clocks as rows against clocks as trees, by threads and who communicates with whom", engine::clocks::run),
    ("engine-large", "a thousand million events, analysed as they are generated, within 4 GB", engine::run_large),
];

pub fn run(options: &Options) -> Result<bool> {
    let names = || EVALUATIONS.map(|(name, what, _)| format!("  {name:<10} {what}")).join("\n");
    let Some(wanted) = &options.name else {
        println!("evaluations:\n{}", names());
        return Ok(true);
    };
    match EVALUATIONS.iter().find(|(name, _, _)| name == wanted) {
        Some((_, _, evaluate)) => evaluate(options),
        None => bail!("no evaluation is called {wanted}; there are\n{}", names()),
    }
}

/// For the head of a report: what prints it again.
fn command_line(name: &str, options: &Options) -> String {
    let mut line = format!("cargo xtask evaluate {name}");
    if options.quick {
        line.push_str(" --quick");
    } else {
        line.push_str(&format!(" --runs {}", options.runs()));
    }
    if let Some(only) = &options.only {
        line.push_str(&format!(" --only {only}"));
    }
    line
}
