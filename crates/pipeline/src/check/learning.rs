//! What a schedule that an execution left teaches of calls into unseen code.
//!
//! A suspicion is forced as if calls ordered nothing, and leaves its schedule where one of them waits for what the schedule has
//! left out: a lock that is held, a value that nobody has put. A prediction keeps what calls may have ordered, and leaves its
//! schedule where one reaches more than was seen. Both times the call at which a thread stands has to come behind some call of
//! another thread, as it did in the recording: which one is tried, the latest first. The deciders are asked again with that
//! pair of calls in its recorded order, and what they propose is forced. An execution that gets further, to another call, keeps
//! what was learned and goes on from there.
//!
//! So a race that only some of the calls order is proven by a schedule that keeps those. Bounded: [`MOST_TRIES`] executions of
//! one finding, and traces of [`MOST_EVENTS`].

use crate::analyse::analyse;
use crate::analyse::gaps::heeded;
use crate::check::Job;
use crate::check::leads::Lead;
use crate::check::prove::{Prover, load};
use crate::error::PipelineError;
use crate::findings::compose::Composer;
use crate::findings::symbols::Symbols;
use rashomon_confirm::force::folder_of;
use rashomon_event::{Address, EventIndex, FindingKind, Gap, Schedule, Trace};
use rashomon_trace::{LoadedTrace, process_folder};
use std::path::Path;

const MOST_TRIES: usize = 4;
const MOST_EVENTS: usize = 1 << 16;
/// Candidates of one decision that are compared with the finding.
const MOST_CANDIDATES: usize = 256;

/// A call, by its place in [`Trace::gaps`].
type Call = usize;

/// Orders between calls: the second one comes behind the first, as it was recorded.
type Orders = Vec<(Call, Call)>;

impl<S: Symbols + ?Sized> Job<'_, S> {
    /// After the finding's schedules were left. `session`: of the last execution. `true`: it is proven.
    pub(crate) fn learn(&self, prover: &mut Prover<'_, S>, lead: &mut Lead, session: &Path) -> Result<bool, PipelineError> {
        let Some(mut schedule) = lead.finding.schedule.clone().filter(|_| lead.finding.kind == FindingKind::DataRace) else {
            return Ok(false);
        };
        if !schedule.unseen_calls {
            return Ok(false);
        }
        let mut loaded = load(&process_folder(&self.store.recording(lead.from.recording), &lead.from.process))?;
        if loaded.trace.gaps.is_empty() || loaded.trace.events.len() > MOST_EVENTS {
            return Ok(false);
        }
        let model = Model::of(&loaded, self.symbols.trusted(), !lead.finding.unseen.is_empty());
        let (mut learned, mut tried) = (Orders::new(), vec![schedule.clone()]);
        let Some(mut at) = stands_in(&loaded.trace, &schedule, session) else { return Ok(false) };
        let mut open = model.behind(&loaded.trace, at);
        while let Some(order) = open.pop().filter(|_| tried.len() <= MOST_TRIES && !prover.forcing.deadline.is_over()) {
            let orders = [&learned[..], &[order]].concat();
            loaded.trace.kept = model.kept(&loaded.trace, &orders);
            let Some(next) = self.decide(prover, lead, &loaded).filter(|next| !tried.contains(next)) else { continue };
            schedule = next;
            tried.push(schedule.clone());
            let before = lead.finding.clone();
            if prover.force_schedule(&mut lead.finding, &schedule, session)? {
                lead.finding
                    .notes
                    .push(format!("{} into unseen code learned from executions that left their schedule", words(&orders)));
                return Ok(true);
            }
            // It says no more of the finding than the first one did.
            lead.finding = before;
            if let Some(now) = stands_in(&loaded.trace, &schedule, session).filter(|now| *now != at) {
                (at, learned) = (now, orders);
                open = model.behind(&loaded.trace, at);
            }
        }
        Ok(false)
    }

    /// A schedule for the finding, if the deciders find one in the trace as it is.
    fn decide(&self, prover: &Prover<'_, S>, lead: &Lead, loaded: &LoadedTrace) -> Option<Schedule> {
        let composer = Composer::new(loaded, self.symbols, self.settings.record.quantum);
        let (mut found, mut looked_at) = (None, 0);
        analyse(&loaded.trace, self.settings.engine, prover.forcing.deadline, |analysed| {
            looked_at += 1;
            if found.is_none() && looked_at <= MOST_CANDIDATES && analysed.witness.is_some() {
                let finding = composer.of_candidate(&analysed.candidate, analysed.witness.as_ref());
                found = finding.schedule.filter(|_| finding.id == lead.finding.id);
            }
        });
        let from = &lead.from;
        found.map(|schedule| Schedule { surroundings: from.surroundings.clone(), kept: from.kept.clone(), ..schedule })
    }
}

fn words(orders: &[(Call, Call)]) -> String {
    format!("{} of calls", rashomon_event::counted(orders.len() as u64, "order"))
}

/// What is taken to be ordered before anything was learned.
struct Model {
    /// All calls that count, by their places.
    calls: Vec<Call>,
    /// As they are reached, variables whole.
    gaps: Vec<Gap>,
    /// Nothing but what is learned is kept.
    is_free: bool,
}

impl Model {
    fn of(loaded: &LoadedTrace, trusted: &[String], is_free: bool) -> Self {
        let (calls, gaps) = heeded(loaded, trusted).into_iter().unzip();
        Self { calls, gaps, is_free }
    }

    fn gap(&self, call: Call) -> Option<&Gap> {
        self.calls.iter().position(|&known| known == call).map(|at| &self.gaps[at])
    }

    /// What a call may have to come behind, the likeliest last: calls of other threads that began before its end, those that
    /// ended latest last.
    fn behind(&self, trace: &Trace, call: Call) -> Orders {
        let Some(gap) = trace.gaps.get(call) else { return Orders::new() };
        let end = |gap: &Gap| gap.end.unwrap_or(EventIndex(u32::MAX));
        let is_before = |other: &(&Call, &Gap)| other.1.thread != gap.thread && other.1.begin < end(gap);
        let mut before: Vec<_> = self.calls.iter().zip(&self.gaps).filter(is_before).collect();
        before.sort_by_key(|(_, other)| end(other).min(end(gap)));
        before.into_iter().map(|(&other, _)| (other, call)).collect()
    }

    /// What is kept with these orders: the events of two such calls stay as they were recorded.
    fn kept(&self, trace: &Trace, orders: &[(Call, Call)]) -> Vec<(EventIndex, EventIndex)> {
        let mut kept = if self.is_free { Vec::new() } else { rashomon_order::kept(trace, &self.gaps) };
        for &(first, second) in orders {
            let pair = [first, second].map(|call| self.gap(call).or_else(|| trace.gaps.get(call)).cloned());
            let [Some(first), Some(second)] = pair else { continue };
            // Only with each other, and not with what else is accessed.
            let common = (Address(u64::MAX - 1), 1);
            let pair = [first, second].map(|gap| Gap { reach: vec![common], threads: Vec::new(), ..gap });
            kept.extend(rashomon_order::kept(trace, &pair));
        }
        kept.sort_unstable_by_key(|&(before, after)| (after, before));
        kept.dedup();
        kept
    }
}

/// The call at which an execution left the schedule: that in which a thread still is, else the one that ended last; by its place
/// in the trace, which the schedule is of.
fn stands_in(trace: &Trace, schedule: &Schedule, session: &Path) -> Option<Call> {
    let executed = load(&folder_of(schedule, session)).ok()?.trace;
    let last = executed.gaps.iter().filter(|gap| gap.end.is_none()).max_by_key(|gap| gap.begin);
    let last = last.or_else(|| executed.gaps.iter().max_by_key(|gap| gap.end))?;
    let number = executed.gaps.iter().filter(|gap| gap.thread == last.thread && gap.begin < last.begin).count();
    let path = &executed.thread(last.thread).path;
    (0..trace.gaps.len()).filter(|&call| trace.thread(trace.gaps[call].thread).path == *path).nth(number)
}
