//! Source packages of Debian, from the mirrors that the system uses already; apt verifies checksums through the signed index.

use super::compile::succeed;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xtask::packages;

/// Installs the packages that are not there (name, is there).
pub fn provide(packages: &[(&str, bool)]) -> Result<()> {
    let missing: Vec<&str> = packages.iter().filter(|(_, there)| !there).map(|(package, _)| *package).collect();
    if !missing.is_empty() && !packages::install(&missing) {
        bail!("{} cannot be installed from here; install by hand what is missing of it", missing.join(" "));
    }
    Ok(())
}

/// Whether a program of this name can be started.
pub fn starts(name: &str) -> bool {
    let mut command = Command::new(name);
    command.arg("--help").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Upstream's archives, Debian's changes and the description.
    Everything,
    /// Upstream's archives alone.
    Upstream,
}

/// Downloads a source package into `folder`, with lists of our own, so that the system's stay as they are.
pub fn download(package: &str, part: Part, folder: &Path) -> Result<()> {
    let apt = folder.join("apt");
    let lists = apt.join("lists");
    fs::create_dir_all(lists.join("partial"))?;
    fs::create_dir_all(apt.join("cache"))?;
    let sources = apt.join("sources.list");
    let mut file = fs::File::create(&sources)?;
    let lines = source_lines()?;
    if lines.is_empty() {
        bail!("apt is configured with no mirror of Debian, so there is nothing to fetch the source package from");
    }
    for line in lines {
        writeln!(file, "{line}")?;
    }
    let apt = |tool: &str| {
        let mut command = Command::new(tool);
        for (name, path) in [
            ("Dir::Etc::sourcelist", sources.clone()),
            ("Dir::Etc::sourceparts", apt.join("none")),
            ("Dir::State::lists", lists.clone()),
            ("Dir::Cache", apt.join("cache")),
        ] {
            command.arg("-o").arg(format!("{name}={}", path.display()));
        }
        // Our folder belongs to us alone; apt's own user could not write there.
        command.args(["-q", "-o", "APT::Sandbox::User=root"]).current_dir(folder);
        command
    };
    succeed(apt("apt-get").arg("update"))?;
    // The newest version, or an older one: mirrors name files that they do not hold (yet, any more).
    let versions = apt("apt-cache").args(["madison", package]).output().context("cannot start apt-cache")?;
    let versions = String::from_utf8_lossy(&versions.stdout).into_owned();
    let mut versions: Vec<&str> = versions.lines().filter_map(|line| line.split('|').nth(1)).map(str::trim).collect();
    versions.dedup();
    let mut failure = anyhow::anyhow!("apt knows no source package {package}");
    for version in versions {
        let mut source = apt("apt-get");
        source.args(["source", "--download-only"]);
        if part == Part::Upstream {
            source.arg("--tar-only");
        }
        match succeed(source.arg(format!("{package}={version}"))) {
            Ok(()) => return Ok(()),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The one file in `folder` whose name ends so.
pub fn file_with_extension(folder: &Path, extension: &str) -> Result<PathBuf> {
    fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|found| found == extension))
        .with_context(|| format!("apt left no file *.{extension} in {}", folder.display()))
}

/// `deb-src` lines for the Debian mirrors that apt is configured with.
fn source_lines() -> Result<Vec<String>> {
    let output = Command::new("apt-get")
        .args(["indextargets", "--format", "$(ORIGIN) $(SITE) $(RELEASE) $(COMPONENT)", "Created-By: Packages"])
        .output()
        .context("cannot start apt-get: this evaluation needs Debian")?;
    let mut lines: Vec<String> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| Some(format!("deb-src {}", line.strip_prefix("Debian ")?)))
        .collect();
    lines.sort();
    lines.dedup();
    Ok(lines)
}
