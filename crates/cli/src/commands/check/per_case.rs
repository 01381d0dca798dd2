//! `rashomon check --per-test-case`: each test case of a program is a check of its own; one report tells of all.

use super::{Executed, execute};
use crate::arguments::{ConfirmOptions, ReportOptions, RunOptions, Target};
use crate::commands::merge::merged::{Merged, Of};
use crate::commands::prepare::prepare_inspected;
use crate::commands::{Ui, end_children_on_interruption, present};
use crate::exit::Exit;
use crate::live;
use crate::program::{self, Inspection};
use crate::progress::Reporter;
use crate::runtime;
use crate::suites::{Case, Framework};
use crate::terminal::say;
use crate::wrapper::Language;
use anyhow::{Context as _, Result, bail};
use rashomon_event::harmless;
use rashomon_pipeline::Store;
use rashomon_pipeline::store::DEFAULT_BASE;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What all test cases have in common.
struct Suite<'a> {
    ui: Ui,
    options: (&'a RunOptions, &'a ConfirmOptions, &'a ReportOptions),
    framework: Framework,
    inspection: Inspection,
    arguments: Vec<OsString>,
    /// Where their stores are.
    group: Store,
}

pub fn check_each(
    ui: Ui,
    asked: Option<Framework>,
    options: (&RunOptions, &ConfirmOptions, &ReportOptions),
    target: Target,
) -> Result<Exit> {
    end_children_on_interruption();
    let (run, confirm, report) = options;
    report.json.as_deref().map(live::forget).transpose()?;
    if target.file.as_deref().is_some_and(|file| Language::of(file).is_some()) {
        bail!("--per-test-case takes a program that is built already: rashomon check --per-test-case -- PROG ARGS");
    }
    let mut command: Vec<OsString> = target.file.map(PathBuf::into_os_string).into_iter().chain(target.command).collect();
    if command.is_empty() {
        bail!("nothing to run: write `rashomon check --per-test-case -- PROG ARGS`");
    }
    let inspection = program::inspect(&command.remove(0), run.preload)?;
    let path = inspection.path.clone();
    let framework = match asked {
        Some(framework) => framework,
        None => Framework::of(&path, &command)?.with_context(|| {
            format!(
                "{}: neither GoogleTest's, Catch2's, doctest's nor pytest's; --per-test-case=FRAMEWORK names one",
                path.display()
            )
        })?,
    };
    let preloaded = if run.preload { Some(runtime::preloaded()?) } else { None };
    let mut cases = framework.cases(&path, &command, preloaded)?;
    if cases.is_empty() {
        bail!("{} lists no test case", path.display());
    }
    let shard = confirm.shard.unwrap_or_default();
    let mut places = 0..;
    cases.retain(|_| places.next().is_some_and(|place| shard.has_place(place)));
    // A test case is checked as a whole.
    let confirm = &ConfirmOptions { shard: None, ..confirm.clone() };
    let group = Store::group_in(Path::new(DEFAULT_BASE), &path, run.output.as_deref())
        .context("no store in this folder; --output FOLDER names another one")?;
    let suite = Suite { ui, options: (run, confirm, report), framework, inspection, arguments: command, group };
    suite.check(&cases)
}

impl Suite<'_> {
    fn check(&self, cases: &[Case]) -> Result<Exit> {
        let mut all = Merged::default();
        for (number, case) in cases.iter().enumerate() {
            if !self.ui.quiet {
                say!("test case {} ({} of {})", harmless(&case.name), number + 1, cases.len());
            }
            match self.check_one(case) {
                Ok(Executed { findings, summary, .. }) => all.add(&case.name, findings, summary),
                Err(error) => {
                    say!("test case {}: {error:#}", harmless(&case.name));
                    all.fail(&case.name, format!("{error:#}"));
                }
            }
        }
        let command = std::iter::once(self.inspection.path.as_os_str()).chain(self.arguments.iter().map(OsString::as_os_str));
        let command = command.map(|word| word.to_string_lossy().into_owned()).collect();
        let exit = all.exit();
        let (findings, summary) = all.finish(Of::TestCases, command, self.group.path().display().to_string());
        self.group.write_summary(&summary)?;
        let met = present(self.ui, &findings, &summary, self.options.2)?;
        Ok(if met { Exit::Findings } else { exit })
    }

    fn check_one(&self, case: &Case) -> Result<Executed> {
        let (run, confirm, report) = self.options;
        let store = Store::create_in(self.group.path(), Path::new(&case.name.replace('/', "_")))?;
        let mut arguments = self.framework.unselected(&self.arguments);
        arguments.push(case.argument.clone().into());
        let prepared = prepare_inspected(run, store, self.inspection.clone(), arguments, self.framework.environment())?;
        let executed = execute((run, confirm, report), Reporter::telling(self.ui.quiet, None), prepared)?;
        match executed.stopped {
            Some(error) if executed.findings.is_empty() => Err(error.into()),
            _ => Ok(executed),
        }
    }
}
