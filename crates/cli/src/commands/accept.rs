//! `rashomon accept`.

use super::open_store;
use crate::arguments::AcceptOptions;
use crate::exit::Exit;
use crate::known::Baseline;
use crate::terminal::say;
use anyhow::{Result, bail};
use rashomon_event::{Finding, counted};

/// Puts findings of a store into a baseline.
pub fn accept(options: &AcceptOptions) -> Result<Exit> {
    let findings = open_store(options.store.as_deref())?.findings()?;
    let mut baseline = Baseline::read_or_new(&options.baseline)?;
    let mut added = 0;
    for finding in chosen(&findings, options)? {
        added += u64::from(baseline.accept(finding));
    }
    baseline.write()?;
    say!("{} added to {}", counted(added, "finding"), baseline.path.display());
    Ok(Exit::Success)
}

/// Those named; else all that are proven or predicted.
fn chosen<'a>(findings: &'a [Finding], options: &AcceptOptions) -> Result<Vec<&'a Finding>> {
    if options.all {
        return Ok(findings.iter().filter(|finding| finding.verdict.rank() <= 1).collect());
    }
    let mut chosen = Vec::new();
    for wanted in &options.findings {
        let found: Vec<&Finding> = findings.iter().filter(|finding| finding.id.starts_with(wanted.as_str())).collect();
        match found[..] {
            [one] => chosen.push(one),
            [] => bail!("no finding `{wanted}` in the store; `rashomon report` lists them"),
            _ => bail!("{} begin with `{wanted}`; give more of the id", counted(found.len() as u64, "finding")),
        }
    }
    Ok(chosen)
}
