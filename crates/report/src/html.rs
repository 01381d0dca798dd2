//! One page that opens from disk, without a network: for each finding both sides with their stacks and an excerpt of the source,
//! the recorded execution and the one that shows it with a lane for each thread, what came of either order, why it is sure, and
//! the command that makes it happen again.
//!
//! What the page shows works without its script, but for the whole recording. The script filters findings, steps through
//! executions and copies commands. So that thousands of findings or a million events do not slow the page down, these stand as
//! text in it where scripts run, and become elements when they are looked at.

mod timelines;

use crate::format::{Format, Options, Report};
use crate::order::by_importance;
use crate::place;
use crate::sources::Excerpts;
use crate::summary::RunSummary;
use crate::text::result::result_of;
use crate::text::{clean, exit_words, frame_words, harm_words, kind_name, phrases};
use crate::text::{place_words, thread_words, verdict_words};
use crate::timeline::DRAWN;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use rashomon_event::finding::{Origin, Step};
use rashomon_event::{Evidence, Finding, Frame, Grade, Side, Verdict, counted};
use timelines::timeline;

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");
/// Draws the timeline of a whole recording.
const WHOLE: &str = include_str!("html/whole.js");
/// Findings that are unfolded when the page opens.
const UNFOLDED: usize = 10;
/// Findings that are elements when the page opens. Those behind stand as text in it, which a browser reads much faster.
const ELEMENTS: usize = 200;

/// The format for browsers.
#[derive(Clone, Copy, Debug)]
pub struct Html;

impl Format for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn about(&self) -> &'static str {
        "One page for a browser, with excerpts of the source"
    }

    fn is_for_machines(&self) -> bool {
        true
    }

    fn shows_sources(&self) -> bool {
        true
    }

    fn shows_timelines(&self) -> bool {
        true
    }

    fn report(&self, report: Report<'_>, options: &Options) -> String {
        let findings = by_importance(report.findings, options.shown);
        let program = clean(&report.run.command.join(" "));
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { "Rashomon: " (program) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    header {
                        h1 { "Rashomon: " code { (program) } }
                        p.result { (clean(&result_of(report, options.shown))) }
                        (run(report.run))
                        // Once: what each of thousands of findings says takes time to be read.
                        @if findings.len() > DRAWN { p.left { "Executions are drawn for the first " (DRAWN) " findings." } }
                        @if findings.len() > 1 {
                            p.filter {
                                label for="filter" { "Show findings that contain " }
                                input #filter type="search";
                                " " span #count role="status" { (counted(findings.len() as u64, "finding")) }
                            }
                        }
                    }
                    main {
                        @for (number, finding) in findings.iter().enumerate() {
                            (article(finding, number, options))
                        }
                        @if let Some(whole) = &options.timelines.whole { (timelines::whole(whole, &options.folder)) }
                    }
                    script { (PreEscaped(SCRIPT)) }
                    @if options.timelines.whole.is_some() { script { (PreEscaped(WHOLE)) } }
                }
            }
        };
        format!("{}\n", page.into_string())
    }
}

fn run(run: &RunSummary) -> Markup {
    html! {
        dl.run {
            dt { "Program" } dd { (exit_words(run.exit)) }
            dt { "Looked at" }
            dd {
                (counted(u64::from(run.recordings), "recording")) ", " (counted(run.threads, "thread")) ", "
                (counted(run.events, "event")) ", " (counted(run.executions, "forced execution"))
            }
            @if !run.store.is_empty() { dt { "Kept in" } dd { code { (clean(&run.store)) } } }
            @if !run.notes.is_empty() {
                dt { "Notes" }
                dd { ul { @for note in &run.notes { li { (clean(note)) } } } }
            }
        }
    }
}

fn article(finding: &Finding, number: usize, options: &Options) -> Markup {
    html! {
        article id=(finding.id.as_str()) class=(finding.verdict.name()) {
            details open[number < UNFOLDED] {
                summary {
                    h2 {
                        span.kind { (kind_name(finding.kind)) } " "
                        span.verdict { (verdict_words(&finding.verdict)) } " "
                        code { (finding.id.as_str()) }
                    }
                    span.subject { (clean(&finding.subject)) }
                }
                @if number < ELEMENTS {
                    (body(finding, number, options))
                } @else {
                    // Text where scripts run, elements where they do not.
                    noscript.body { (body(finding, number, options)) }
                }
            }
        }
    }
}

fn body(finding: &Finding, number: usize, options: &Options) -> Markup {
    html! {
        div.sides { @for side in &finding.sides { (of_side(side, options)) } }
        (executions(finding, number, options))
        @if finding.harm.is_some() || finding.notes.iter().any(|note| is_of_orders(note)) {
            h3 { "What the other order did" }
            @if let Some(harm) = finding.harm { p { (harm_words(harm)) } }
            @for note in finding.notes.iter().filter(|note| is_of_orders(note)) { p { (clean(note)) } }
        }
        h3 { "Why it is sure" }
        ul.why {
            @for phrase in phrases(finding).iter().filter(|phrase| !is_of_orders(phrase)) { li { (phrase) } }
            @for note in finding.notes.iter().filter(|note| !is_of_orders(note)) { li { (clean(note)) } }
        }
        @if let Some(command) = &finding.reproduce {
            h3 { "Make it happen again" }
            div.again { pre tabindex="0" { code { (clean(command)) } } button type="button" { "Copy" } }
        }
    }
}

fn of_side(side: &Side, options: &Options) -> Markup {
    let best = Frame::best_known(&side.stack);
    html! {
        section {
            h3 { (thread_words(&side.thread)) ": " (clean(&side.action)) }
            @if let Some(frame) = best { (excerpt(frame, &options.excerpts, &options.folder)) }
            (stack(&side.stack, options))
            @for held in &side.held {
                details { summary { "holding " (clean(&held.words())) } (stack(&held.acquired_at, options)) }
            }
            @if !side.created_at.is_empty() {
                details { summary { (thread_words(&side.thread)) " was created" } (stack(&side.created_at, options)) }
            }
        }
    }
}

/// Frames of libraries stand back; they are all there.
fn stack(frames: &[Frame], options: &Options) -> Markup {
    html! {
        ol.stack start="0" {
            @for frame in frames {
                @let words = if options.full_stacks { frame_words(frame) } else { place_words(frame, &options.folder) };
                li.library[frame.origin() == Origin::Library] title=(frame_words(frame)) { (words) }
            }
        }
    }
}

fn excerpt(frame: &Frame, excerpts: &Excerpts, folder: &str) -> Markup {
    let lines = excerpts.around(frame);
    html! {
        @if let Some((first, lines)) = lines {
            figure {
                figcaption { @if let Some(file) = &frame.file { (clean(place::below(file, folder))) } }
                pre tabindex="0" {
                    @for (number, line) in (first..).zip(lines) {
                        span.line.here[Some(number) == frame.line] { span.number { (number) } (clean(line)) }
                    }
                }
            }
        }
    }
}

/// Whether a phrase or a note tells what came of the orders of two accesses.
fn is_of_orders(note: &str) -> bool {
    const STARTS: [&str; 4] = ["consequence: ", "with the access of ", "either access first", "interleaved so the program "];
    STARTS.iter().any(|start| note.starts_with(start))
}

/// What the execution is that shows the finding, as `docs/glossary.md` calls it.
fn shown_by(finding: &Finding) -> &'static str {
    let is_seen = matches!(finding.verdict.grade(), Some(Grade::Unordered)) || finding.evidence == Evidence::Observed;
    match finding.provocation {
        Some(_) => "Provoked execution",
        None if is_seen => "Replayed execution",
        None => "Forced execution",
    }
}

/// Why no other execution than the recorded one is drawn.
fn why_not_drawn(finding: &Finding, number: usize) -> Option<&'static str> {
    let replays = finding.verdict.replays()?;
    Some(match finding.provocation {
        _ if number >= DRAWN || finding.forced.is_some() => return None,
        Some(_) => {
            "The provoked execution is not drawn: its threads ran in parallel, and none in which the accesses met again was \
                recorded."
        }
        None if finding.evidence == Evidence::Observed && replays.of == 0 => {
            "A recorded execution shows it, and there was no replay of it to be drawn."
        }
        None => "The execution that shows it is not drawn: no trace of it was kept.",
    })
}

/// The recorded execution beside the one that shows the finding, or else the schedule that would show it.
fn executions(finding: &Finding, number: usize, options: &Options) -> Markup {
    let recorded = options.timelines.recorded.get(&finding.id);
    let forced = finding.forced.as_deref().filter(|_| number < DRAWN);
    html! {
        @if recorded.is_some() || forced.is_some() {
            p.left.legend {
                "A lane for each thread, thick while the thread holds a lock. Dots are what it does, red ones what the finding "
                "is about. An arrow comes from the thread after whose event this one comes."
            }
            div.executions {
                @if let Some(recorded) = recorded {
                    section { h3 { "Recorded execution" } (timeline(recorded, "Recorded execution", &options.folder)) }
                }
                @if let Some(forced) = forced {
                    @let shown_by = shown_by(finding);
                    section { h3 { (shown_by) ", which shows it" } (timeline(forced, shown_by, &options.folder)) }
                }
            }
        }
        @if let Some(why) = why_not_drawn(finding, number) { p.left { (why) } }
        @if !finding.steps.is_empty() {
            @if forced.is_some() {
                details { summary { h3 { (head(&finding.verdict)) } } (schedule(finding, options)) }
            } @else {
                h3 { (head(&finding.verdict)) }
                (schedule(finding, options))
            }
        }
    }
}

/// What the schedule is: only what came about was shown by it.
const fn head(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Proven(_) => "The schedule that shows it",
        Verdict::Diverged { .. } => "The schedule that was tried",
        Verdict::Predicted | Verdict::Suspected | Verdict::Refuted => "The schedule that would show it",
    }
}

/// A row for each turn, a column for each thread.
fn schedule(finding: &Finding, options: &Options) -> Markup {
    let mut threads: Vec<&str> = finding.steps.iter().map(|step| step.thread.as_str()).collect();
    threads.sort_by_key(|thread| (*thread != "main", *thread));
    threads.dedup();
    let first = finding.earlier_steps + 1;
    html! {
        @if finding.earlier_steps > 0 { p { (counted(finding.earlier_steps as u64, "earlier turn")) " left out" } }
        div.lanes {
            table.schedule tabindex="0" aria-label="Schedule; arrow keys step through it" {
                thead { tr { th scope="col" { "turn" } @for thread in &threads { th scope="col" { (thread_words(thread)) } } } }
                tbody {
                    @for (number, step) in (first..).zip(&finding.steps) {
                        tr {
                            th scope="row" { (number) }
                            @for thread in &threads { td { @if step.thread == *thread { (turn(step, &options.folder)) } } }
                        }
                    }
                }
            }
        }
    }
}

fn turn(step: &Step, folder: &str) -> Markup {
    html! {
        span.until { (clean(&step.until)) }
        @if let Some(place) = &step.place { span.place { (place_words(place, folder)) } }
    }
}
