//! A server: started, waited for until it listens, asked to end and waited for.

use anyhow::{Context as _, Result, bail};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Until the server listens, and from when it is asked to its end.
const TIMEOUT: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(20);

pub struct Server {
    child: Child,
    /// Standard error.
    said: PathBuf,
}

/// One at which nobody listens.
pub fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

impl Server {
    /// Until it listens at the address. What it says goes to the file.
    pub fn start(command: &mut Command, address: SocketAddr, said: PathBuf) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(&said)?);
        let child = command.spawn().with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let mut server = Self { child, said };
        let begin = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = server.child.try_wait()? {
                bail!("it ended before it listened ({status})\n{}", server.said());
            }
            if begin.elapsed() > TIMEOUT {
                bail!("it does not listen\n{}", server.said());
            }
            std::thread::sleep(LOOK);
        }
        Ok(server)
    }

    /// What it said so far.
    pub fn said(&self) -> String {
        fs::read(&self.said).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Asks it to end, and waits for that.
    pub fn end(mut self, ask: impl FnOnce() -> Result<()>) -> Result<String> {
        ask()?;
        let begin = Instant::now();
        loop {
            match self.child.try_wait()? {
                // Detectors have exit codes of their own for what they found.
                Some(status) if status.code().is_some() => return Ok(self.said()),
                Some(status) => bail!("it ended with {status}\n{}", self.said()),
                None if begin.elapsed() > TIMEOUT => {
                    bail!("it is still there {} s after it was asked to end\n{}", TIMEOUT.as_secs(), self.said())
                }
                None => std::thread::sleep(LOOK),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Megabytes: the most that a process which executes this file had resident so far.
pub fn peak_of(executable: &Path) -> f64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let of_it = processes.filter(|process| fs::read_link(process.join("exe")).is_ok_and(|path| path == executable));
    let kilobytes = of_it.map(|process| {
        let text = fs::read_to_string(process.join("status")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        line.split_whitespace().next().and_then(|number| number.parse::<f64>().ok()).unwrap_or(0.0)
    });
    kilobytes.fold(0.0, f64::max) / 1024.0
}
