//! JUnit's XML, as continuous integration reads it: a suite for the program, a test case for each finding. What is proven
//! failed; what is not is skipped, with the reason. A run that proves nothing is one test case that passes, or is skipped if
//! there was no time to look at everything. Where test cases were checked one by one, these are the test cases.

use crate::format::{Format, Options, Report};
use crate::order::by_importance;
use crate::place::{self, Place};
use crate::summary::{ProgramExit, RunSummary, TestCase};
use crate::text::clean;
use quick_xml::Writer;
use quick_xml::events::BytesText;
use rashomon_event::Finding;
use std::io;

/// The format of test results.
#[derive(Clone, Copy, Debug)]
pub struct JUnit;

impl Format for JUnit {
    fn name(&self) -> &'static str {
        "junit"
    }

    fn about(&self) -> &'static str {
        "JUnit's XML: test results, a test case for each finding"
    }

    fn is_for_machines(&self) -> bool {
        true
    }

    fn report(&self, report: Report<'_>, options: &Options) -> String {
        let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
        // Nothing that writes to memory fails.
        let _ = document(&mut writer, report, options);
        let text = String::from_utf8(writer.into_inner()).unwrap_or_default();
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{text}\n")
    }
}

fn document(writer: &mut Writer<Vec<u8>>, Report { findings, run }: Report<'_>, options: &Options) -> io::Result<()> {
    let shown = by_importance(findings, options.shown);
    if !run.test_cases.is_empty() {
        return cases(writer, &shown, run, &options.folder);
    }
    let proven = shown.iter().filter(|finding| finding.verdict.is_proven()).count();
    let is_whole = !run.interrupted && run.unexamined.is_nothing();
    let alone = proven == 0;
    let tests = (shown.len() + usize::from(alone)).to_string();
    let skipped = (shown.len() - proven + usize::from(alone && !is_whole)).to_string();
    let (name, failures) = (suite(run), proven.to_string());
    let counts = [("tests", tests.as_str()), ("failures", failures.as_str()), ("errors", "0"), ("skipped", skipped.as_str())];
    writer.create_element("testsuites").with_attributes(counts).write_inner_content(|writer| {
        let suite = writer.create_element("testsuite").with_attribute(("name", name.as_str())).with_attributes(counts);
        suite.write_inner_content(|writer| {
            for finding in &shown {
                case(writer, finding, &name, &options.folder)?;
            }
            if alone {
                no_proof(writer, &name, is_whole)?;
            }
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

/// A test case for each of the program's: what is proven in it fails it, and so does its own end.
fn cases(writer: &mut Writer<Vec<u8>>, shown: &[&Finding], run: &RunSummary, folder: &str) -> io::Result<()> {
    let of = |case: &TestCase| -> Vec<&Finding> {
        let found = |one: &&&Finding| one.verdict.is_proven() && case.findings.iter().any(|id| *id == one.id.as_str());
        shown.iter().filter(found).copied().collect()
    };
    let ended_badly = |case: &TestCase| case.failure.is_none() && case.exit != (ProgramExit::Code { code: 0 });
    let count = |holds: &dyn Fn(&TestCase) -> bool| run.test_cases.iter().filter(|case| holds(case)).count().to_string();
    let (tests, errors) = (count(&|_| true), count(&|case| case.failure.is_some()));
    let failures = count(&|case| ended_badly(case) || case.failure.is_none() && !of(case).is_empty());
    let counts = [("tests", tests.as_str()), ("failures", failures.as_str()), ("errors", errors.as_str()), ("skipped", "0")];
    let name = suite(run);
    writer.create_element("testsuites").with_attributes(counts).write_inner_content(|writer| {
        let suite = writer.create_element("testsuite").with_attribute(("name", name.as_str())).with_attributes(counts);
        let each = |writer: &mut Writer<Vec<u8>>| {
            run.test_cases.iter().try_for_each(|case| own_case(writer, case, &of(case), &name, folder))
        };
        suite.write_inner_content(each)?;
        Ok(())
    })?;
    Ok(())
}

fn own_case(writer: &mut Writer<Vec<u8>>, case: &TestCase, found: &[&Finding], suite: &str, folder: &str) -> io::Result<()> {
    let whole = clean(&case.name);
    // A node id of pytest, in whose reports `tests/test_queue.py::test_push` is of `tests.test_queue`.
    let node = whole.rsplit_once("::").filter(|(file, _)| file.contains(".py"));
    let module = node.map(|(file, _)| file.replacen(".py", "", 1).replace("::", ".").replace('/', "."));
    // `Suite.Test` of GoogleTest.
    let dotted = || whole.rsplit_once('.').filter(|_| !whole.contains(' '));
    let named = module.as_deref().zip(node.map(|(_, test)| test)).or_else(dotted);
    let (class, name) = named.unwrap_or((suite, &whole));
    let element = writer.create_element("testcase").with_attributes([("classname", class), ("name", name)]);
    if let Some(failure) = &case.failure {
        let failure = clean(failure);
        element.write_inner_content(|writer| {
            writer.create_element("error").with_attribute(("message", failure.as_str())).write_empty()?;
            Ok(())
        })?;
    } else if let Some(first) = found.first() {
        let rule = place::rule(first.kind);
        let titles: Vec<String> = found.iter().map(|finding| format!("{} [{}]", place::title(finding), finding.id)).collect();
        let told = found.iter().zip(&titles).map(|(finding, title)| format!("{title}\n{}", place::message(finding, folder)));
        let (message, text) = (titles.join("; "), told.collect::<Vec<_>>().join("\n\n"));
        element.write_inner_content(|writer| {
            let failure = writer.create_element("failure");
            let failure = failure.with_attributes([("message", message.as_str()), ("type", rule.as_str())]);
            failure.write_text_content(BytesText::new(&text))?;
            Ok(())
        })?;
    } else if case.exit == (ProgramExit::Code { code: 0 }) {
        element.write_empty()?;
    } else {
        let words = exit_words(case.exit);
        element.write_inner_content(|writer| {
            let failure = writer.create_element("failure");
            failure.with_attributes([("message", words.as_str()), ("type", "exit")]).write_empty()?;
            Ok(())
        })?;
    }
    Ok(())
}

fn exit_words(exit: ProgramExit) -> String {
    match exit {
        ProgramExit::Code { code } => format!("the test ended with code {code}"),
        ProgramExit::Signal { signal } => format!("the test was ended by signal {signal}"),
        ProgramExit::TimedOut => "the test ran longer than it may".into(),
        ProgramExit::Blocked | ProgramExit::Endless => "the test does not end".into(),
        ProgramExit::Unknown => "it is not known how the test ended".into(),
    }
}

/// The program's name, without its folder.
fn suite(run: &RunSummary) -> String {
    let program = run.command.first().map_or("", |program| program.rsplit('/').next().unwrap_or(program));
    format!("rashomon {}", clean(program)).trim_end().to_owned()
}

fn case(writer: &mut Writer<Vec<u8>>, finding: &Finding, suite: &str, folder: &str) -> io::Result<()> {
    let (title, rule) = (place::title(finding), place::rule(finding.kind));
    let name = format!("{} [{}]", title, finding.id);
    let place = Place::of_finding(finding, folder);
    let (file, line) = place.map(|place| (clean(place.file), place.line.to_string())).unwrap_or_default();
    let mut element = writer.create_element("testcase").with_attributes([("classname", suite), ("name", name.as_str())]);
    if place.is_some() {
        element = element.with_attributes([("file", file.as_str()), ("line", line.as_str())]);
    }
    element.write_inner_content(|writer| {
        let message = ("message", title.as_str());
        if finding.verdict.is_proven() {
            let failure = writer.create_element("failure").with_attributes([message, ("type", rule.as_str())]);
            failure.write_text_content(BytesText::new(&place::message(finding, folder)))?;
        } else {
            writer.create_element("skipped").with_attribute(message).write_empty()?;
        }
        Ok(())
    })?;
    Ok(())
}

fn no_proof(writer: &mut Writer<Vec<u8>>, suite: &str, is_whole: bool) -> io::Result<()> {
    let case = writer.create_element("testcase").with_attributes([("classname", suite), ("name", "no bug was made to happen")]);
    if is_whole {
        case.write_empty()?;
        return Ok(());
    }
    case.write_inner_content(|writer| {
        let skipped = writer.create_element("skipped");
        skipped.with_attribute(("message", "incomplete: not everything was examined")).write_empty()?;
        Ok(())
    })?;
    Ok(())
}
