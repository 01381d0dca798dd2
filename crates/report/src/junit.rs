//! JUnit's XML, as continuous integration reads it: a suite for the program, a test case for each finding. What is proven
//! failed; what is not is skipped, with the reason. A run that proves nothing is one test case that passes, or is skipped if
//! there was no time to look at everything.

use crate::format::{Format, Options, Report};
use crate::order::by_importance;
use crate::place::{self, Place};
use crate::summary::RunSummary;
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
