//! What is reported, and how it looks.

use crate::known::{Baseline, SuppressionFile};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use rashomon_report::{FORMATS, Format, named};
use std::path::{Path, PathBuf};

/// Options that fewer need stand together.
const GATE: &str = "Known findings and other formats";

#[derive(Debug, Args)]
pub struct ReportOptions {
    /// The weakest verdict that makes the exit code 66.
    #[arg(long, value_enum, default_value_t = FailOn::Proven)]
    pub fail_on: FailOn,
    /// Which findings are shown.
    #[arg(long, value_enum, default_value_t = Show::Claims)]
    pub show: Show,
    /// Also write the report as JSON; `-`: to standard output (the program's own output then goes to standard error).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Also write the report in another format, such as `sarif=races.sarif` (text, json, tsan, html, sarif, junit, github,
    /// gitlab). `-` as the file: to standard output, as with --json. May be given several times.
    #[arg(long = "report", value_name = "FORMAT=FILE", value_parser = report_file, help_heading = GATE)]
    pub reports: Vec<ReportFile>,
    /// Leave out findings that a file of ThreadSanitizer's form suppresses (race, mutex, thread, deadlock, signal). May be given
    /// several times.
    #[arg(long, value_name = "FILE", value_parser = suppression_file, help_heading = GATE)]
    pub suppressions: Vec<SuppressionFile>,
    /// Leave out findings that this suppression matches, such as race:^function$. May be given several times.
    #[arg(long, value_name = "RULE", value_parser = suppression, help_heading = GATE)]
    pub suppress: Vec<SuppressionFile>,
    /// Leave out findings that are accepted in this file, which `rashomon accept` writes: only new ones fail.
    #[arg(long, value_name = "FILE", value_parser = baseline_file, help_heading = GATE)]
    pub baseline: Option<Baseline>,
    /// Exit with 66 also if a suppression or an entry of the baseline matches nothing.
    #[arg(long, help_heading = GATE)]
    pub strict: bool,
    #[command(flatten)]
    pub look: LookOptions,
}

impl ReportOptions {
    /// Of one of several programs that share these options: each writes files of its own, with its name before the extension.
    pub fn name_files_after(&mut self, program: &str) {
        for file in self.json.iter_mut().chain(self.reports.iter_mut().map(|one| &mut one.file)) {
            if file != Path::new("-") {
                *file = named_after(file, program);
            }
        }
    }

    /// Of files, and those that were given one by one.
    pub fn all_suppressions(&self) -> Vec<SuppressionFile> {
        [&self.suppressions[..], &self.suppress].concat()
    }

    /// Whether a report goes to standard output, so that the program's own output has to go elsewhere.
    pub fn to_output(&self) -> bool {
        self.json
            .as_deref()
            .into_iter()
            .chain(self.reports.iter().map(|one| one.file.as_path()))
            .any(|file| file == Path::new("-"))
    }
}

/// `races-PROGRAM.xml` of `races.xml`.
fn named_after(file: &Path, program: &str) -> PathBuf {
    let mut name = file.file_stem().unwrap_or_default().to_os_string();
    name.push(format!("-{program}"));
    if let Some(extension) = file.extension() {
        name.push(".");
        name.push(extension);
    }
    file.with_file_name(name)
}

/// A report in a format, and where it goes.
#[derive(Clone, Debug)]
pub struct ReportFile {
    pub format: &'static dyn Format,
    pub file: PathBuf,
}

/// The formats by their names.
pub(super) fn formats() -> impl TypedValueParser<Value = &'static dyn Format> {
    let values = FORMATS.iter().map(|format| PossibleValue::new(format.name()).help(format.about()));
    PossibleValuesParser::new(values).try_map(|name| named(&name).ok_or("no such format"))
}

pub fn report_file(text: &str) -> Result<ReportFile, String> {
    let known = || FORMATS.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
    let (name, file) = text.split_once('=').filter(|(_, file)| !file.is_empty()).ok_or("expected FORMAT=FILE")?;
    let format = named(name).ok_or_else(|| format!("no format `{name}`; there are {}", known()))?;
    Ok(ReportFile { format, file: file.into() })
}

fn suppression_file(path: &str) -> Result<SuppressionFile, String> {
    SuppressionFile::read(Path::new(path)).map_err(|error| format!("{error:#}"))
}

fn suppression(rule: &str) -> Result<SuppressionFile, String> {
    SuppressionFile::of_rule(rule).map_err(|error| format!("{error:#}"))
}

fn baseline_file(path: &str) -> Result<Baseline, String> {
    Baseline::read(Path::new(path)).map_err(|error| format!("{error:#}"))
}

/// How much of a finding the report for people shows.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct LookOptions {
    /// Show every frame of a stack, with whole names. Without it the frames of libraries are folded.
    #[arg(long, help_heading = "What the report shows")]
    pub full_stacks: bool,
    /// Show every turn of a schedule. Without it turns of threads that take no part, and turns inside libraries, are folded.
    #[arg(long, help_heading = "What the report shows")]
    pub full_schedule: bool,
    /// Tell each finding by itself. Without it races on the same object are one finding with its members.
    #[arg(long, help_heading = "What the report shows")]
    pub ungrouped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    Proven,
    Predicted,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Show {
    /// Proven and predicted; where nothing is proven, failures that were seen, too.
    Claims,
    /// Also suspected and diverged.
    Suspicions,
    /// Also refuted.
    Everything,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_files_of_their_own() {
        let named = |file: &str| named_after(Path::new(file), "queue-12ab").display().to_string();
        assert_eq!(named("out/races.xml"), "out/races-queue-12ab.xml");
        assert_eq!(named("races"), "races-queue-12ab");
    }
}
