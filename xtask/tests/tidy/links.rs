//! Links between the project's documents: files, and headings in them.

use crate::files::{self, TextFile, root};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};

/// What a document links to, and what can be linked to in it.
#[derive(Default)]
struct Document {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

fn read(text: &str) -> Document {
    let mut document = Document::default();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_HEADING_ATTRIBUTES) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => document.links.push(dest_url.into_string()),
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let name = anchor(&heading.take().unwrap_or_default());
                // As GitHub and mdBook name headings of the same text.
                let mut names = (0..).map(|count| if count == 0 { name.clone() } else { format!("{name}-{count}") });
                let free = names.find(|name| !document.anchors.contains(name));
                document.anchors.extend(free);
            }
            _ => {}
        }
    }
    document
}

/// The name of a heading, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

/// The path of a link that is written in `from`, below the root. `None` where it leads out of the project.
fn target(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

fn faults(documents: &BTreeMap<String, Document>, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (path, document) in documents {
        for link in document.links.iter().filter(|link| !link.contains(':')) {
            let (file, anchor) = link.split_once('#').map_or((link.as_str(), None), |(file, anchor)| (file, Some(anchor)));
            let to = if file.is_empty() { Some(path.clone()) } else { target(path, file) };
            let known = to.as_ref().and_then(|to| documents.get(to));
            match (to.as_ref(), anchor) {
                (Some(to), _) if !exists(to) => found.push(format!("{path}: {link}: no such file")),
                (None, _) => found.push(format!("{path}: {link}: leads out of the project")),
                (Some(_), Some(anchor)) if known.is_some_and(|to| !to.anchors.contains(anchor)) => {
                    found.push(format!("{path}: {link}: no such heading"));
                }
                _ => {}
            }
        }
    }
    found
}

fn documents() -> Vec<TextFile> {
    files::all().into_iter().filter(|file| file.path.ends_with(".md")).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let documents = documents().into_iter().map(|file| (file.path, read(&file.text))).collect();
    let found = faults(&documents, |path| root().join(path).exists());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn links_that_lead_nowhere_are_found() {
    let text = "# One `two`: three\n\n## One\n\n## One\n\n[a](#one-two-three) [b](#one-1) [c](#none)\n\
                [d](gone.md) [e](../../out.md) ![f](p.svg)";
    let documents = BTreeMap::from([("docs/page.md".to_owned(), read(text))]);
    let found = faults(&documents, |path| path == "docs/page.md");
    let expected =
        ["#none: no such heading", "gone.md: no such file", "../../out.md: leads out of the project", "p.svg: no such file"];
    assert_eq!(found, expected.map(|fault| format!("docs/page.md: {fault}")));
}

/// mdBook shows what its summary lists, and nothing else.
#[test]
fn every_chapter_is_in_the_summary() {
    let summary = read(&std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap());
    let listed: BTreeSet<String> = summary.links.iter().filter_map(|link| target("docs/SUMMARY.md", link)).collect();
    let chapters: BTreeSet<String> = documents()
        .into_iter()
        .map(|file| file.path)
        .filter(|path| path.starts_with("docs/") && path != "docs/SUMMARY.md")
        .collect();
    assert_eq!(listed, chapters);
}
