//! Which races are the cause of others: threads that hand data over by a plain flag race on the flag, and on what it hands over.
//!
//! Of each variable with proven races it is asked which other proven races happens-before would order, in a recording, if the
//! accesses to that variable were atomic. Those on a variable that orders many are *synchronisation races*, what it orders is
//! *apparent* (Netzer, Miller, "What Are Race Conditions?", LOPLAS 1992; Xiong, Park, Zhang, Zhou, Ma, "Ad Hoc Synchronization
//! Considered Harmful", OSDI 2010). The one that orders most is told, then of what is left the next one.
//!
//! Nothing is executed. Guarantee: in the recordings that are looked at, each race that is told as apparent would be ordered
//! wherever its two places race. Limits: [`MOST_RECORDINGS`], [`MOST_VARIABLES`], [`MOST_PAIRS`]; other executions may show the
//! race all the same; a variable orders at least [`LEAST_ORDERED`] races, and one in [`SHARE_ORDERED`] of the others: fewer may
//! be chance.

use crate::check::leads::is_proven;
use crate::check::prove::load_until;
use crate::engines::Asked;
use crate::engines::case::Case;
use crate::engines::engine::{Account, Engine, Offer, Registered, Share, Turn, Yield};
use crate::engines::portfolio::count;
use crate::error::PipelineError;
use crate::findings::compose::Composer;
use crate::findings::symbols::Symbols;
use crate::progress::Progress;
use crate::record::Scheduling;
use rashomon_event::{Candidate, CandidateKind, Deadline, Evidence, Finding, FindingId, FindingKind, SiteId};
use rashomon_order::{Model, SharedMemory, SitePair, races_if_atomic, races_until};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub const NAME: &str = "adhoc";

/// Of what is left behind the first recording, this engine may take one part in so many.
const PART: u32 = 20;
const MOST_RECORDINGS: u32 = 3;
const MOST_VARIABLES: usize = 16;
/// Of one pair of places so many are described: each may be of another variable.
const REPRESENTATIVES: usize = 4;
/// Pairs of places of one recording that are described.
const MOST_PAIRS: usize = 512;
const LEAST_ORDERED: usize = 2;
const SHARE_ORDERED: usize = 4;

/// Names races on what orders others.
#[derive(Default)]
pub struct AdHoc {
    looked_at: u32,
    is_over: bool,
    /// By what both sides touch.
    variables: BTreeMap<String, Variable>,
    told: usize,
}

/// What was seen of one variable, if it were atomic.
#[derive(Debug, Default)]
struct Variable {
    ordered: BTreeSet<FindingId>,
    unordered: BTreeSet<FindingId>,
}

/// A variable whose races are the cause of others.
#[derive(Debug, PartialEq, Eq)]
struct Cause {
    variable: String,
    orders: BTreeSet<FindingId>,
    /// Races on other variables that it was asked of.
    of: usize,
}

/// The one that orders most of what no other one orders, and again. What is ordered is no cause.
fn causes(variables: &BTreeMap<String, Variable>, subjects: &BTreeMap<FindingId, String>) -> Vec<Cause> {
    let mut told = Vec::new();
    let mut explained: BTreeSet<FindingId> = BTreeSet::new();
    loop {
        let is_explained = |variable: &String| {
            let mut own = subjects.iter().filter(|(_, subject)| *subject == variable).map(|(id, _)| id);
            told.iter().any(|cause: &Cause| cause.variable == *variable) || own.any(|id| explained.contains(id))
        };
        let open = variables.iter().filter(|(variable, _)| !is_explained(variable));
        let of_one = open.map(|(variable, seen)| Cause {
            variable: variable.clone(),
            orders: seen.ordered.iter().filter(|id| !seen.unordered.contains(*id) && !explained.contains(*id)).cloned().collect(),
            of: seen.ordered.union(&seen.unordered).filter(|id| !explained.contains(*id)).count(),
        });
        let many = |cause: &Cause| cause.orders.len() >= LEAST_ORDERED && cause.orders.len() * SHARE_ORDERED >= cause.of;
        // Of equal ones the first.
        let best = of_one.filter(many).reduce(|best, one| if one.orders.len() > best.orders.len() { one } else { best });
        let Some(best) = best else { return told };
        explained.extend(best.orders.iter().cloned());
        told.push(best);
    }
}

/// The places of each race: a race is ordered where none of its pairs is left.
type Places = BTreeMap<FindingId, BTreeSet<(SiteId, SiteId)>>;

impl AdHoc {
    /// One recording.
    fn look<S: Symbols + ?Sized>(
        &mut self,
        case: &Case<'_, '_, S>,
        number: u32,
        subjects: &BTreeMap<FindingId, String>,
        until: Deadline,
    ) -> Result<(), PipelineError> {
        let job = case.job;
        let Ok(loaded) = load_until(&job.store.recording(number), until) else { return Ok(()) };
        let memory = SharedMemory::until(&loaded.trace, until);
        let races = races_until(&loaded.trace, &memory, Model::CPP20, REPRESENTATIVES, until);
        let composer = Composer::new(&loaded, job.symbols, job.settings.record.quantum);
        let mut places = Places::new();
        for race in until.bound(races.iter().take(MOST_PAIRS)) {
            for id in ids_of(&composer, race) {
                if subjects.contains_key(&id) {
                    places.entry(id).or_default().insert(race.sites);
                }
            }
        }
        let mut touched: Vec<&String> = places.keys().filter_map(|id| subjects.get(id)).collect();
        touched.sort_unstable();
        touched.dedup();
        for variable in touched.into_iter().take(MOST_VARIABLES) {
            let (own, others): (Vec<_>, Vec<_>) = places.iter().partition(|(id, _)| subjects.get(*id) == Some(variable));
            let mut sites: Vec<SiteId> = own.iter().flat_map(|(_, pairs)| pairs.iter().flat_map(|&(a, b)| [a, b])).collect();
            sites.sort_unstable();
            sites.dedup();
            let left = races_if_atomic(&loaded.trace, &memory, Model::CPP20, &sites, until);
            if until.is_over() {
                // What was cut short says nothing.
                return Ok(());
            }
            let left: BTreeSet<(SiteId, SiteId)> = left.iter().map(|race| race.sites).collect();
            let seen = self.variables.entry(variable.clone()).or_default();
            for (id, pairs) in others {
                let known = if pairs.is_disjoint(&left) { &mut seen.ordered } else { &mut seen.unordered };
                known.insert(id.clone());
            }
        }
        Ok(())
    }

    /// The next recording to be looked at: a whole one, of a schedule that is known.
    fn next<S: Symbols + ?Sized>(&self, case: &Case<'_, '_, S>) -> Option<u32> {
        let all =
            (0..).zip(&case.run.recordings).skip(self.looked_at as usize).take_while(|(number, _)| *number < MOST_RECORDINGS);
        let mut known = all.filter(|(_, recorded)| recorded.kept.is_empty() && recorded.policy != Scheduling::Free.name());
        known.next().map(|(number, _)| number)
    }

    fn tell<S: Symbols + ?Sized>(&mut self, case: &Case<'_, '_, S>) -> Result<(), PipelineError> {
        let mut findings = proven_races(case)?;
        let subjects = subjects_of(&findings);
        for cause in causes(&self.variables, &subjects) {
            self.told += 1;
            let ordered = count(cause.orders.len() as u64, "other proven race");
            let first = findings.iter().find(|finding| finding.subject == cause.variable).map(|finding| finding.id.clone());
            for finding in &mut findings {
                let note = if finding.subject == cause.variable {
                    format!("synchronisation race: if its accesses were atomic, {ordered} of {} would be ordered", cause.of)
                } else if let Some(first) = first.as_ref().filter(|_| cause.orders.contains(&finding.id)) {
                    format!("apparent race: ordered if the accesses of {first} ({}) were atomic", cause.variable)
                } else {
                    continue;
                };
                finding.notes.push(note);
                case.job.store.write_finding(finding)?;
            }
        }
        Ok(())
    }
}

fn proven_races<S: Symbols + ?Sized>(case: &Case<'_, '_, S>) -> Result<Vec<Finding>, PipelineError> {
    let all = case.job.store.findings()?;
    Ok(all.into_iter().filter(|finding| finding.kind == FindingKind::DataRace && is_proven(finding)).collect())
}

fn subjects_of(findings: &[Finding]) -> BTreeMap<FindingId, String> {
    findings.iter().map(|finding| (finding.id.clone(), finding.subject.clone())).collect()
}

/// The findings that a pair of places stands for.
fn ids_of<S: Symbols + ?Sized>(composer: &Composer<'_, S>, race: &SitePair) -> BTreeSet<FindingId> {
    let candidate = |&(first, second)| Candidate {
        kind: CandidateKind::Race { first, second },
        evidence: Evidence::HappensBefore,
        occurrences: race.occurrences,
    };
    race.pairs.iter().map(|pair| composer.described(&candidate(pair)).id).collect()
}

impl<S: Symbols + ?Sized> Engine<S> for AdHoc {
    fn name(&self) -> &'static str {
        NAME
    }

    fn offer(&mut self, case: &Case<'_, '_, S>) -> Option<Offer> {
        (!self.is_over).then(|| Offer { takes: case.takes(1), gives: 0.0 })
    }

    /// One recording.
    fn step(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<Yield, PipelineError> {
        let subjects = subjects_of(&proven_races(case)?);
        match self.next(case) {
            Some(number) if subjects.len() > LEAST_ORDERED && !until.is_over() => {
                case.observer.progress(Progress::Working("looking for races that order others"));
                self.looked_at = number + 1;
                self.look(case, number, &subjects, until)?;
            }
            _ => {
                self.is_over = true;
                self.tell(case)?;
            }
        }
        Ok(Yield::default())
    }

    fn finish(&mut self, case: &mut Case<'_, '_, S>) -> Result<(), PipelineError> {
        if self.is_over { Ok(()) } else { self.tell(case) }
    }

    fn account(&self) -> Account {
        let tried =
            (self.told > 0).then(|| format!("{} named, the races on which order others", count(self.told as u64, "variable")));
        Account { tried, ..Account::default() }
    }
}

/// Behind all others, where a check records what it looks at.
pub(super) fn of_check<'a, S: Symbols + ?Sized>(asked: &mut Asked<'a>) -> Option<Registered<'a, S>> {
    if asked.stored || asked.budget.is_zero() {
        return None;
    }
    let share = Share::AtMost((asked.budget / PART).max(Duration::from_millis(1)));
    Some(Registered { engine: Box::new(AdHoc::default()), share, turn: Turn::Last })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &'static str) -> FindingId {
        FindingId::of(name, 0)
    }

    fn seen(ordered: &[&'static str], unordered: &[&'static str]) -> Variable {
        let ids = |names: &[&'static str]| names.iter().map(|name| id(name)).collect();
        Variable { ordered: ids(ordered), unordered: ids(unordered) }
    }

    /// Each race is on a variable of its own name.
    fn told(variables: Vec<(&'static str, Variable)>) -> Vec<(String, usize, usize)> {
        let subjects = variables.iter().map(|(name, _)| (id(name), (*name).to_owned())).collect();
        let variables = variables.into_iter().map(|(name, seen)| (name.to_owned(), seen)).collect();
        causes(&variables, &subjects).into_iter().map(|cause| (cause.variable, cause.orders.len(), cause.of)).collect()
    }

    #[test]
    fn what_orders_most_is_told_and_what_it_orders_is_no_cause() {
        let variables = vec![
            ("data", seen(&["length", "rest"], &["flag"])),
            ("flag", seen(&["data", "length", "rest"], &[])),
            ("length", seen(&[], &["data", "flag", "rest"])),
            ("rest", seen(&["data"], &["flag", "length"])),
        ];
        assert_eq!(told(variables), [("flag".to_owned(), 3, 3)]);
    }

    #[test]
    fn each_of_two_flags_is_told() {
        let variables =
            vec![("ready", seen(&["a", "b", "c"], &["done", "x", "y"])), ("done", seen(&["x", "y"], &["a", "b", "c", "ready"]))];
        assert_eq!(told(variables), [("ready".to_owned(), 3, 6), ("done".to_owned(), 2, 3)]);
    }

    #[test]
    fn one_race_or_few_of_many_may_be_chance() {
        assert_eq!(told(vec![("flag", seen(&["a"], &[]))]), []);
        assert_eq!(told(vec![("flag", seen(&["a", "b"], &["c", "d", "e", "f", "g", "h", "i"]))]), []);
        // What is ordered in one recording, and not in another one.
        assert_eq!(told(vec![("flag", seen(&["a", "b"], &["b"]))]), []);
    }
}
