//! Commands that run on a terminal of a given size, and what they print there.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Instant;

/// What was printed, in pieces of whole lines with the seconds since the begin, and the exit code.
pub struct Printed {
    pub pieces: Vec<(f64, String)>,
    pub code: Option<i32>,
}

impl Printed {
    /// All of it, without carriage returns.
    pub fn text(&self) -> String {
        self.pieces.iter().map(|(_, text)| text.replace('\r', "")).collect()
    }
}

/// Runs the command to its end; standard output and standard error are the terminal.
pub fn run(mut command: Command, columns: u16, rows: u16) -> Printed {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are pseudo-terminals");
    grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("the pseudo-terminal can be opened");
    let name = ptsname(&ours, Vec::new()).expect("the pseudo-terminal has a name");
    let theirs = OpenOptions::new().read(true).write(true).open(name.to_str().expect("it is ASCII")).expect("it can be opened");
    tcsetwinsize(&theirs, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).expect("it has a size");

    command.env("TERM", "xterm-256color");
    command.env_remove("RASHOMON_SESSION").env_remove("NO_COLOR").env_remove("COLUMNS");
    let end = || Stdio::from(theirs.try_clone().expect("descriptors can be copied"));
    let begin = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(end()).stderr(end()).spawn().expect("the tool starts");
    drop((command, theirs));

    let mut terminal = File::from(ours);
    let (mut pieces, mut cut) = (Vec::new(), Vec::new());
    let mut buffer = [0; 4096];
    // When all have closed the other end, reading fails. Lines are taken whole, so that no path is cut.
    while let Ok(length @ 1..) = terminal.read(&mut buffer) {
        cut.extend_from_slice(&buffer[..length]);
        let whole = cut.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |end| end + 1);
        pieces.push((begin.elapsed().as_secs_f64(), String::from_utf8_lossy(&cut[..whole]).into_owned()));
        cut.drain(..whole);
    }
    let status = child.wait().expect("the tool ends");
    Printed { pieces, code: status.code() }
}
