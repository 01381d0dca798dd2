//! Leads are forced: everybody's own schedules first, of doubtful leads one each before any gets its second, and then the pursuit
//! of what they did not show.

use crate::check::leads::{Doubt, Hurry, Lead, is_proven, merge};
use crate::check::prove::Prover;
use crate::check::pursue::{Pursuits, Rounds, Tried};
use crate::engines::case::Case;
use crate::engines::engine::{Account, Engine, Expectation, Offer, Registered, Share, Turn, Yield};
use crate::engines::{Asked, portfolio};
use crate::error::PipelineError;
use crate::findings::alike::{self, Counts};
use crate::findings::symbols::Symbols;
use crate::progress::Progress;
use rashomon_confirm::Forcing;
use rashomon_confirm::force::header_of;
use rashomon_event::{Deadline, Verdict};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

pub const NAME: &str = "force";

/// Findings in a row whose schedules did not show them, before those are pursued in between.
const IN_VAIN: u32 = 4;

/// Executions that a lead takes, by and large, if all is tried: three schedules, or one and replays of what it showed.
const EXECUTIONS_OF_A_LEAD: u64 = 3;

/// Proofs that are expected of a lead before any was tried: see [`Doubt`]. A pursuit is worth as much as a doubtful lead.
const SURE: f64 = 0.5;
const CYCLE: f64 = 0.3;
const DOUBTFUL: f64 = 0.1;
const AGAIN: f64 = 0.05;
const OF_LIBRARY: f64 = 0.005;
const REFUTED: f64 = 0.002;

/// Refuted leads in a row whose schedules did not show them, after which the others are taken at the analysis' word.
const REFUTED_IN_VAIN: u32 = 32;

const REFUTED_WORDS: &str = "as in no order of the recording in which every read sees what it saw do the accesses meet \
    (--show everything lists them)";

/// Forces what can be forced. An execution that cannot be made ends it; what was decided before stands.
#[derive(Default)]
pub struct Force {
    phase: Phase,
    forcing: Option<Forcing>,
    /// Time for the last execution of all.
    whole: Duration,
    pursuits: Pursuits,
    /// Proven findings of each cause.
    proven: Counts,
    /// Of leads in a row.
    in_vain: u32,
    /// The same of refuted ones.
    refuted_in_vain: u32,
    /// Time that was spent on leads since something was pursued between them, and on that.
    on_leads: Duration,
    on_pursuit: Duration,
    executions: u64,
    /// Leads that were tried.
    forced: u64,
    expectations: Option<Expectations>,
}

/// What units have given, each kind on its own: that many doubtful leads were forced in vain says nothing about a sure one, and
/// one sure lead that was proven says nothing about doubtful ones.
struct Expectations {
    leads: [Expectation; Doubt::ALL.len()],
    pursuits: Expectation,
}

impl Expectations {
    /// `once`: a lead that is proven at once.
    fn new(once: Duration) -> Self {
        let of = |doubt| {
            Expectation::new(
                match doubt {
                    Doubt::Little => SURE,
                    Doubt::Cycle => CYCLE,
                    Doubt::Much => DOUBTFUL,
                    Doubt::Again => AGAIN,
                    Doubt::Library => OF_LIBRARY,
                    Doubt::Refuted => REFUTED,
                },
                once,
            )
        };
        Self { leads: Doubt::ALL.map(of), pursuits: Expectation::new(DOUBTFUL, once) }
    }

    fn of(&mut self, work: Work) -> &mut Expectation {
        match work {
            Work::Lead(doubt) => &mut self.leads[doubt as usize],
            Work::Pursuit => &mut self.pursuits,
        }
    }
}

/// The next unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Lead(Doubt),
    Pursuit,
}

#[derive(Default)]
enum Phase {
    /// The leads of the case are to be taken.
    #[default]
    Begin,
    Leads {
        leads: VecDeque<(usize, Lead)>,
        of: usize,
    },
    Pursuit(Rounds),
    Over,
}

/// What the work on one unit needs.
struct Unit<'u, 'c, 'j, S: ?Sized> {
    case: &'u mut Case<'c, 'j, S>,
    prover: Prover<'u, S>,
    proven: usize,
}

impl<S: Symbols + ?Sized> Unit<'_, '_, '_, S> {
    /// With so many leads that are still to be forced.
    fn hurry(&self, leads: u64) -> Hurry {
        let all = self.case.takes(leads.saturating_mul(EXECUTIONS_OF_A_LEAD));
        if self.prover.forcing.deadline.left().is_some_and(|left| left < all) { Hurry::Short } else { Hurry::Enough }
    }

    /// So that numbers are told that include the last execution.
    fn count(&mut self) -> u64 {
        let executions = std::mem::take(&mut self.prover.executions);
        self.case.tally.executions += executions;
        executions
    }
}

impl Force {
    /// Takes the leads of the case.
    fn begin<S: Symbols + ?Sized>(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<(), PipelineError> {
        let job = case.job;
        let mut leads = case.gathered.in_order();
        job.set_alike_aside(&mut leads, &mut case.tally, case.observer)?;
        // Who does a part of the work begins with it.
        let settings = job.settings;
        leads.sort_by_key(|lead| (settings.postponed.has(&lead.finding), !settings.shard.owns(&lead.finding.id)));
        // The last execution, which leaves the world whole, takes about as long as the first one did, and as the sleeps did that
        // passed there in virtual time.
        let whole = match (&job.program.before_each, case.run.recordings.first()) {
            (Some(_), Some(first)) => {
                let slept = header_of(&job.store.recording(0))?.map_or(0, |header| header.virtual_nanoseconds);
                (Duration::from_millis(first.milliseconds) + Duration::from_nanos(slept)).min(job.settings.budget.total / 4)
            }
            _ => Duration::ZERO,
        };
        self.whole = whole;
        self.forcing = Some(Forcing { deadline: until.less(whole), ..job.forcing(case.run) });
        self.phase = Phase::Leads { of: leads.len(), leads: leads.into_iter().enumerate().collect() };
        Ok(())
    }

    /// What is next, if anything. Surer leads that other engines have brought come before what is left.
    fn next<S: Symbols + ?Sized>(&mut self, case: &Case<'_, '_, S>) -> Option<Work> {
        let brought = case.gathered.leads.values().map(Lead::doubt).min();
        let mine = match &mut self.phase {
            // The end of all leads is a unit, too.
            Phase::Leads { leads, .. } => Some(leads.front().map_or(Work::Pursuit, |(_, lead)| Work::Lead(lead.doubt()))),
            Phase::Pursuit(_) => Some(Work::Pursuit),
            Phase::Begin | Phase::Over => None,
        };
        match (mine, brought) {
            (Some(Work::Lead(mine)), Some(brought)) if brought >= mine => Some(Work::Lead(mine)),
            (Some(Work::Pursuit), Some(Doubt::Much | Doubt::Again | Doubt::Library | Doubt::Refuted)) => Some(Work::Pursuit),
            (_, Some(brought)) => Some(Work::Lead(brought)),
            (mine, None) => mine.or(matches!(self.phase, Phase::Begin).then_some(Work::Pursuit)),
        }
    }

    /// Whether the leads of the case come before what is under way, which is put back to them.
    fn is_to_begin<S: Symbols + ?Sized>(&mut self, case: &mut Case<'_, '_, S>, next: Work) -> bool {
        let Work::Lead(doubt) = next else { return matches!(self.phase, Phase::Begin) };
        if let Phase::Leads { leads, .. } = &mut self.phase {
            if leads.front().is_some_and(|(_, lead)| lead.doubt() <= doubt) {
                return false;
            }
            for (_, lead) in std::mem::take(leads) {
                merge(&mut case.gathered.leads, lead);
            }
        }
        true
    }

    /// The next lead, and a pursuit between leads where schedules are left again and again.
    fn lead<S: Symbols + ?Sized>(&mut self, unit: &mut Unit<'_, '_, '_, S>) -> Result<(), PipelineError> {
        let Phase::Leads { leads, of } = &mut self.phase else { return Ok(()) };
        let of = *of;
        let Some((number, mut lead)) = leads.pop_front() else { return self.end_leads(unit) };
        let job = unit.case.job;
        if self.pursuits.has_shown(&lead.finding.id) {
            return Ok(());
        }
        if self.proven.of(lead.cause()) >= alike::PROVEN && !is_proven(&lead.finding) {
            return job.set_aside(&lead.finding.id, &mut unit.case.tally, unit.case.observer);
        }
        let refuted = lead.doubt() == Doubt::Refuted;
        if refuted && self.refuted_in_vain >= REFUTED_IN_VAIN {
            return Ok(());
        }
        if job.settings.budget.total.is_zero() || unit.prover.forcing.deadline.is_over() {
            return unit.case.leave_untried([&lead]);
        }
        unit.case.observer.progress(Progress::Forcing { id: &lead.finding.id, number, of });
        let before = lead.finding.clone();
        let hurry = unit.hurry(leads.len() as u64 + 1);
        let (waits, is_once) = (lead.waits(hurry), lead.is_forced_once());
        let begin = Instant::now();
        let confirmed = job.confirm_one(&mut unit.prover, &mut lead, &mut unit.case.gathered, (unit.case.run, hurry));
        self.on_leads += begin.elapsed();
        let executions = unit.count();
        self.executions += executions;
        // Of some no schedule is known. Others are shown by what was executed for one before them.
        self.forced += u64::from(!lead.begun && executions > 0 || is_proven(&lead.finding) && !is_proven(&before));
        let late = unit.prover.forcing.deadline.is_over() && !is_proven(&lead.finding) && !is_proven(&before);
        if late || confirmed.is_err() {
            // The end of the budget ended it, or it could not be tried: that says nothing about the finding.
            lead.finding = before;
            unit.case.leave_untried([&lead])?;
            return confirmed;
        }
        job.complete(&mut lead.finding);
        job.store.write_finding(&lead.finding)?;
        job.tell_numbers(unit.case.run, &unit.case.tally, unit.case.observer)?;
        unit.case.observer.progress(Progress::Decided(&lead.finding));
        if is_proven(&lead.finding) {
            unit.proven += usize::from(!is_proven(&before));
            self.in_vain = 0;
            self.refuted_in_vain = 0;
            self.proven.count(lead.cause());
            self.pursuits.is_shown(&lead.finding.id);
            return Ok(());
        }
        self.in_vain += 1;
        self.refuted_in_vain += u32::from(refuted);
        if waits {
            lead.begun = true;
            if let Phase::Leads { leads, .. } = &mut self.phase {
                leads.push_back((number, lead));
            }
        } else if !is_once {
            lead.pursue(unit.case.run, &mut self.pursuits);
        }
        // Where schedules are left again and again, the others' schedules may be, too: holding has its turns as well. It may take
        // long, where a schedule is left at once: it has half of the time.
        if self.in_vain >= IN_VAIN && self.on_leads >= self.on_pursuit {
            let begin = Instant::now();
            let tried = self.pursue(unit, (number, of))?;
            (self.on_leads, self.on_pursuit) = (Duration::ZERO, begin.elapsed());
            if let Tried::Shown(cause) = tried {
                self.proven.count(cause);
            }
        }
        Ok(())
    }

    /// Of what is proven often enough the rest is not pursued.
    fn end_leads<S: Symbols + ?Sized>(&mut self, unit: &mut Unit<'_, '_, '_, S>) -> Result<(), PipelineError> {
        let job = unit.case.job;
        let proven = &self.proven;
        for finding in self.pursuits.without(|cause| proven.of(cause) >= alike::PROVEN) {
            job.set_aside(&finding.id, &mut unit.case.tally, unit.case.observer)?;
        }
        job.tell_alike(&mut unit.case.tally, unit.case.observer)?;
        self.phase = Phase::Pursuit(Rounds::default());
        Ok(())
    }

    fn pursue<S: Symbols + ?Sized>(
        &mut self,
        unit: &mut Unit<'_, '_, '_, S>,
        turn: (usize, usize),
    ) -> Result<Tried, PipelineError> {
        let tried = unit.case.job.pursue_next(&mut self.pursuits, &mut unit.prover, turn, unit.case.observer);
        self.executions += unit.count();
        unit.proven += usize::from(matches!(tried, Ok(Tried::Shown(_))));
        tried
    }

    /// One try of what the schedules did not show.
    fn pursuit<S: Symbols + ?Sized>(&mut self, unit: &mut Unit<'_, '_, '_, S>) -> Result<(), PipelineError> {
        let Phase::Pursuit(rounds) = &mut self.phase else { return Ok(()) };
        let Some(turn) = rounds.next(&self.pursuits) else {
            self.phase = Phase::Over;
            return Ok(());
        };
        match self.pursue(unit, turn)? {
            Tried::Nothing => self.phase = Phase::Over,
            Tried::InVain => {}
            Tried::Shown(_) => {
                if let Phase::Pursuit(rounds) = &mut self.phase {
                    rounds.was_fruitful();
                }
            }
        }
        Ok(())
    }
}

impl<S: Symbols + ?Sized> Engine<S> for Force {
    fn name(&self) -> &'static str {
        NAME
    }

    fn offer(&mut self, case: &Case<'_, '_, S>) -> Option<Offer> {
        let next = self.next(case)?;
        let once = case.takes(1 + u64::from(case.job.settings.times));
        Some(self.expectations.get_or_insert_with(|| Expectations::new(once)).of(next).offer())
    }

    /// One lead by its schedules, a doubtful one by the first or by the others, or one try of what these did not show.
    fn step(&mut self, case: &mut Case<'_, '_, S>, until: Deadline) -> Result<Yield, PipelineError> {
        let Some(mut next) = self.next(case) else { return Ok(Yield::default()) };
        if self.is_to_begin(case, next) {
            self.begin(case, until)?;
            next = self.next(case).unwrap_or(next);
        }
        let Some(forcing) = self.forcing.clone() else { return Ok(Yield::default()) };
        let forcing = Forcing { deadline: until.less(self.whole), ..forcing };
        let before = self.executions;
        let job = case.job;
        let scratch = job.store.scratch(NAME);
        let prover = Prover { program: job.program, forcing, symbols: job.symbols, scratch: &scratch, executions: 0 };
        let mut unit = Unit { case, prover, proven: 0 };
        let done = match self.phase {
            Phase::Leads { .. } => self.lead(&mut unit),
            _ => self.pursuit(&mut unit),
        };
        let made = Yield { proven: unit.proven, ..Yield::default() };
        if let Some(expectations) = &mut self.expectations {
            expectations.of(next).learn(made, case.takes(self.executions - before));
        }
        done.map(|()| made)
    }

    fn finish(&mut self, case: &mut Case<'_, '_, S>) -> Result<(), PipelineError> {
        let believed = self.refuted_in_vain >= REFUTED_IN_VAIN;
        let counts = |lead: &&Lead| !(believed && lead.doubt() == Doubt::Refuted);
        if let Phase::Leads { leads, .. } = &mut self.phase {
            case.leave_untried(leads.iter().map(|(_, lead)| lead).filter(counts))?;
        }
        let brought = std::mem::take(&mut case.gathered.leads);
        case.leave_untried(brought.values().filter(counts))?;
        case.gathered.leads = brought;
        let findings = case.job.store.findings()?;
        let refuted = findings.iter().filter(|finding| finding.verdict == Verdict::Refuted).count() as u64;
        if refuted > 0 {
            case.tell(format!("refuted: {}, {REFUTED_WORDS}", portfolio::count(refuted, "suspicion")));
        }
        case.leave_whole();
        case.job.store.clear_scratch(NAME)
    }

    fn account(&self) -> Account {
        let tried = (self.forced > 0).then(|| {
            let executions = portfolio::count(self.executions, "execution");
            format!("{} forced in {executions}", portfolio::count(self.forced, "finding"))
        });
        Account { tried, left: None, ..Account::default() }
    }
}

/// What predictions are for.
pub(super) fn of_check<'a, S: Symbols + ?Sized>(_: &mut Asked<'a>) -> Option<Registered<'a, S>> {
    Some(Registered { engine: Box::new(Force::default()), share: Share::Whole, turn: Turn::ByOffer })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONCE: Duration = Duration::from_millis(10);

    #[test]
    fn doubtful_leads_in_vain_say_nothing_of_sure_ones() {
        let mut expectations = Expectations::new(ONCE);
        let worth = |all: &mut Expectations, doubt| all.of(Work::Lead(doubt)).offer().per_second();
        let before = Doubt::ALL.map(|doubt| worth(&mut expectations, doubt));
        assert!(before.is_sorted_by(|one, next| one > next), "{before:?}");
        for _ in 0..10 {
            expectations.of(Work::Lead(Doubt::Much)).learn(Yield::default(), ONCE * 10);
        }
        let after = Doubt::ALL.map(|doubt| worth(&mut expectations, doubt));
        assert_eq!(after[..2], before[..2]);
        assert!(after[2] * 10.0 < before[2], "{after:?}");
        assert_eq!(after[3], before[3]);
    }

    #[test]
    fn a_proof_of_a_sure_lead_says_nothing_of_doubtful_ones() {
        let mut expectations = Expectations::new(ONCE);
        let pursuit = expectations.of(Work::Pursuit).offer();
        let doubtful = expectations.of(Work::Lead(Doubt::Much)).offer();
        expectations.of(Work::Lead(Doubt::Little)).learn(Yield { proven: 1, ..Yield::default() }, ONCE);
        assert_eq!(expectations.of(Work::Pursuit).offer(), pursuit);
        assert_eq!(expectations.of(Work::Lead(Doubt::Much)).offer(), doubtful);
    }
}
