//! Options that several evaluations have.

/// Of most evaluations.
#[derive(Debug, clap::Args)]
pub struct Selecting {
    /// Only programs, traces, tests or parts whose name contains this.
    #[arg(long, visible_aliases = ["filter", "program"])]
    pub only: Option<String>,
    /// One run on small inputs: shows that everything works, measures nothing.
    #[arg(long)]
    pub quick: bool,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

/// Of evaluations that use all processors.
#[derive(Debug, clap::Args)]
pub struct Dividing {
    /// How much of it runs at the same time; without it as many as there are processors.
    #[arg(long)]
    pub jobs: Option<std::num::NonZeroUsize>,
    #[command(flatten)]
    pub selecting: Selecting,
}

/// Of evaluations that measure.
#[derive(Debug, clap::Args)]
pub struct Measuring {
    /// Runs of each configuration, of which the medians are taken.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,
    /// Only programs, traces or parts whose name contains this.
    #[arg(long, visible_aliases = ["filter", "program"])]
    pub only: Option<String>,
    /// One run on small inputs: shows that everything works, measures nothing.
    #[arg(long)]
    pub quick: bool,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

/// Of evaluations that read traces with known answers.
#[derive(Debug, clap::Args)]
pub struct Reading {
    /// Folder of traces with known answers; without it `tests/corpora`.
    #[arg(long)]
    pub corpora: Option<std::path::PathBuf>,
    /// Only traces whose name contains this.
    #[arg(long, visible_aliases = ["filter", "program"])]
    pub only: Option<String>,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}
