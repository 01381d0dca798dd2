//! Lifetimes: whether a lock can be about to be used, or released, where another thread stands that may end or begin its life,
//! in whole traces and in windows of them, against brute force.

use super::claims::Claims;
use super::exact::{ACCEPTED, PROVEN};
use rashomon_event::{Deadline, EventIndex, EventKind, Stand, ThreadId, Trace, WitnessLevel};
use rashomon_order::lives::used_by;
use rashomon_predict::maximal::{Decision, Facts, Limits, Target, meets, window};
use rashomon_testkit::{Contents, Rules, SplitMix, can_meet, describe};
use rashomon_witness::Checker;

pub const LIVES: &str = "uses beside and behind the end of an object equal brute force";
pub const WINDOWS: &str = "the same in windows of the trace";

/// Questions about one trace.
const MOST: usize = 12;

/// Uses, and where others stand: right at an edge, or behind one and not yet where the object is made anew.
fn meetings(trace: &Trace, rng: &mut SplitMix) -> Vec<(EventIndex, Vec<Stand>)> {
    let is_use = |event: &EventIndex| {
        let kind = trace.kind(*event);
        used_by(&kind).is_some() || matches!(kind, EventKind::Release { .. })
    };
    let uses: Vec<EventIndex> = trace.indices().filter(is_use).collect();
    if uses.is_empty() {
        return Vec::new();
    }
    let (events, threads) = (trace.events.len() as u64, trace.threads.len() as u64);
    let meeting = |number: usize| {
        let used = uses[rng.below(uses.len() as u64) as usize];
        let mut draw = || (ThreadId(rng.below(threads) as u32), EventIndex(1 + rng.below(events) as u32));
        let ((thread, before), (other, anew)) = (draw(), draw());
        let mut stands = match number % 3 {
            0 => vec![Stand::at(thread, before)],
            1 => vec![Stand::behind(thread, before)],
            _ => vec![Stand::behind(thread, before), Stand::up_to(other, anew)],
        };
        stands.retain(|stand| stand.thread != trace.event(used).thread);
        (used, stands)
    };
    (0..MOST).map(meeting).filter(|(_, stands)| !stands.is_empty()).collect()
}

pub fn ask(trace: &Trace, contents: Option<&Contents>, facts: &Facts<'_, '_>, seed: u64, claims: &mut Claims) {
    let meetings = meetings(trace, &mut SplitMix(seed));
    let nothing = Contents::default();
    let may_see = |sight| contents.unwrap_or(&nothing).may_see(trace, sight);
    let whole = 0..trace.events.len();
    let expected = can_meet(trace, Rules::CAUSAL, whole.clone(), &meetings, &may_see);
    let checker = Checker::new(trace);
    for (number, (used, stands)) in meetings.iter().enumerate() {
        let decide = |limits| meets(facts, *used, stands, &limits, Deadline::NEVER).decision;
        let mut accepted = |order: &[EventIndex]| {
            let level = checker.meets(order, *used, stands);
            let is_accepted = if contents.is_some() { level.is_ok() } else { level == Ok(WitnessLevel::Causal) };
            let holds = contents.unwrap_or(&nothing).hold(trace, order);
            claims.claim(ACCEPTED, is_accepted && holds, || describe(trace));
        };
        let decision = decide(Limits::NONE);
        if let Decision::Witness(order) = &decision {
            accepted(order);
        }
        let events = trace.events.len() / 2 + number % 3;
        let within = decide(Limits { window: Some(events), ..Limits::NONE });
        if let Decision::Witness(order) = &within {
            accepted(order);
        }
        let is_found = matches!(decision, Decision::Witness(_));
        claims.claim(PROVEN, is_found || decision == Decision::Refuted, || describe(trace));
        claims.claim(LIVES, is_found == expected[number], || describe(trace));
        let goals = [*used];
        let target = Target { goals: &goals, orders: &[], stands };
        let question = [(*used, stands.clone())];
        let shown =
            window(facts, target, events).is_some_and(|window| can_meet(trace, Rules::CAUSAL, window, &question, &may_see)[0]);
        claims.claim(WINDOWS, matches!(within, Decision::Witness(_)) == shown, || describe(trace));
    }
}
