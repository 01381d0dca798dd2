//! Sources of Debian's packages, for reports of real libraries. apt checks them through its signed index.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The unpacked source of a package, below `folder`; with lists of our own, so that the system's stay as they are.
pub fn source(package: &str, folder: &Path) -> PathBuf {
    let apt = folder.join("apt");
    for part in ["lists/partial", "cache"] {
        fs::create_dir_all(apt.join(part)).unwrap();
    }
    let targets = ["indextargets", "--format", "$(ORIGIN) $(SITE) $(RELEASE) $(COMPONENT)", "Created-By: Packages"];
    let targets = said(Command::new("apt-get").args(targets));
    let lines: String = targets.lines().filter_map(|line| Some(format!("deb-src {}\n", line.strip_prefix("Debian ")?))).collect();
    fs::write(apt.join("sources.list"), lines).unwrap();
    let of = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        let places = [
            ("Dir::Etc::sourcelist", "sources.list"),
            ("Dir::Etc::sourceparts", "none"),
            ("Dir::State::lists", "lists"),
            ("Dir::Cache", "cache"),
        ];
        for (name, place) in places {
            command.arg("-o").arg(format!("{name}={}", apt.join(place).display()));
        }
        // The folder belongs to us alone; apt's own user could not write there.
        command.args(["-q", "-o", "APT::Sandbox::User=root"]).args(arguments).current_dir(folder);
        command
    };
    said(&mut of(&["update"]));
    said(&mut of(&["source", "--download-only", package]));
    let description = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let description = description.into_iter().find(|path| path.extension().is_some_and(|end| end == "dsc")).unwrap();
    let unpacked = folder.join(package);
    said(Command::new("dpkg-source").args(["--no-check", "-x"]).arg(description).arg(&unpacked));
    unpacked
}

/// What a command printed, which has to succeed.
pub fn said(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
