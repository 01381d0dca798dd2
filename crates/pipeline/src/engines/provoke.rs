//! Provocation ([`crate::provoke`]): the targets of one recording after the other, until each is decided.

use crate::check::leads::{is_proven, proven_otherwise, proven_races, race_places};
use crate::engines::Asked;
use crate::engines::case::Case;
use crate::engines::engine::{Account, Engine, Expectation, Offer, Registered, Share, Turn, Yield};
use crate::engines::portfolio::count;
use crate::error::PipelineError;
use crate::findings::symbols::Symbols;
pub use crate::provoke::NAME;
use crate::provoke::{Campaign, Known, ProvokeSettings, ProvokeTally, varied_after};
use rashomon_abi::numbers::SplitMix;
use rashomon_event::{Deadline, Finding, Verdict};
use rashomon_report::ProgramExit;
use rashomon_trace::{LoadedTrace, Recording, TraceError};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Provokes the targets of the first recording; then, if that is wanted, those of further ones, until the budget is spent.
pub struct Provoke {
    settings: ProvokeSettings,
    /// Campaigns so far.
    campaigns: u32,
    /// Recorded last, beside what the store has.
    monitored: Option<PathBuf>,
    is_over: bool,
    /// What came of it.
    pub told: ProvokeTally,
    known: Known,
    draw: SplitMix,
    /// Recordings in a row without a new pair.
    fruitless: u32,
    /// Until when executions are varied, and recordings made. It counts from the first campaign's end.
    goes_on: Deadline,
    expectation: Expectation,
    /// As a part of a check, what it may take.
    check: Option<Duration>,
}

/// Of what is left behind the first recording, provocation may take one part in so many in a check.
const PART: u32 = 6;
/// Executions with threads that are held take so many times as long as others.
const HELD: u64 = 20;

impl Provoke {
    pub fn new(settings: ProvokeSettings) -> Self {
        Self {
            settings,
            campaigns: 0,
            monitored: None,
            is_over: false,
            told: ProvokeTally::default(),
            known: Known::default(),
            draw: SplitMix(0),
            fruitless: 0,
            goes_on: Deadline::NEVER,
            expectation: Expectation::new(0.5, Duration::from_secs(1)),
            check: None,
        }
    }

    /// Whether a check has left a race for it: forcing decides most of them, and says more of them. Of code without
    /// instrumentation, and of semaphores, which may be locks or hand something over, prediction keeps the recorded order: what
    /// that hides is found by trying. What is refuted is left to forcing.
    fn has_work<S: Symbols + ?Sized>(case: &Case<'_, '_, S>) -> bool {
        let ended = case.run.recordings.first().is_some_and(|first| first.exit != ProgramExit::TimedOut);
        if !ended || case.tally.keeps_to_recorded {
            return ended;
        }
        let Ok(all) = case.job.store.findings() else { return false };
        let proven = proven_races(&all);
        let is_open = |finding: &&Finding| !is_proven(finding) && finding.verdict != Verdict::Refuted;
        let open = all.iter().filter(is_open).filter(|finding| !finding.is_of_library());
        open.filter_map(race_places).any(|places| !proven.contains(&places))
    }

    /// The recording whose targets are next. The first one has to be sound. Of the others what is not is of no use, and does no
    /// harm. `None`: no time was left to read it.
    fn load<S: Symbols + ?Sized>(
        &mut self,
        case: &mut Case<'_, '_, S>,
        until: Deadline,
    ) -> Result<Option<(PathBuf, LoadedTrace)>, PipelineError> {
        let first = case.job.store.recording(0);
        if self.campaigns == 0 {
            return Ok(case.job.load_for_search(0, until, case.observer)?.map(|loaded| (first, loaded)));
        }
        let session = self.monitored.clone().unwrap_or_else(|| first.clone());
        match Recording::open(&session).and_then(|recording| recording.load_until(until)) {
            Ok(loaded) => Ok(Some((session, loaded))),
            Err(TraceError::OutOfTime { .. }) => Ok(None),
            Err(_) => {
                self.monitored = None;
                Ok(Some((first.clone(), crate::check::prove::load(&first)?)))
            }
        }
    }
}

impl<S: Symbols + ?Sized> Engine<S> for Provoke {
    fn name(&self) -> &'static str {
        NAME
    }

    fn offer(&mut self, case: &Case<'_, '_, S>) -> Option<Offer> {
        if let (Some(share), 0) = (self.check, self.campaigns) {
            // Once the leads have been forced, or a few of them in vain where executions are long: before that its offer is the
            // smaller one.
            self.expectation = Expectation::new(0.5, case.takes(self.settings.executions * HELD).min(share));
        }
        (!self.is_over).then(|| self.expectation.offer())
    }

    /// The targets of one recording.
    fn step(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<Yield, PipelineError> {
        if self.check.is_some() && !Self::has_work(case) {
            self.is_over = true;
            return Ok(Yield::default());
        }
        if self.campaigns == 0 {
            self.draw = SplitMix(case.job.settings.shard.seeds());
        }
        let begin = Instant::now();
        let (proven, executions) = (self.known.findings.len(), self.told.executions);
        let Some((session, loaded)) = self.load(case, until)? else {
            self.is_over = true;
            return Ok(Yield::default());
        };
        self.campaigns += 1;
        let mut known = std::mem::take(&mut self.known);
        if self.check.is_some() {
            known.by_others = proven_races(&case.job.store.findings()?);
            // It goes on where it was: what was open is counted once.
            self.told.targets = self.told.targets.saturating_sub(std::mem::take(&mut self.told.open));
        }
        let with = (case.job, &*case.run, &self.settings);
        let mut campaign = Campaign::new(with, (&session, &loaded), until, known, executions)?;
        self.fruitless = if campaign.has_targets() { 0 } else { self.fruitless + 1 };
        campaign.decide_targets(case.observer)?;
        if self.campaigns == 1 {
            let look = Deadline::within(self.settings.second_look);
            self.goes_on = if self.settings.whole_budget { until } else { until.or(look) };
        }
        campaign.look_again(self.goes_on);
        if !campaign.looked_again() {
            campaign.vary(varied_after(self.fruitless), &mut self.draw, case.observer)?;
            campaign.repeat_proven(case.observer)?;
        }
        self.is_over = match self.check {
            Some(_) => !campaign.has_more(),
            None => campaign.is_spent() || campaign.looked_again(),
        };
        self.known = campaign.finish(&mut self.told);
        if !self.is_over
            && self.check.is_none()
            && let Some(recorded) = case.job.monitor_again(self.campaigns, self.goes_on.limit(Duration::MAX))
        {
            self.told.recordings += 1;
            self.monitored = Some(recorded);
        }
        case.tally.executions += self.told.executions - executions;
        let made = Yield { proven: self.known.findings.len() - proven, ..Yield::default() };
        self.expectation.learn(made, begin.elapsed());
        Ok(made)
    }

    fn finish(&mut self, case: &mut Case<'_, '_, S>) -> Result<(), PipelineError> {
        if self.check.is_some() {
            for id in proven_otherwise(&case.job.store.findings()?) {
                case.job.store.remove_finding(&id)?;
            }
        }
        case.job.store.clear_scratch(NAME)
    }

    fn account(&self) -> Account {
        let tried = (self.check.is_some() && self.told.executions > 0).then(|| {
            let executions = count(self.told.executions, "execution");
            format!("{} provoked in {executions}", count(self.told.targets, "racing pair"))
        });
        let open = self.check.is_some() && self.told.open > 0;
        let open = open.then(|| format!("{} that provocation did not show", count(self.told.open, "racing pair")));
        let is_untried = self.check.is_some() && self.campaigns == 0 && !self.is_over;
        let not_begun = is_untried.then(|| "provoking races: no time was left".to_owned());
        let open = open.or(not_begun);
        Account { tried, left: open, ..Account::default() }
    }
}

/// For races that forcing left open.
pub(super) fn of_check<'a, S: Symbols + ?Sized>(asked: &mut Asked<'a>) -> Option<Registered<'a, S>> {
    if asked.stored || asked.budget.is_zero() {
        return None;
    }
    let share = asked.budget / PART;
    let engine = Provoke { check: Some(share), ..Provoke::new(ProvokeSettings::of_check(asked.jobs)) };
    Some(Registered { engine: Box::new(engine), share: Share::AtMost(share), turn: Turn::ByOffer })
}
