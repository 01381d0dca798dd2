//! The servers: how each is built, started, loaded and ended.

use crate::bars::real::programs::{Real, programs_of};
use crate::bars::real::{self, shell};
use crate::common::compile::{Compilers, build_from, succeed};
use crate::common::load::store::{Store, load};
use crate::common::load::{Served, http, memcached, redis};
use crate::common::programs::Language;
use crate::common::server::{Server, free_address, peak_of};
use anyhow::{Context as _, Result, bail};
use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xtask::workspace::root;

const CONNECTIONS: u64 = 8;
/// What measures itself does not take longer.
const TIMEOUT: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(20);

pub struct Subject {
    pub name: &'static str,
    source: Source,
    load: Load,
}

enum Source {
    /// By its recipe.
    Debian(Box<Real>),
    Cxx(&'static str),
    Rust(&'static str),
}

#[derive(Clone, Copy)]
enum Load {
    Memcached,
    Redis,
    /// Files of the working folder.
    Http,
    /// It is the load, and prints what came of it.
    Itself(fn(&str) -> Option<Served>),
}

/// Executables.
pub struct Built {
    pub native: PathBuf,
    pub sanitizer: PathBuf,
    pub ours: PathBuf,
    pub work: PathBuf,
}

pub fn all() -> Result<Vec<Subject>> {
    let (servers, own) = (programs_of("real")?, programs_of("servers")?);
    let mut recipes: Vec<Real> = servers.into_iter().chain(own).collect();
    let mut of_debian = |name: &'static str, load: Load| -> Result<Subject> {
        let at = recipes.iter().position(|real| real.name == name).with_context(|| format!("{name} has no recipe"))?;
        Ok(Subject { name, source: Source::Debian(Box::new(recipes.swap_remove(at))), load })
    };
    Ok(vec![
        of_debian("memcached", Load::Memcached)?,
        of_debian("redis", Load::Redis)?,
        of_debian("nginx", Load::Http)?,
        of_debian("leveldb-bench", Load::Itself(of_db_bench))?,
        of_debian("sqlite-threads", Load::Itself(of_sqlite_load))?,
        Subject { name: "C++ server", source: Source::Cxx("store.cc"), load: Load::Memcached },
        Subject { name: "Rust server", source: Source::Rust("store.rs"), load: Load::Memcached },
    ])
}

impl Subject {
    pub fn build(&self, tool: &Path) -> Result<Built> {
        match &self.source {
            Source::Debian(real) => {
                real::provide_everywhere()?;
                let folders = real::builds(real, &root().join("target/real").join(&real.name), tool)?;
                let executable = |folder: PathBuf| fs::canonicalize(folder.join(&real.program));
                let (native, sanitizer) = (executable(folders.native)?, executable(folders.sanitizer)?);
                Ok(Built { native, sanitizer, ours: executable(folders.ours)?, work: folders.work })
            }
            Source::Cxx(file) => {
                let work = fresh(file)?;
                let built = build_from(&ours(file), (file, Language::Cxx), &Compilers::find()?, tool, &work)?;
                Ok(Built { native: built.native, sanitizer: built.sanitizer, ours: built.ours, work })
            }
            Source::Rust(file) => of_rust(file, tool),
        }
    }

    /// What came of a load, and the peak of the server's memory in megabytes. `line`: what starts it, without its arguments.
    pub fn serve(&self, line: &[OsString], executable: &Path, built: &Built, length: Duration) -> Result<(Served, f64)> {
        if let Source::Debian(real) = &self.source {
            succeed(shell(&real.before, &built.work, &built.work).stdin(Stdio::null()))?;
        }
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).current_dir(&built.work);
        if let Load::Itself(read) = self.load {
            return self.load_itself(&mut command, executable, built, read);
        }
        let address = self.arguments(&mut command, built)?;
        let server = Server::start(&mut command, address, built.work.join("said"))?;
        let served = match self.load {
            Load::Redis => load::<redis::Client>(address, CONNECTIONS, length),
            Load::Http => http::load(address, &files(&built.work)?, CONNECTIONS, length),
            Load::Memcached | Load::Itself(_) => load::<memcached::Client>(address, CONNECTIONS, length),
        };
        let peak = peak_of(executable);
        server.end(|| match self.load {
            Load::Redis => redis::Client::connect(address)?.shut_down(),
            Load::Http => {
                let pid = fs::read_to_string(built.work.join("nginx.pid")).context("nginx.pid")?;
                succeed(Command::new("kill").args(["-QUIT", pid.trim()]))
            }
            Load::Memcached | Load::Itself(_) => memcached::Client::connect(address)?.shut_down(),
        })?;
        Ok((served?, peak))
    }

    /// Of a server, and where it will listen.
    fn arguments(&self, command: &mut Command, built: &Built) -> Result<SocketAddr> {
        let address = free_address()?;
        let port = address.port().to_string();
        let Source::Debian(real) = &self.source else {
            command.arg(port);
            return Ok(address);
        };
        // Recipes name ports of their own.
        let own = |word: &String| word.parse::<u16>().is_ok_and(|number| number >= 1 << 10);
        command.args(real.arguments.iter().map(|word| if own(word) { &port } else { word }));
        if matches!(self.load, Load::Http) {
            let path = built.work.join("nginx.conf");
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let line = text.split("listen 127.0.0.1:").nth(1).and_then(|rest| rest.split(';').next());
            let before = line.context("nginx.conf names no address")?;
            fs::write(&path, text.replace(&format!("127.0.0.1:{before};"), &format!("127.0.0.1:{port};")))?;
        }
        Ok(address)
    }

    fn load_itself(
        &self,
        command: &mut Command,
        executable: &Path,
        built: &Built,
        read: fn(&str) -> Option<Served>,
    ) -> Result<(Served, f64)> {
        if let Source::Debian(real) = &self.source {
            command.args(&real.arguments);
        }
        let (printed, said) = (built.work.join("printed"), built.work.join("said"));
        command.stdin(Stdio::null()).stdout(fs::File::create(&printed)?).stderr(fs::File::create(&said)?);
        let begin = Instant::now();
        let mut child = command.spawn().with_context(|| format!("cannot start {}", self.name))?;
        let mut peak = 0.0;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if begin.elapsed() > TIMEOUT {
                child.kill()?;
                child.wait()?;
                bail!("it is still there after {} s", TIMEOUT.as_secs());
            }
            peak = peak_of(executable).max(peak);
            std::thread::sleep(LOOK);
        };
        let text = fs::read_to_string(&printed)?;
        // Detectors have exit codes of their own for what they found.
        match read(&text).filter(|_| status.code().is_some()) {
            Some(served) => Ok((served, peak)),
            None => bail!("it ended with {status} and printed {text:?}\n{}", fs::read_to_string(&said).unwrap_or_default()),
        }
    }
}

/// A source beside this one.
fn ours(file: &str) -> PathBuf {
    root().join("evaluation/src/bars/servers").join(file)
}

fn fresh(name: &str) -> Result<PathBuf> {
    let folder = root().join("target/real").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// A package of its own, built by cargo. The library is as it comes: ThreadSanitizer has no other.
fn of_rust(file: &str, tool: &Path) -> Result<Built> {
    let work = fresh(file)?;
    fs::create_dir_all(work.join("src"))?;
    fs::copy(ours(file), work.join("src/main.rs"))?;
    let manifest = "[package]\nname = \"store\"\nedition = \"2024\"\n[profile.release]\ndebug = 1\n[workspace]\n";
    fs::write(work.join("Cargo.toml"), manifest)?;
    let target = "x86_64-unknown-linux-gnu";
    let build = |command: &mut Command, to: &str| -> Result<PathBuf> {
        let folder = work.join(to);
        succeed(command.args(["build", "--release"]).current_dir(&work).env("CARGO_TARGET_DIR", &folder))?;
        // Ours has a folder for each kind of build.
        let kinds = fs::read_dir(folder.join("rashomon")).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut folders = kinds.map(|kind| kind.join(target)).chain([folder.join(target), folder.clone()]);
        let found = folders.find_map(|folder| Some(folder.join("release/store")).filter(|path| path.exists()));
        Ok(fs::canonicalize(found.with_context(|| format!("cargo left no program in {}", folder.display()))?)?)
    };
    let native = build(&mut Command::new("cargo"), "native")?;
    let flags = "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer";
    let mut sanitized = Command::new("cargo");
    let sanitizer =
        build(sanitized.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", flags).env("CARGO_BUILD_TARGET", target), "sanitizer")?;
    let ours = build(Command::new(tool).args(["cargo", "--std", "plain"]), "ours")?;
    Ok(Built { native, sanitizer, ours, work })
}

/// What nginx serves.
fn files(work: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(work)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with("file") {
            files.push((name, fs::read(&path)?));
        }
    }
    anyhow::ensure!(!files.is_empty(), "there is no file to be served");
    files.sort();
    Ok(files)
}

/// `operations N`, `seconds S` and `p99 MS`, a line each.
fn of_sqlite_load(text: &str) -> Option<Served> {
    let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    let (operations, seconds, p99) = (number("operations")?, number("seconds")?, number("p99")?);
    Some(Served { operations: operations as u64, seconds, latencies: vec![(p99 * 1e3) as u32], ..Served::default() })
}

/// Of each benchmark `NAME : N micros/op;` and a histogram, whose rows are `[ from, to ) count percent cumulated%`. The slowest
/// 99th percentile counts, to the end of its row.
fn of_db_bench(text: &str) -> Option<Served> {
    let value = |name: &str| -> Option<f64> {
        text.lines().find_map(|line| line.split_once(name)?.1.split_whitespace().next()?.parse().ok())
    };
    let entries = value("Entries:")?;
    let micros = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once(" : ")?;
        rest.trim().split_once(" micros/op")?.0.trim().parse::<f64>().ok()
    });
    let (benchmarks, seconds) = micros.fold((0.0, 0.0), |(count, sum), each| (count + 1.0, sum + each * entries / 1e6));
    let mut slowest: Vec<u32> = Vec::new();
    let mut is_over = true;
    for line in text.lines().map(str::trim) {
        if line.starts_with("Count:") {
            is_over = false;
        }
        let Some((range, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(')')) else { continue };
        let cumulated: f64 = rest.split_whitespace().nth(2)?.trim_end_matches('%').parse().ok()?;
        if !is_over && cumulated >= 99.0 {
            is_over = true;
            slowest.push(range.split(',').nth(1)?.trim().parse::<f64>().ok()? as u32);
        }
    }
    let p99 = slowest.into_iter().max()?;
    (benchmarks > 0.0).then(|| Served {
        operations: (benchmarks * entries) as u64,
        seconds,
        latencies: vec![p99],
        ..Served::default()
    })
}
