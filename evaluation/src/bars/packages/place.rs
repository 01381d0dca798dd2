//! Where a package was installed, and how programs are executed there: with an environment of their own, in which nothing of this
//! workspace is found.

use anyhow::{Context as _, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::release::{emptied, must};

const SUITE: &str = "bookworm";
const SYSTEM_PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

pub struct Place {
    /// A system of its own, if it is one.
    system: Option<PathBuf>,
    path: String,
    home: PathBuf,
    /// The folder in which programs are executed.
    pub work: PathBuf,
}

impl Place {
    pub fn prefix(prefix: PathBuf, scratch: &Path) -> Result<Self> {
        let path = format!("{}:{SYSTEM_PATH}", prefix.join("bin").display());
        Ok(Self { system: None, path, home: emptied(scratch.join("home"))?, work: emptied(scratch.join("work"))? })
    }

    pub fn system(system: PathBuf) -> Result<Self> {
        let work = emptied(system.join("work"))?;
        Ok(Self { system: Some(system), path: SYSTEM_PATH.into(), home: "/root".into(), work })
    }

    pub fn command(&self, program: &str) -> Command {
        let mut command = match &self.system {
            None => {
                let mut command = Command::new("env");
                command.current_dir(&self.work);
                command
            }
            Some(system) => {
                let mut command = Command::new("unshare");
                command
                    .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--wd", "/work", "--root"])
                    .arg(system);
                command.arg("env");
                command
            }
        };
        command.arg("-i").arg(format!("PATH={}", self.path)).arg(format!("HOME={}", self.home.display())).arg(program);
        command
    }

    /// The exit code, and what was printed to both outputs.
    pub fn said(&self, program: &str, arguments: &[&str]) -> Result<(i32, String)> {
        let output = self.command(program).args(arguments).output().with_context(|| format!("cannot start {program}"))?;
        let text = [output.stdout, output.stderr].concat();
        Ok((output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned()))
    }

    /// A path of the place, from here.
    pub fn seen(&self, path: &str) -> PathBuf {
        match &self.system {
            Some(system) => system.join(path.trim_start_matches('/')),
            None => PathBuf::from(path),
        }
    }
}

/// A fresh system with gcc; why not, if there can be none.
pub fn system(folder: &Path, scratch: &Path) -> Result<PathBuf, String> {
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    let pristine = folder.join(format!("pristine-{SUITE}"));
    if !has("debootstrap") && !pristine.is_dir() {
        return Err("debootstrap is not installed (apt-get install debootstrap)".into());
    }
    if !rustix::process::geteuid().is_root() {
        return Err("only root may make a system".into());
    }
    let made = || -> Result<PathBuf> {
        if !pristine.is_dir() {
            let building = emptied(folder.join("pristine-building"))?;
            must(Command::new("debootstrap").args(["--variant=minbase", "--include=gcc,libc6-dev", SUITE]).arg(&building))?;
            fs::rename(&building, &pristine)?;
        }
        let system = scratch.join("system");
        must(Command::new("cp").args(["--archive", "--reflink=auto"]).arg(&pristine).arg(&system))?;
        Ok(system)
    };
    made().map_err(|error| format!("{error:#}"))
}
