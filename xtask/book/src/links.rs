//! The links of a folder of HTML pages: each has to lead to a file of the folder, and to a name on that page.

use anyhow::{Context as _, Result};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Pages that repeat others, from places where relative links mean something else.
const REPETITIONS: [&str; 3] = ["print.html", "toc.html", "404.html"];

/// A link that leads nowhere.
#[derive(Debug, PartialEq, Eq)]
pub struct Broken {
    page: String,
    link: String,
    why: &'static str,
}

impl Display for Broken {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: the link to {} leads to {}", self.page, self.link, self.why)
    }
}

#[derive(Default)]
struct Page {
    links: Vec<String>,
    names: BTreeSet<String>,
}

/// Links of the pages below `folder` that lead to no file, or to no name on a page. Those to other sites are not followed.
pub fn broken(folder: &Path) -> Result<Vec<Broken>> {
    let mut files = BTreeSet::new();
    collect(folder, Path::new(""), &mut files)?;
    let link = Regex::new(r#"(?:href|src)="([^"]*)""#)?;
    let name = Regex::new(r#"id="([^"]*)""#)?;
    let mut pages: BTreeMap<&Path, Page> = BTreeMap::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "html")) {
        let text = fs::read_to_string(folder.join(file)).with_context(|| format!("cannot read {}", file.display()))?;
        let all = |of: &Regex| of.captures_iter(&text).map(|found| found[1].replace("&amp;", "&")).collect::<Vec<_>>();
        pages.insert(file, Page { links: all(&link), names: all(&name).into_iter().collect() });
    }
    let mut broken = Vec::new();
    for (&from, page) in pages.iter().filter(|(from, _)| !REPETITIONS.iter().any(|name| from.ends_with(name))) {
        for link in page.links.iter().filter(|link| !leads_out(link)) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let to = if path.is_empty() { Some(from.to_owned()) } else { resolve(from, path) };
            let why = match to.filter(|to| files.contains(to)) {
                None => "no file of the book",
                Some(to) if anchor.is_empty() || pages.get(to.as_path()).is_none_or(|to| to.names.contains(anchor)) => continue,
                Some(_) => "no name on its page",
            };
            broken.push(Broken { page: from.display().to_string(), link: link.clone(), why });
        }
    }
    Ok(broken)
}

/// Files below `folder`, relative to it.
fn collect(folder: &Path, below: &Path, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    let path = folder.join(below);
    for entry in fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))? {
        let entry = entry?;
        let name = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            collect(folder, &name, files)?;
        } else {
            files.insert(name);
        }
    }
    Ok(())
}

fn leads_out(link: &str) -> bool {
    link.split_once(':').is_some_and(|(scheme, _)| scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '+'))
}

/// `None`: it leads out of the folder.
fn resolve(from: &Path, link: &str) -> Option<PathBuf> {
    let mut to = from.parent()?.to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::Normal(name) => to.push(name),
            Component::CurDir => {}
            Component::ParentDir if to.pop() => {}
            _ => return None,
        }
    }
    Some(to)
}

#[cfg(test)]
mod tests {
    use super::broken;

    #[test]
    fn links_lead_to_files_and_names_of_the_book() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("part")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write(
            "index.html",
            r##"<h1 id="top"></h1><a href="part/one.html#first"></a><a href="#top"></a><a href="mailto:x"></a>"##,
        );
        write("part/one.html", r#"<h1 id="first"></h1><a href="../index.html"></a><img src="picture.svg">"#);
        write("part/picture.svg", "");
        assert_eq!(broken(folder.path()).unwrap(), []);
        write(
            "index.html",
            r##"<a href="part/one.html#second"></a><a href="#top"></a><a href="two.html"></a><a href="../x"></a>"##,
        );
        let found: Vec<String> = broken(folder.path()).unwrap().iter().map(ToString::to_string).collect();
        let of_the_page = [
            "index.html: the link to part/one.html#second leads to no name on its page",
            "index.html: the link to #top leads to no name on its page",
            "index.html: the link to two.html leads to no file of the book",
            "index.html: the link to ../x leads to no file of the book",
        ];
        assert_eq!(found, of_the_page);
    }
}
