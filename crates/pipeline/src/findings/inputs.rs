//! The first external input, in words: the file, socket or signal, and where the program asked for it.

use crate::findings::describe::{Describer, place_words};
use crate::findings::symbols::Symbols;
use rashomon_abi::record::{input, sync_source};
use rashomon_event::Frame;
use rashomon_trace::{InputFile, InputRecord, LoadedTrace};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// `None`: there was none.
pub(crate) fn input_words<S: Symbols + ?Sized>(loaded: &LoadedTrace, symbols: &S) -> Option<String> {
    let input = loaded.input?;
    let stack = Describer::new(&loaded.trace, &loaded.sync_objects, symbols).stack(input.site, input.context);
    let known = Frame::best_known(&stack).filter(|frame| frame.function.is_some());
    let place = known.map_or_else(String::new, |frame| format!(", to {}", place_words(frame)));
    let what = origin(&input);
    let advice = match input.file {
        Some(file) if file.descriptor == 0 && input.source != sync_source::SIGNAL => "; with `--stdin FILE` all read the same",
        _ => "",
    };
    Some(format!("external input{what}{place}: a re-execution in which it differs may leave its schedule from there on{advice}"))
}

fn origin(input: &InputRecord) -> String {
    match (input.source, input.file) {
        (sync_source::SIGNAL, _) => format!(", {}", signal_words(input.object)),
        (sync_source::PROCESS, _) => ", the end of another process".into(),
        (_, Some(file)) => format!(" from {}", file_words(&file)),
        _ => String::new(),
    }
}

fn signal_words(number: u64) -> String {
    match i32::try_from(number).ok().and_then(signal_name) {
        Some(name) => format!("signal {name}"),
        None => "a signal".into(),
    }
}

/// Those that others send.
fn signal_name(number: i32) -> Option<&'static str> {
    const NAMES: [(i32, &str); 12] = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (3, "SIGQUIT"),
        (6, "SIGABRT"),
        (10, "SIGUSR1"),
        (12, "SIGUSR2"),
        (13, "SIGPIPE"),
        (14, "SIGALRM"),
        (15, "SIGTERM"),
        (17, "SIGCHLD"),
        (28, "SIGWINCH"),
        (29, "SIGIO"),
    ];
    NAMES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// `a pipe (descriptor 0, standard input)`, `a socket to 127.0.0.1:80 (descriptor 5)`, `/dev/pts/0 (descriptor 3)`.
fn file_words(file: &InputFile) -> String {
    let number = match file.descriptor {
        0 => "descriptor 0, standard input".to_owned(),
        number => format!("descriptor {number}"),
    };
    let what = match file.what {
        input::PEER => peer_words(&file.name),
        _ => path_words(&file.name),
    };
    format!("{what} ({number})")
}

fn path_words(name: &[u8]) -> String {
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    let path = String::from_utf8_lossy(&name[..end]);
    match path.split_once(':').map(|(kind, _)| kind) {
        Some("pipe") => "a pipe".into(),
        Some("socket") => "a socket".into(),
        _ if path == "anon_inode:[timerfd]" => "a timer".into(),
        _ if path.is_empty() => "a file".into(),
        // The beginning was left out.
        _ if end == name.len() => format!("…{path}"),
        _ => path.into_owned(),
    }
}

/// Of a `struct sockaddr`.
fn peer_words(address: &[u8; input::NAME_BYTES]) -> String {
    const UNIX: u16 = 1;
    const INTERNET: u16 = 2;
    const INTERNET_6: u16 = 10;
    let port = u16::from_be_bytes([address[2], address[3]]);
    let words = |address: SocketAddr| format!("a socket to {address}");
    match u16::from_le_bytes([address[0], address[1]]) {
        UNIX => match address[2..].iter().position(|byte| *byte == 0).unwrap_or(0) {
            0 => "a Unix socket".into(),
            end => format!("the Unix socket {}", String::from_utf8_lossy(&address[2..2 + end])),
        },
        INTERNET => words((Ipv4Addr::new(address[4], address[5], address[6], address[7]), port).into()),
        INTERNET_6 => {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(&address[8..24]);
            words((Ipv6Addr::from(bytes), port).into())
        }
        _ => "a socket".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(descriptor: u32, what: u64, bytes: &[u8]) -> String {
        let mut name = [0; input::NAME_BYTES];
        name[..bytes.len()].copy_from_slice(bytes);
        file_words(&InputFile { descriptor, what, name })
    }

    #[test]
    fn what_input_came_from_has_a_name() {
        assert_eq!(file(0, input::PATH, b"pipe:[4711]"), "a pipe (descriptor 0, standard input)");
        assert_eq!(file(3, input::PATH, b"/dev/pts/0"), "/dev/pts/0 (descriptor 3)");
        assert_eq!(file(4, input::PATH, b"anon_inode:[timerfd]"), "a timer (descriptor 4)");
        assert_eq!(file(5, input::PEER, &[2, 0, 31, 144, 127, 0, 0, 1]), "a socket to 127.0.0.1:8080 (descriptor 5)");
        assert_eq!(file(5, input::PEER, b"\x01\0/run/log\0"), "the Unix socket /run/log (descriptor 5)");
        let mut six = [0; 24];
        (six[0], six[3], six[23]) = (10, 80, 1);
        assert_eq!(file(6, input::PEER, &six), "a socket to [::1]:80 (descriptor 6)");
        assert_eq!(file(7, input::PATH, &[b'x'; input::NAME_BYTES]), format!("…{} (descriptor 7)", "x".repeat(48)));
        assert_eq!(signal_words(15), "signal SIGTERM");
        assert_eq!(signal_words(4000), "a signal");
    }
}
