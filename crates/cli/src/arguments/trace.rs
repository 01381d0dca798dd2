//! `rashomon trace`.

use super::examples;
use clap::{Args, Subcommand, ValueEnum};
use rashomon_pipeline::trace::file as packed;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Print statistics of a recording or a trace file.
    #[command(after_help = examples::TRACE_STAT)]
    Stat {
        /// A file, a recording, a store, or `-`: standard input. May be compressed by gzip or Zstandard.
        trace: PathBuf,
        #[command(flatten)]
        reading: Reading,
    },
    /// Print every event as a line of text.
    #[command(after_help = examples::TRACE_DUMP)]
    Dump {
        /// A file, a recording, a store, or `-`: standard input. May be compressed by gzip or Zstandard.
        trace: PathBuf,
        #[command(flatten)]
        reading: Reading,
    },
    /// Check that a recording or trace file is complete and well-formed. Exit code 1 if not.
    #[command(after_help = examples::TRACE_VERIFY)]
    Verify {
        /// A file, a recording, a store, or `-`: standard input. May be compressed by gzip or Zstandard.
        trace: PathBuf,
        #[command(flatten)]
        reading: Reading,
    },
    /// Compare two recordings event by event, ignoring addresses. Exit code 1 if they differ.
    #[command(after_help = examples::TRACE_DIFF)]
    Diff {
        /// The first recording.
        one: PathBuf,
        /// The second recording.
        other: PathBuf,
    },
    /// Convert a trace of any format, or a recording, into a packed trace.
    #[command(after_help = examples::TRACE_IMPORT)]
    Import {
        /// A file, a recording, or `-`: standard input. May be compressed by gzip or Zstandard.
        trace: PathBuf,
        #[command(flatten)]
        reading: Reading,
        /// The packed trace to write; `-`: standard output.
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
    /// Convert a trace of any format, or a recording, into another format.
    #[command(after_help = examples::TRACE_EXPORT)]
    Export {
        /// A file, a recording, or `-`: standard input. May be compressed by gzip or Zstandard.
        trace: PathBuf,
        #[command(flatten)]
        reading: Reading,
        /// The format to write; perfetto: of recordings alone, for ui.perfetto.dev, with the findings of the store; parquet: a
        /// table of events, for SQL.
        #[arg(long, value_enum)]
        to: ExportFormat,
        /// Leave out events that the format cannot express, instead of refusing. Perfetto and Parquet do not need it.
        #[arg(long)]
        lossy: bool,
        /// Write numbers instead of names, for tools that accept nothing else. Not for Perfetto; Parquet has both.
        #[arg(long)]
        numbers: bool,
        /// The file to write; `-`: standard output.
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
    /// Generate a random trace that some program could have produced.
    #[command(after_help = examples::TRACE_GEN)]
    Gen {
        #[command(flatten)]
        shape: ShapeOptions,
        /// The format to write.
        #[arg(long, value_enum, default_value_t = FileFormat::Packed)]
        to: FileFormat,
        /// The file to write; `-`: standard output.
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
}

/// How a trace file is read and judged.
#[derive(Clone, Debug, Args)]
pub struct Reading {
    /// The file's format. Default: recognised by its content.
    #[arg(long, value_enum)]
    pub format: Option<FileFormat>,
    /// Leave out events that cannot have happened, and say so, instead of refusing the trace.
    #[arg(long)]
    pub lenient: bool,
    /// Locks are reentrant: a thread may acquire a lock that it holds.
    #[arg(long)]
    pub reentrant: bool,
    /// In text formats, `T12` and `12` name the same thread.
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

/// What a trace is exported as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Ours: eight bytes an event.
    Packed,
    /// RAPID's text, `thread|op(target)|location`.
    Std,
    /// RAPID's words of 64 bits.
    Rapidbin,
    /// SpeedyGo's CSV, `thread,operation,object,location,clock`.
    Speedygo,
    /// Perfetto's protobuf: threads as tracks, synchronisation as slices and flows.
    Perfetto,
    /// A Parquet file with a row an event, for DuckDB and other programs that know SQL.
    Parquet,
}

/// Who writes a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exporter {
    /// One that can be read again.
    File(FileFormat),
    Perfetto,
    Parquet,
}

impl ExportFormat {
    pub const fn exporter(self) -> Exporter {
        match self {
            Self::Packed => Exporter::File(FileFormat::Packed),
            Self::Std => Exporter::File(FileFormat::Std),
            Self::Rapidbin => Exporter::File(FileFormat::Rapidbin),
            Self::Speedygo => Exporter::File(FileFormat::Speedygo),
            Self::Perfetto => Exporter::Perfetto,
            Self::Parquet => Exporter::Parquet,
        }
    }
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

/// Sizes and shares of a generated trace. Shares are between 0 and 1.
#[derive(Clone, Debug, Args)]
pub struct ShapeOptions {
    /// Exact number of events.
    #[arg(long, value_name = "N")]
    pub events: u64,
    /// The preset that gives every value without an option of its own.
    #[arg(long, value_enum, default_value_t = PresetName::Flat)]
    pub preset: PresetName,
    /// Seed: the same seed and shape give the same trace.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Number of threads. Default: the preset's, as for all that follow.
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// Number of locks.
    #[arg(long, value_name = "N")]
    pub locks: Option<u32>,
    /// The most locks that a thread holds at the same time.
    #[arg(long, value_name = "N")]
    pub nesting: Option<u32>,
    /// Number of variables.
    #[arg(long, value_name = "N")]
    pub variables: Option<u32>,
    /// How many of the variables every thread accesses without a lock.
    #[arg(long, value_name = "N")]
    pub racy: Option<u32>,
    /// Number of source locations.
    #[arg(long, value_name = "N")]
    pub locations: Option<u32>,
    /// Approximate share of accesses inside critical sections.
    #[arg(long, value_name = "SHARE")]
    pub locked: Option<f64>,
    /// Share of accesses that go to racy variables.
    #[arg(long, value_name = "SHARE")]
    pub race_rate: Option<f64>,
    /// Share of reads among accesses.
    #[arg(long, value_name = "SHARE")]
    pub reads: Option<f64>,
    /// Acquire locks in any order, so that other executions may deadlock.
    #[arg(long)]
    pub any_order: bool,
    /// Add an event when a thread requests a lock, before it acquires it.
    #[arg(long)]
    pub requests: bool,
    /// Add begins and ends of atomic regions.
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
