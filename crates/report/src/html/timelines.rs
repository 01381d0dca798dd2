//! Executions drawn as tables: a row for each moment, and in it a lane for each thread.
//!
//! A row holds all that is drawn of it: lanes, thick where the thread holds a lock, a dot where the moment is, and an arrow from
//! the lane of the thread that it comes after. So rows may be of any height, on paper too, and any part can be drawn alone.

use crate::text::{clean, place_words, thread_words};
use crate::timeline::{Moment, Timeline};
use maud::{Markup, PreEscaped, html};
use rashomon_event::counted;
use rashomon_event::harmless::harmless_json;
use serde::Serialize;
use std::fmt::Write as _;

/// What is drawn of a timeline at most, whatever a store says: moments, and threads that have lanes.
const MOMENTS: usize = 1_000;
const LANES: usize = 64;
/// Moments of a part of a whole recording, which the page reads when it is looked at.
const PART: usize = 1_000;

/// The timeline, with what steps through it. `about`: a name for those who do not see it.
pub fn timeline(timeline: &Timeline, about: &str, folder: &str) -> Markup {
    let mut held = timeline.held_before.clone();
    held.resize(timeline.threads.len().min(LANES), 0);
    html! {
        @if timeline.earlier > 0 { p.left { (counted(timeline.earlier, "earlier event")) " left out" } }
        div.stepper hidden {
            button type="button" data-step="previous" { "Previous" } " "
            button type="button" data-step="next" { "Next" } " "
            button type="button" data-step="finding" { "To the finding" }
            p.state role="status" { "Arrow keys step through it, Enter goes to what the finding is about." }
        }
        div.lanes {
            table.timeline style=(lanes_style(timeline)) tabindex="0" aria-label={ (about) "; arrow keys step through it" } {
                thead {
                    tr {
                        th scope="col" { "event" }
                        th.graph scope="col" { (heads(timeline)) }
                        th scope="col" { "what happens" }
                    }
                }
                tbody {
                    @for moment in timeline.moments.iter().take(MOMENTS) {
                        (row(timeline, moment, &mut held, folder))
                    }
                }
            }
        }
        @if timeline.later > 0 { p.left { (counted(timeline.later, "later event")) " left out" } }
    }
}

fn lanes_style(timeline: &Timeline) -> String {
    format!("--lanes: {}", timeline.threads.len().min(LANES))
}

fn heads(timeline: &Timeline) -> Markup {
    html! {
        @for (lane, thread) in timeline.threads.iter().take(LANES).enumerate() {
            span.head style=(format!("--lane: {lane}")) title=(thread_words(thread)) { (clean(thread)) }
        }
    }
}

fn row(timeline: &Timeline, moment: &Moment, held: &mut [u32], folder: &str) -> Markup {
    if let Some(own) = held.get_mut(moment.thread as usize) {
        *own = moment.holds;
    }
    let thread = timeline.threads.get(moment.thread as usize).map_or("", String::as_str);
    let locks = timeline.locks(moment.holds);
    html! {
        tr.of-finding[moment.is_of_finding] data-thread=(thread_words(thread)) {
            th scope="row" { @if moment.number > 0 { (moment.number) } @else { "–" } }
            td.graph aria-hidden="true" { (lanes(moment, held)) }
            td {
                span.who { (thread_words(thread)) } " "
                span.until { (timeline.words.get(moment.does as usize).map_or_else(String::new, |words| clean(words))) }
                @if let Some(place) = moment.place.and_then(|place| timeline.places.get(place as usize)) {
                    " " span.place { (place_words(place, folder)) }
                }
                @if !locks.is_empty() { " " span.holds { "holds " (clean(&locks.join(", "))) } }
                @if let Some((number, other)) = moment.after {
                    @let other = timeline.threads.get(other as usize).map_or("", String::as_str);
                    " " span.after { "after event " (number) " of " (thread_words(other)) }
                }
            }
        }
    }
}

fn lanes(moment: &Moment, held: &[u32]) -> Markup {
    html! {
        @for (lane, held) in held.iter().enumerate() {
            i.held[*held > 0].own[lane == moment.thread as usize] style=(format!("--lane: {lane}")) {}
        }
        @if let Some((_, from)) = moment.after.filter(|(_, from)| from.max(&moment.thread) < &(held.len() as u32)) {
            @let (low, high) = (from.min(moment.thread), from.max(moment.thread));
            b.left[from > moment.thread] style=(format!("--lane: {low}; --across: {}", high - low)) {}
        }
    }
}

/// What the script needs to draw a whole recording: names once, and numbers in parts.
#[derive(Serialize)]
struct Names<'a> {
    threads: Vec<String>,
    paths: &'a [String],
    words: Vec<String>,
    places: Vec<String>,
    held: Vec<String>,
    moments: usize,
    part: usize,
    /// Numbers of the moments that are of findings, from 0.
    findings: Vec<usize>,
}

/// All of a recording. The script draws the rows that are in sight.
pub fn whole(timeline: &Timeline, folder: &str) -> Markup {
    let is_of_finding = |(at, moment): (usize, &Moment)| moment.is_of_finding.then_some(at);
    let names = Names {
        threads: timeline.threads.iter().map(|thread| thread_words(thread)).collect(),
        paths: &timeline.threads,
        words: timeline.words.iter().map(|words| clean(words)).collect(),
        places: timeline.places.iter().map(|place| place_words(place, folder)).collect(),
        held: timeline.held.iter().map(|locks| clean(&locks.join(", "))).collect(),
        moments: timeline.moments.len(),
        part: PART,
        findings: timeline.moments.iter().enumerate().filter_map(is_of_finding).take(10_000).collect(),
    };
    // Only maps with non-string keys and failing `Serialize` impls can fail; there are none here.
    let names = serde_json::to_string(&names).unwrap_or_default();
    html! {
        section #whole {
            details {
                summary { h2 { "The whole recording" } " " span.subject { (counted(timeline.moments.len() as u64, "event")) } }
                @if timeline.earlier > 0 { p.left { (counted(timeline.earlier, "earlier event")) " left out" } }
                noscript { p { "Drawing it needs the page's script." } }
                div.drawn {}
            }
            script type="application/json" #names { (PreEscaped(harmless_json(&names).replace('<', "\\u003c"))) }
            (parts(timeline))
        }
    }
}

/// A row is eight numbers: event (less that of the row before), thread, words, place (0: none), event that it comes after (less
/// than its own by; 0: none) and that one's thread, locks held, of a finding. What threads hold before a part stands with it.
fn parts(timeline: &Timeline) -> Markup {
    let mut held = timeline.held_before.clone();
    held.resize(timeline.threads.len(), 0);
    html! {
        @for part in timeline.moments.chunks(PART) {
            @let before = serde_json::to_string(&held).unwrap_or_default();
            script.part type="application/json" data-held=(before) { (PreEscaped(numbers(part, &mut held))) }
        }
    }
}

fn numbers(part: &[Moment], held: &mut [u32]) -> String {
    let (mut text, mut last) = (String::from("["), 0);
    for moment in part {
        if let Some(own) = held.get_mut(moment.thread as usize) {
            *own = moment.holds;
        }
        let (after, of) = moment.after.unwrap_or((moment.number, 0));
        let place = moment.place.map_or(0, |place| place + 1);
        let event = moment.number.wrapping_sub(last);
        let back = moment.number.saturating_sub(after);
        let (thread, does, holds, finding) = (moment.thread, moment.does, moment.holds, u8::from(moment.is_of_finding));
        let comma = if text.len() > 1 { "," } else { "" };
        let _ = write!(text, "{comma}{event},{thread},{does},{place},{back},{of},{holds},{finding}");
        last = moment.number;
    }
    text.push(']');
    text
}
