//! `rashomon merge`.

pub mod merged;

use self::merged::{Merged, Of};
use super::report::summary_of;
use super::{Ui, present, write_reports};
use crate::arguments::{MergeOptions, ReportFile, ReportOptions};
use crate::exit::Exit;
use anyhow::{Context as _, Result};
use rashomon_event::{Finding, harmless};
use rashomon_pipeline::Store;
use rashomon_report::RunSummary;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Stores that are there, as one report. Nothing is executed, and nothing in them is changed.
pub fn merge(ui: Ui, options: &MergeOptions) -> Result<Exit> {
    let mut all = All::default();
    for path in &options.stores {
        all.add(path).with_context(|| format!("cannot merge {}", path.display()))?;
    }
    let (findings, summary, exit) = all.finish();
    let met = present(ui, &findings, &summary, &options.report)?;
    Ok(if met { Exit::Findings } else { exit })
}

/// The same as files alone, for stores whose reports were shown one by one, each with its name.
pub fn write_files(stores: &[(String, PathBuf)], files: &[ReportFile], options: &ReportOptions) -> Result<()> {
    let mut all = All::default();
    for (name, path) in stores {
        let store = Store::open(path)?;
        all.has_others |= all.add_store(name, &store)?;
        all.commands.insert(store.run()?.command());
    }
    let (findings, summary, _) = all.finish();
    write_reports(&findings, summary, files, options)
}

#[derive(Default)]
struct All {
    merged: Merged,
    /// Of what has been added.
    stores: BTreeSet<PathBuf>,
    commands: BTreeSet<Vec<String>>,
    has_cases: bool,
    has_others: bool,
}

impl All {
    fn finish(mut self) -> (Vec<Finding>, RunSummary, Exit) {
        let of = self.of();
        let command = match self.commands.pop_first() {
            Some(command) if self.commands.is_empty() => command,
            _ => vec!["rashomon".into(), "merge".into()],
        };
        let exit = self.merged.exit();
        let (findings, summary) = self.merged.finish(of, command, String::new());
        (findings, summary, exit)
    }

    fn of(&self) -> Of {
        match (self.has_cases, self.has_others) {
            (true, false) => Of::TestCases,
            (false, _) if self.commands.len() <= 1 => Of::Shards,
            _ => Of::Checks,
        }
    }

    fn add(&mut self, path: &Path) -> Result<()> {
        let Some(group) = Store::group(path)? else {
            let store = Store::open(path)?;
            let command = store.run()?.command();
            let name = words(&command);
            self.has_others |= self.add_store(&name, &store)?;
            self.commands.insert(command);
            return Ok(());
        };
        if !self.stores.insert(group.path().to_owned()) {
            return Ok(());
        }
        self.has_cases = true;
        let summary = group
            .summary()?
            .with_context(|| format!("{} was interrupted: its test cases can be merged one by one", group.path().display()))?;
        for case in &summary.test_cases {
            if let Some(failure) = &case.failure {
                self.merged.fail(&case.name, failure.clone());
            } else if let Some(name) = Path::new(&case.store).file_name() {
                // The folder may have been moved since.
                self.add_store(&case.name, &Store::open(&group.path().join(name))?)?;
            }
        }
        self.commands.insert(summary.command);
        Ok(())
    }

    /// `false`: it is there already.
    fn add_store(&mut self, name: &str, store: &Store) -> Result<bool> {
        if !self.stores.insert(store.path().to_owned()) {
            return Ok(false);
        }
        let summary = RunSummary { store: store.path().display().to_string(), ..summary_of(store)? };
        self.merged.add(name, store.findings()?, summary);
        Ok(true)
    }
}

/// The program's name and its arguments.
fn words(command: &[String]) -> String {
    let program = command.first().map(|path| Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned());
    let arguments = command.iter().skip(1).cloned();
    harmless(&program.into_iter().chain(arguments).collect::<Vec<_>>().join(" ")).into_owned()
}
