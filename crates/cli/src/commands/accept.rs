//! `rashomon accept`.

use crate::arguments::AcceptOptions;
use crate::exit::Exit;
use crate::known::Baseline;
use crate::terminal::say;
use anyhow::{Result, bail};
use rashomon_event::{Finding, FindingId, counted};
use rashomon_pipeline::Store;
use std::collections::BTreeMap;
use std::path::Path;

/// Puts findings of a store, or of those of a program's test cases, into a baseline.
pub fn accept(options: &AcceptOptions) -> Result<Exit> {
    let mut findings = BTreeMap::new();
    for store in Store::open_all(options.store.as_deref().unwrap_or(Path::new(".")))? {
        for finding in store.findings()? {
            add(&mut findings, finding);
        }
    }
    let findings: Vec<Finding> = findings.into_values().collect();
    let mut baseline = Baseline::read_or_new(&options.baseline)?;
    let mut added = 0;
    for finding in chosen(&findings, options)? {
        added += u64::from(baseline.accept(finding));
    }
    baseline.write()?;
    say!("{} added to {}", counted(added, "finding"), baseline.path.display());
    Ok(Exit::Success)
}

/// Test cases may show the same: the surest is kept.
fn add(findings: &mut BTreeMap<FindingId, Finding>, finding: Finding) {
    let known = findings.get(&finding.id).is_some_and(|known| known.verdict.rank() <= finding.verdict.rank());
    if !known {
        findings.insert(finding.id.clone(), finding);
    }
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
