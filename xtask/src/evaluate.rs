//! `cargo xtask evaluate NAME`: one measurement of what the tool costs or finds, with the bars it has to meet.
//! `docs/evaluation.md` explains every column.

mod bar;
mod compile;
mod measure;
mod pbzip2;
mod programs;
mod spine;
mod table;
pub mod trace_size;

use anyhow::{Result, bail};
use clap::Args;

#[derive(Debug, Args)]
pub struct Options {
    /// Which; without it the names are listed.
    name: Option<String>,
    /// Machine-readable output.
    #[arg(long)]
    json: bool,
    /// Runs of each configuration, of which the medians are taken.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// One run on small inputs: shows that everything works, measures nothing.
    #[arg(long)]
    quick: bool,
    /// Only programs (or inputs) whose name contains this.
    #[arg(long)]
    only: Option<String>,
}

type Evaluation = fn(&Options) -> Result<bool>;

const EVALUATIONS: [(&str, &str, Evaluation); 2] = [
    ("spine", "recording in free and serial mode against no instrumentation and clang's ThreadSanitizer", spine::run),
    ("pbzip2", "a real program from Debian's source package, built and checked", pbzip2::run),
];

pub fn run(options: &Options) -> Result<bool> {
    let names = || EVALUATIONS.map(|(name, what, _)| format!("  {name:<8} {what}")).join("\n");
    let Some(wanted) = &options.name else {
        println!("evaluations:\n{}", names());
        return Ok(true);
    };
    match EVALUATIONS.iter().find(|(name, _, _)| name == wanted) {
        Some((_, _, evaluate)) => evaluate(options),
        None => bail!("no evaluation is called {wanted}; there are\n{}", names()),
    }
}
