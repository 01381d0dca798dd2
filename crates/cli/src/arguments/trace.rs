//! `rashomon trace`.

use clap::{Args, Subcommand, ValueEnum};
use rashomon_packed as packed;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Numbers about a recording or a trace file.
    Stat {
        trace: PathBuf,
        #[command(flatten)]
        reading: Reading,
    },
    /// Every event, as text.
    Dump {
        trace: PathBuf,
        #[command(flatten)]
        reading: Reading,
    },
    /// Whether it is whole and sound.
    Verify {
        trace: PathBuf,
        #[command(flatten)]
        reading: Reading,
    },
    /// Whether two recordings show the same execution, addresses apart.
    Diff { one: PathBuf, other: PathBuf },
    /// Turn a trace of any format, or a recording, into a packed trace.
    Import {
        /// A file, a recording, or `-`: standard input. May be compressed by gzip or Zstandard.
        trace: PathBuf,
        #[command(flatten)]
        reading: Reading,
        /// The packed trace; `-`: standard output.
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
    /// Turn a trace of any format, or a recording, into another format.
    Export {
        /// A file, a recording, or `-`: standard input. May be compressed by gzip or Zstandard.
        trace: PathBuf,
        #[command(flatten)]
        reading: Reading,
        #[arg(long, value_enum)]
        to: FileFormat,
        /// Leave out what the format cannot say.
        #[arg(long)]
        lossy: bool,
        /// Numbers instead of names, for tools that take nothing else.
        #[arg(long)]
        numbers: bool,
        /// `-`: standard output.
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
    /// Make up a trace that is an execution.
    Gen {
        #[command(flatten)]
        shape: ShapeOptions,
        #[arg(long, value_enum, default_value_t = FileFormat::Packed)]
        to: FileFormat,
        /// `-`: standard output.
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
}

/// How a trace file is read and judged.
#[derive(Clone, Debug, Args)]
pub struct Reading {
    /// The file's format; without it what the content looks like.
    #[arg(long, value_enum)]
    pub format: Option<FileFormat>,
    /// Leave out what cannot have happened, with a notice, instead of refusing the trace.
    #[arg(long)]
    pub lenient: bool,
    /// A thread may take a lock that it holds.
    #[arg(long)]
    pub reentrant: bool,
    /// In text, threads called `T12` and `12` are the same.
    #[arg(long)]
    pub bare_threads: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// Ours: eight bytes an event.
    Packed,
    /// RAPID's text, `thread|op(target)|location`.
    Std,
    /// RAPID's words of 64 bits.
    Rapidbin,
    /// SpeedyGo's CSV, `thread,operation,object,location,clock`.
    Speedygo,
}

impl From<FileFormat> for packed::Format {
    fn from(format: FileFormat) -> Self {
        match format {
            FileFormat::Packed => Self::Packed,
            FileFormat::Std => Self::Std,
            FileFormat::Rapidbin => Self::RapidBin,
            FileFormat::Speedygo => Self::SpeedyGo,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PresetName {
    /// 12 threads, 100 locks, one at a time, few variables.
    Flat,
    /// 16 threads, up to four locks at a time.
    Nest,
    /// 16 threads, 10^7 variables.
    Wide,
    /// As flat, with regions that should be atomic.
    Regions,
}

/// Shares are between 0 and 1.
#[derive(Clone, Debug, Args)]
pub struct ShapeOptions {
    /// How many events there are, exactly.
    #[arg(long)]
    pub events: u64,
    /// What everything not said is taken from.
    #[arg(long, value_enum, default_value_t = PresetName::Flat)]
    pub preset: PresetName,
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[arg(long)]
    pub threads: Option<u32>,
    #[arg(long)]
    pub locks: Option<u32>,
    /// Locks that a thread holds at the same time, at most.
    #[arg(long)]
    pub nesting: Option<u32>,
    #[arg(long)]
    pub variables: Option<u32>,
    /// Variables that anybody accesses without a lock, among these.
    #[arg(long)]
    pub racy: Option<u32>,
    #[arg(long)]
    pub locations: Option<u32>,
    /// Share of accesses inside critical sections, roughly.
    #[arg(long)]
    pub locked: Option<f64>,
    /// Share of accesses that go to racy variables.
    #[arg(long)]
    pub race_rate: Option<f64>,
    /// Share of reads among accesses.
    #[arg(long)]
    pub reads: Option<f64>,
    /// Locks are taken in any order, so that deadlocks are possible in other executions.
    #[arg(long)]
    pub any_order: bool,
    /// Requests of locks are events, too.
    #[arg(long)]
    pub requests: bool,
    /// Threads begin and end regions.
    #[arg(long)]
    pub regions: bool,
}

impl ShapeOptions {
    pub fn shape(&self) -> packed::Shape {
        let preset = match self.preset {
            PresetName::Flat => packed::Preset::Flat,
            PresetName::Nest => packed::Preset::Nest,
            PresetName::Wide => packed::Preset::Wide,
            PresetName::Regions => packed::Preset::Regions,
        };
        let preset = preset.shape(self.events, self.seed);
        packed::Shape {
            threads: self.threads.unwrap_or(preset.threads),
            locks: self.locks.unwrap_or(preset.locks),
            nesting: self.nesting.unwrap_or(preset.nesting),
            variables: self.variables.unwrap_or(preset.variables),
            racy: self.racy.unwrap_or(preset.racy),
            locations: self.locations.unwrap_or(preset.locations),
            locked: self.locked.unwrap_or(preset.locked),
            race_rate: self.race_rate.unwrap_or(preset.race_rate),
            reads: self.reads.unwrap_or(preset.reads),
            ordered: preset.ordered && !self.any_order,
            requests: preset.requests || self.requests,
            transactions: preset.transactions || self.regions,
            ..preset
        }
    }
}
