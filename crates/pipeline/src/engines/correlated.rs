//! Races on correlated variables, by the dependences that the compiler's plugin tells (`docs/theory-correlated.md`).
//!
//! Of a program that was built with `rashomon cc --deep` executions are recorded with all their accesses and the ways that
//! control went; each is judged. Which variables belong together, and which operations are one, is a hypothesis: what is
//! found are suspicions. Such a recording is larger than others, and is not kept.

use crate::check::prove::load_until;
use crate::engines::Asked;
use crate::engines::case::Case;
use crate::engines::engine::{Account, Engine, Offer, Registered, Share, Turn, Yield};
use crate::engines::portfolio::count;
use crate::error::PipelineError;
use crate::findings::compose::Composer;
use crate::findings::symbols::Symbols;
use crate::progress::Progress;
use crate::record::{RecordSettings, Scheduling, UnseenCalls, record};
use object::Object as _;
use rashomon_abi::deep;
use rashomon_confirm::{Input, Output};
use rashomon_event::{Deadline, FindingId};
use rashomon_flow::judge;
use rashomon_trace::Policy;
use rashomon_units::Options;
use std::collections::BTreeSet;
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
const LEAST_LIMIT: Duration = Duration::from_secs(1);

pub struct Correlated {
    /// `None`: nobody has looked yet whether the program has tables.
    fits: Option<bool>,
    made: u64,
    judged: u64,
    placed: u64,
    /// Records that fit no table.
    misfits: u64,
    sets: usize,
    known: BTreeSet<FindingId>,
}

/// Whether the program itself has tables of dependences. Libraries that alone have some are not looked into.
fn has_tables(executable: &std::path::Path) -> bool {
    let found = rashomon_symbolize::with_object(executable, |object| Ok(object.section_by_name(deep::DEPENDENCES).is_some()));
    found.unwrap_or(false)
}

impl Correlated {
    const fn new() -> Self {
        Self { fits: None, made: 0, judged: 0, placed: 0, misfits: 0, sets: 0, known: BTreeSet::new() }
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

impl<S: Symbols + ?Sized> Engine<S> for Correlated {
    fn name(&self) -> &'static str {
        NAME
    }

    fn offer(&mut self, case: &Case<'_, '_, S>) -> Option<Offer> {
        let program = case.job.program;
        if !*self.fits.get_or_insert_with(|| program.client.is_none() && has_tables(&program.executable)) {
            return None;
        }
        (self.made < EXECUTIONS).then(|| Offer { takes: case.takes(COST), gives: WORTH })
    }

    fn step(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<Yield, PipelineError> {
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
        let Some(judged) = judge(&loaded, &Options::default(), until) else { return Ok(Yield::default()) };
        self.judged += 1;
        self.placed += judged.walked.placed;
        self.misfits += judged.walked.misfits;
        self.sets = self.sets.max(judged.sets.len());
        let composer = Composer::new(&loaded, job.symbols, settings.quantum);
        let mut leads = 0;
        for race in &judged.races {
            let mut finding = composer.of_extended_race(race);
            if !self.known.insert(finding.id.clone()) {
                continue;
            }
            leads += 1;
            job.complete(&mut finding);
            job.store.write_finding(&finding)?;
            case.observer.progress(Progress::Decided(&finding));
        }
        Ok(Yield { leads, ..Yield::default() })
    }

    fn finish(&mut self, case: &mut Case<'_, '_, S>) -> Result<(), PipelineError> {
        case.job.store.clear_scratch(NAME)
    }

    fn account(&self) -> Account {
        let tried = (self.judged > 0).then(|| {
            let (executions, sets) = (count(self.judged, "execution"), count(self.sets as u64, "correlated set"));
            let misfits = match self.misfits {
                0 => String::new(),
                some => format!(" ({some} ways of control fit no table)"),
            };
            format!("dependences of {executions}: {} accesses, {sets}{misfits}", self.placed)
        });
        Account { tried, ..Account::default() }
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
