//! Races on correlated variables, by the dependences that the compiler's plugin tells (`docs/theory-correlated.md`).
//!
//! Of a program that was built with `rashomon cc --deep` executions are recorded with all their accesses and the ways that
//! control went; each is judged. Which variables belong together, and which operations are one, is a hypothesis: what is
//! found are suspicions. Such a recording is larger than others, and is not kept.
//!
//! A suspicion is a lead: orders of the recording in which one operation comes into the other, unserialisably, are executed
//! beside the serial ones ([`super::interleave`]). What ends or prints otherwise is proven `violated`; as dependences make the
//! operation one, other output is enough. What cannot be ordered so, or shows no difference, stays a suspicion.

use crate::check::prove::load_until;
use crate::engines::Asked;
use crate::engines::case::Case;
use crate::engines::engine::{Account, Engine, Expectation, Offer, Registered, Share, Turn, Yield};
use crate::engines::interleave::{self, Decided, Lead, Proven, SEEDS, variables};
use crate::engines::portfolio::count;
use crate::error::PipelineError;
use crate::findings::atomicity::Sources;
use crate::findings::compose::Composer;
use crate::findings::correlated::Unjudged;
use crate::findings::declared::{Declared, declared_of, not_accessed, of_program};
use crate::findings::symbols::Symbols;
use crate::progress::Progress;
use crate::record::{RecordSettings, Scheduling, UnseenCalls, record};
use object::Object as _;
use rashomon_abi::deep;
use rashomon_confirm::schedule::Planner;
use rashomon_confirm::{Input, Output};
use rashomon_event::{Deadline, EventIndex, Finding, FindingId, Grade, Schedule, ThreadId, Trial};
use rashomon_flow::judge;
use rashomon_predict::atomicity::{Extended, of_correlated};
use rashomon_trace::{LoadedTrace, Policy};
use rashomon_units::{ExtendedRace, Options, Side};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

pub const NAME: &str = "correlated";

/// Of what is left behind the first recording, this engine may take one part in so many.
const PART: u32 = 5;
/// Executions that are judged: the policy of the first recording, then random ones.
const EXECUTIONS: u64 = 3;
/// What one of them takes, in executions of the program: it records every access.
const COST: u64 = 10;
const WORTH: f64 = 0.2;
/// How much longer than the first recording one may take.
const SLOWDOWN: u32 = 20;
/// Leads that are executed.
const MOST_TRIED: usize = 32;
const LEAST_LIMIT: Duration = Duration::from_secs(1);

pub struct Correlated {
    /// `None`: nobody has looked yet whether the program has tables.
    fits: Option<bool>,
    made: u64,
    judged: u64,
    placed: u64,
    /// Accesses of code without tables.
    outside: u64,
    /// Records that fit no table.
    misfits: u64,
    /// What no table was known of.
    unjudged: Unjudged,
    sets: usize,
    /// What is told of each set, by the names of its members.
    known: BTreeMap<String, Finding>,
    /// Interleavings that were met, by the places of their accesses.
    met: BTreeSet<(FindingId, Sources)>,
    /// What is proven, or is the same as something that is.
    decided: BTreeSet<FindingId>,
    /// Sets of the user and of the source; `None`: nobody has looked yet.
    declared: Option<Vec<Declared>>,
    /// Names in them of which no execution had a variable; `None`: none was looked at.
    missing: Option<BTreeSet<String>>,
    /// Interleavings that were not tried, by their suspicion.
    open: VecDeque<Lead>,
    tried: usize,
    executions: u64,
    expectation: Option<Expectation>,
}

/// Whether the program itself has tables of dependences. Libraries that alone have some are not looked into.
pub(super) fn has_tables(executable: &std::path::Path) -> bool {
    let found = rashomon_symbolize::with_object(executable, |object| Ok(object.section_by_name(deep::DEPENDENCES).is_some()));
    found.unwrap_or(false)
}

impl Correlated {
    fn new() -> Self {
        Self {
            fits: None,
            made: 0,
            judged: 0,
            placed: 0,
            outside: 0,
            misfits: 0,
            unjudged: Unjudged::default(),
            sets: 0,
            known: BTreeMap::new(),
            met: BTreeSet::new(),
            decided: BTreeSet::new(),
            declared: None,
            missing: None,
            open: VecDeque::new(),
            tried: 0,
            executions: 0,
            expectation: None,
        }
    }

    /// Whether the next unit decides a lead.
    fn is_to_try(&self) -> bool {
        !self.open.is_empty() && self.tried < MOST_TRIED
    }

    fn decide<S: Symbols + ?Sized>(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<Yield, PipelineError> {
        let job = case.job;
        let Some(lead) = self.open.pop_front() else { return Ok(Yield::default()) };
        self.tried += 1;
        case.observer
            .progress(Progress::Working(&format!("interleaving operations on correlated variables: pair {}", self.tried)));
        let (decided, executions) = interleave::decide(case, &lead, NAME, until)?;
        self.executions += executions;
        let id = lead.finding.id.clone();
        let mut proven = 0;
        match decided {
            Decided::Nothing => {}
            // The same cause: what is told of it says why, and nothing else is.
            Decided::Known(known) => {
                if let Some(mut told) = job.store.findings()?.into_iter().find(|finding| finding.id == known && finding.id != id)
                {
                    told.notes.extend(lead.finding.notes);
                    job.store.write_finding(&told)?;
                    job.store.remove_finding(&id)?;
                }
                self.open.retain(|other| other.finding.id != id);
                self.decided.insert(id.clone());
            }
            Decided::Shown(outcome) => {
                let mut finding = lead.finding;
                (finding.sides, finding.forced) = (outcome.finding.sides, outcome.finding.forced);
                finding.schedule = Some(outcome.schedule);
                finding.notes.splice(0..0, outcome.notes);
                finding.advance(Trial::Shown { grade: Grade::Violated, replays: outcome.replays });
                job.complete(&mut finding);
                job.store.write_finding(&finding)?;
                case.observer.progress(Progress::Decided(&finding));
                case.violations.push(Proven {
                    id: id.clone(),
                    variables: variables(&finding),
                    sources: lead.sources,
                    ended: outcome.ended,
                });
                self.open.retain(|other| other.finding.id != id);
                self.decided.insert(id.clone());
                proven = 1;
            }
        }
        let made = Yield { proven, ..Yield::default() };
        let took = case.takes(executions);
        if let Some(expectation) = &mut self.expectation {
            expectation.learn(made, took);
        }
        Ok(made)
    }

    fn settings<S: Symbols + ?Sized>(&self, case: &Case<'_, '_, S>, until: Deadline) -> RecordSettings {
        let mut settings = case.job.settings.record.clone();
        let first = case.run.recordings.first().map_or(0, |first| first.milliseconds);
        let limit = (Duration::from_millis(first) * SLOWDOWN).max(LEAST_LIMIT);
        settings.limit = Some(settings.limit.map_or(limit, |given| given.min(limit)));
        settings.until = until;
        settings.dependences = true;
        settings.unseen_calls = UnseenCalls::Unrecorded;
        settings.output = Output::Discard;
        if settings.input == Input::Inherit {
            settings.input = Input::Empty;
        }
        if self.made > 0 || settings.scheduling == Scheduling::Free {
            settings.scheduling = Scheduling::Serial(Policy::Random);
            settings.seed = settings.seed.wrapping_add(self.made + 1);
        }
        settings
    }
}

/// Interleavings of each race, with the schedules that decide it: those of the first ones of each race come first.
fn leads_of<S: Symbols + ?Sized>(
    composer: &Composer<'_, S>,
    loaded: &LoadedTrace,
    news: &[(Finding, &ExtendedRace)],
    quantum: u64,
    until: Deadline,
) -> Vec<Lead> {
    let event = |position: u64| EventIndex(u32::try_from(position).unwrap_or(u32::MAX));
    let (known, pairs): (Vec<&Finding>, Vec<Extended>) = news
        .iter()
        .filter_map(|(finding, race)| {
            let [one, other] = &race.sides;
            let unit = |side: &Side| Some((ThreadId(side.thread.0), event(side.extent?.0), event(side.extent?.1)));
            let members = race.members.iter().map(|range| (range.start, range.end())).collect();
            Some((finding, Extended { members, units: [unit(one)?, unit(other)?] }))
        })
        .unzip();
    let options = rashomon_predict::Options { deadline: until, ..Default::default() };
    let planner = Planner::new(&loaded.trace, quantum);
    let schedules = |orders: &[Vec<EventIndex>]| -> Vec<Schedule> {
        orders.iter().filter_map(|order| Some(planner.of_order(order).ok()?.schedule)).collect()
    };
    let mut counts = vec![0; pairs.len()];
    let mut leads = Vec::new();
    for (number, prediction) in of_correlated(&loaded.trace, &options, &pairs) {
        // Each schedule is as long as the recording.
        if until.is_over() {
            break;
        }
        let (mut violated, mut serial) = (schedules(&prediction.violated), schedules(&prediction.serial));
        // If it does not happen in the recording, that is one of the others.
        let recording = if prediction.violated.is_empty() { &mut violated } else { &mut serial };
        recording.push(loaded.replay_schedule(quantum));
        let Some(mut finding) = composer.of_violation(&prediction.violation).filter(|_| !violated.is_empty()) else { continue };
        let suspicion = known[number];
        (finding.id, finding.subject) = (suspicion.id.clone(), suspicion.subject.clone());
        finding.notes.clone_from(&suspicion.notes);
        let (pattern, sources) = (prediction.violation.pattern, composer.sources_of_violation(&prediction.violation));
        counts[number] += 1;
        leads.push((counts[number], Lead { pattern, finding, sources, violated, serial, blames: None }));
    }
    leads.sort_by_key(|(count, _)| *count);
    leads.into_iter().map(|(_, lead)| lead).collect()
}

impl<S: Symbols + ?Sized> Engine<S> for Correlated {
    fn name(&self) -> &'static str {
        NAME
    }

    fn offer(&mut self, case: &Case<'_, '_, S>) -> Option<Offer> {
        let program = case.job.program;
        if !*self.fits.get_or_insert_with(|| program.client.is_none() && has_tables(&program.executable)) {
            // A unit in which nothing is done: what is declared in vain is told behind it.
            let is_told = self.made > 0 || case.job.settings.correlated.sets.is_empty();
            return (!is_told).then(|| Offer { takes: case.takes(1), gives: WORTH });
        }
        if self.is_to_try() {
            let takes = case.takes(4 * SEEDS + u64::from(case.job.settings.times));
            return Some(self.expectation.get_or_insert(Expectation::new(WORTH, takes)).offer());
        }
        (self.made < EXECUTIONS).then(|| Offer { takes: case.takes(COST), gives: WORTH })
    }

    /// Judges one execution, or decides one lead.
    fn step(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<Yield, PipelineError> {
        if self.is_to_try() {
            return self.decide(case, until);
        }
        if self.fits != Some(true) {
            self.made += 1;
            return Ok(Yield::default());
        }
        let job = case.job;
        let session = job.store.scratch(NAME).join("session");
        let settings = self.settings(case, until);
        self.made += 1;
        case.tally.executions += 1;
        if let Err(error) = record(job.program, &session, &settings) {
            if !until.is_over() {
                case.tally.note(format!("an execution for dependences could not be recorded: {error}"), case.observer);
            }
            return Ok(Yield::default());
        }
        let Ok(loaded) = load_until(&session, until) else { return Ok(Yield::default()) };
        let composer = Composer::new(&loaded, job.symbols, settings.quantum);
        let declared = self.declared.get_or_insert_with(|| {
            let given = job.settings.correlated.sets.iter().cloned();
            given.chain(of_program(&job.program.executable)).collect()
        });
        let (ranges, missing) = composer.declared(declared, until);
        self.missing = Some(self.missing.take().map_or_else(|| missing.clone(), |known| &known & &missing));
        let Some(judged) = judge(&loaded, &Options::default(), &ranges, until) else { return Ok(Yield::default()) };
        self.judged += 1;
        self.placed += judged.walked.placed;
        self.outside += judged.walked.outside;
        self.misfits += judged.walked.misfits;
        self.sets = self.sets.max(judged.sets.len());
        composer.unjudged(&judged, &mut self.unjudged);
        let mut news = Vec::new();
        for race in &judged.races {
            let mut finding = composer.of_extended_race(race);
            if let Some(told) = self.known.get(&finding.subject) {
                news.push((told.clone(), race));
                continue;
            }
            finding.notes.extend(declared_of(race, declared, &ranges));
            job.complete(&mut finding);
            job.store.write_finding(&finding)?;
            case.observer.progress(Progress::Decided(&finding));
            self.known.insert(finding.subject.clone(), finding.clone());
            news.push((finding, race));
        }
        let mut leads = leads_of(&composer, &loaded, &news, settings.quantum, until);
        leads.retain(|lead| !self.decided.contains(&lead.finding.id));
        leads.retain(|lead| self.met.insert((lead.finding.id.clone(), lead.sources.clone())));
        let made = Yield { leads: leads.len(), ..Yield::default() };
        self.open.extend(leads);
        Ok(made)
    }

    /// What was declared and could not be judged is said.
    fn finish(&mut self, case: &mut Case<'_, '_, S>) -> Result<(), PipelineError> {
        let given = &case.job.settings.correlated;
        let mut notes = given.complaints.clone();
        if !given.sets.is_empty() && self.fits != Some(true) {
            notes.push(
                "declared sets of variables are not judged: the program was not built with `rashomon cc --deep`".to_owned(),
            );
        }
        notes.extend(self.missing.as_ref().and_then(not_accessed));
        notes.extend(self.unjudged.notes());
        notes.into_iter().for_each(|note| case.tally.note(note, case.observer));
        case.job.store.clear_scratch(NAME)
    }

    fn account(&self) -> Account {
        let tried = (self.judged > 0).then(|| {
            let (executions, sets) = (count(self.judged, "execution"), count(self.sets as u64, "correlated set"));
            let misfits = match self.misfits {
                0 => String::new(),
                some => format!(" ({some} ways of control fit no table)"),
            };
            let outside = match self.outside {
                0 => String::new(),
                some => format!(" and {some} of code without tables"),
            };
            let interleaved = match self.tried {
                0 => String::new(),
                some => format!("; {} interleaved in {}", count(some as u64, "pair"), count(self.executions, "execution")),
            };
            format!("dependences of {executions}: {} accesses{outside}, {sets}{misfits}{interleaved}", self.placed)
        });
        let open = self.open.len() as u64;
        let left = (open > 0).then(|| format!("{} of operations on correlated variables not interleaved", count(open, "pair")));
        Account { tried, left, pairs: open }
    }
}

/// Where there is a program to execute.
pub(super) fn of_check<'a, S: Symbols + ?Sized>(asked: &mut Asked<'a>) -> Option<Registered<'a, S>> {
    if asked.stored || asked.budget.is_zero() {
        return None;
    }
    let share = Share::AtMost((asked.budget / PART).max(Duration::from_millis(1)));
    Some(Registered { engine: Box::new(Correlated::new()), share, turn: Turn::ByOffer })
}
