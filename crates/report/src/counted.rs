//! How many findings there are: the smallest format.

use crate::format::{Format, Options, Report};

#[derive(Debug)]
pub struct Counted;

impl Format for Counted {
    fn name(&self) -> &'static str {
        "counted"
    }

    fn about(&self) -> &'static str {
        "the number of findings"
    }

    fn report(&self, report: Report<'_>, _options: &Options) -> String {
        format!("{}\n", report.findings.len())
    }
}
