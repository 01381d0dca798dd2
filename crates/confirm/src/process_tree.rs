//! Which processes belong to an execution, and where they can be reached, by what the kernel tells in `/proc`.
//!
//! A process belongs to it if it descends from the one that we started, is in that one's group, or records into the session (a
//! daemon has left both). A socket counts from the moment at which the kernel takes connections or datagrams for it. Sockets are
//! told by process, and there by descriptor: in the order in which they were made, unless descriptors were closed in between.
//! (The kernel numbers sockets per processor.) Limit: a datagram socket that a program only sends from looks like one it serves
//! with.

use crate::descendants;
use crate::waiting::Handle;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Numbers of those that are alive now.
pub(crate) fn members(started: i32, own_group: bool, session: &Path) -> BTreeSet<i32> {
    processes(started, own_group, session).iter().map(|process| process.number).collect()
}

/// Those that are alive now.
pub(crate) fn processes(started: i32, own_group: bool, session: &Path) -> Vec<Process> {
    let mut members: BTreeSet<i32> = descendants::recording(session).into_iter().collect();
    members.insert(started);
    let all: Vec<Process> = numbers().filter_map(Process::read).collect();
    loop {
        let before = members.len();
        let belongs = |process: &&Process| members.contains(&process.parent) || own_group && process.group == started;
        let found: Vec<i32> = all.iter().filter(belongs).map(|process| process.number).collect();
        members.extend(found);
        if members.len() == before {
            break;
        }
    }
    all.into_iter().filter(|process| members.contains(&process.number) && !process.is_gone()).collect()
}

/// The children of a process that has one thread.
pub(crate) fn children(number: i32) -> Vec<i32> {
    match fs::read_to_string(format!("/proc/{number}/task/{number}/children")) {
        Ok(list) => list.split_whitespace().filter_map(|child| child.parse().ok()).collect(),
        // A kernel without that list.
        Err(_) => numbers().filter(|&child| Process::read(child).is_some_and(|child| child.parent == number)).collect(),
    }
}

/// The processes of the machine that we can see.
fn numbers() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A process as it was when it was looked at.
#[derive(Debug)]
pub(crate) struct Process {
    number: i32,
    state: char,
    parent: i32,
    group: i32,
    /// In clock ticks since the machine was started: tells it from a later one of its number.
    begin: u64,
}

impl Process {
    fn read(number: i32) -> Option<Self> {
        let fields = behind_name(Path::new(&format!("/proc/{number}/stat")))?;
        let mut fields = fields.split_whitespace();
        let state = fields.next()?.chars().next()?;
        let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Self { number, state, parent, group, begin: fields.nth(16)?.parse().ok()? })
    }

    /// Whether it is still there, and more than a remainder that its parent has not looked at.
    pub(crate) fn is_alive(&self) -> bool {
        Self::read(self.number).is_some_and(|now| now.begin == self.begin && !now.is_gone())
    }

    /// To wait for its end.
    pub(crate) fn handle(&self) -> Handle {
        Handle::of(self.number.cast_unsigned())
    }

    /// To this process alone: by now its number may be another one's.
    pub(crate) fn signal(&self, signal: Signal) {
        let Some(number) = Pid::from_raw(self.number) else { return };
        let held = pidfd_open(number, PidfdFlags::empty());
        if !self.is_alive() {
            return;
        }
        // Failure means that it has ended by itself.
        let _ = match held {
            Ok(held) => pidfd_send_signal(held, signal),
            // A kernel without such handles.
            Err(Errno::NOSYS | Errno::PERM) => kill_process(number, signal),
            Err(error) => Err(error),
        };
    }

    fn is_gone(&self) -> bool {
        is_over(self.state) && living_thread(self.number).is_none()
    }
}

const fn is_over(state: char) -> bool {
    matches!(state, 'Z' | 'X' | 'x')
}

/// A thread of the process that has not ended. The first thread may end before the others do; what they share is then shown under
/// their numbers only.
fn living_thread(process: i32) -> Option<i32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let mut living = threads.filter_map(|thread| {
        let state = behind_name(&thread.path().join("stat"))?.trim_start().chars().next()?;
        if is_over(state) { None } else { thread.file_name().to_str()?.parse().ok() }
    });
    living.next()
}

/// The number under which the kernel shows what the threads of a process share.
pub(crate) fn shown_as(process: i32) -> i32 {
    living_thread(process).unwrap_or(process)
}

/// How long the kernel may take to be done with a process that was ended.
const DEATH: Duration = Duration::from_secs(5);

/// Ends processes, and waits until they write no more.
pub(crate) fn end(processes: &[Process]) {
    processes.iter().for_each(|process| process.signal(Signal::KILL));
    let start = Instant::now();
    while start.elapsed() < DEATH && processes.iter().any(Process::is_alive) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Of a `stat` of a process or thread: the fields behind its name, which is in parentheses and may hold anything, also half a
/// character.
pub(crate) fn behind_name(stat: &Path) -> Option<String> {
    let mut stat = fs::read(stat).ok()?;
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    String::from_utf8(stat.split_off(end + 1)).ok()
}

/// Whether a process of that number is there and more than a remainder that its parent has not looked at.
pub(crate) fn is_alive(number: i32) -> bool {
    Process::read(number).is_some_and(|process| !process.is_gone())
}

/// Whether a thread of these processes runs, or waits for a disk.
pub(crate) fn is_busy(members: &BTreeSet<i32>) -> bool {
    members.iter().any(|number| {
        let threads = fs::read_dir(format!("/proc/{number}/task")).into_iter().flatten().flatten();
        let mut states = threads.filter_map(|thread| behind_name(&thread.path().join("stat"))?.trim_start().chars().next());
        states.any(|state| matches!(state, 'R' | 'D'))
    })
}

/// Where clients can come in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Door {
    Port(u16),
    /// A local socket's name; one without a file begins with `@`.
    Socket(PathBuf),
}

/// The doors of these processes.
pub(crate) fn doors(members: &BTreeSet<i32>) -> Vec<Door> {
    // Sockets by the world in which their numbers and ports count.
    let mut worlds: BTreeMap<PathBuf, (i32, BTreeSet<u64>)> = BTreeMap::new();
    // Where a socket was met first.
    let mut places = BTreeMap::new();
    for &process in members {
        let number = shown_as(process);
        let sockets = sockets_of(number);
        if !sockets.is_empty() {
            let world = fs::read_link(format!("/proc/{number}/ns/net")).unwrap_or_default();
            worlds.entry(world).or_insert_with(|| (number, BTreeSet::new())).1.extend(sockets.values());
        }
        for (descriptor, inode) in sockets {
            places.entry(inode).or_insert((number, descriptor));
        }
    }
    let mut found = Vec::new();
    for (number, inodes) in worlds.values() {
        let mut doors = BTreeMap::new();
        let table = |name: &str| fs::read(format!("/proc/{number}/net/{name}")).unwrap_or_default();
        for (name, state) in [("tcp", LISTENS), ("tcp6", LISTENS), ("udp", UNCONNECTED), ("udp6", UNCONNECTED)] {
            let table = table(name);
            doors.extend(lines(&table).filter_map(|line| port_of(line, state)));
        }
        let table = table("unix");
        doors.extend(lines(&table).filter_map(socket_of));
        found.extend(doors.into_iter().filter(|(inode, _)| inodes.contains(inode)));
    }
    found.sort_by_key(|(inode, _)| places.get(inode).copied());
    found.into_iter().map(|(_, door)| door).collect()
}

/// Descriptors, with what they are the sockets of.
fn sockets_of(number: i32) -> BTreeMap<u32, u64> {
    let entries = fs::read_dir(format!("/proc/{number}/fd")).into_iter().flatten().flatten();
    let inode = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, inode))
    };
    entries.filter_map(inode).collect()
}

/// Of a table of the kernel, without its head.
fn lines(table: &[u8]) -> impl Iterator<Item = &str> {
    table.split(|&byte| byte == b'\n').skip(1).filter_map(|line| std::str::from_utf8(line).ok())
}

/// `TCP_LISTEN`, and what the kernel shows of datagram sockets that are bound to a port and connected to nobody.
const LISTENS: &str = "0A";
const UNCONNECTED: &str = "07";

/// `sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode …`
fn port_of(line: &str, state: &str) -> Option<(u64, Door)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, local, remote, found, _, _, _, _, _, inode, ..] = fields.as_slice() else { return None };
    let port = |address: &str| u16::from_str_radix(address.rsplit_once(':')?.1, 16).ok();
    let is_door = *found == state && port(remote) == Some(0);
    let port = port(local).filter(|&port| is_door && port != 0)?;
    Some((inode.parse().ok()?, Door::Port(port)))
}

/// `Num RefCount Protocol Flags Type St Inode Path`: stream sockets that take connections, and datagram sockets with a name.
fn socket_of(line: &str) -> Option<(u64, Door)> {
    const ACCEPTS: u32 = 0x10000;
    let mut rest = line;
    let mut field = || {
        let (field, behind) = rest.trim_start().split_once(' ')?;
        rest = behind;
        Some(field)
    };
    let [_, _, _, flags, kind, _, inode] = [field()?, field()?, field()?, field()?, field()?, field()?, field()?];
    let path = rest.trim_start_matches(' ');
    let accepts = u32::from_str_radix(flags, 16).ok()? & ACCEPTS != 0;
    let is_door = !path.is_empty() && (accepts || kind == "0002");
    is_door.then_some((inode.parse().ok()?, Door::Socket(path.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_are_served() {
        let tcp = |state: &str, remote: &str| {
            format!("   0: 0100007F:1F90 {remote} {state} 00000000:00000000 00:00000000 00000000     0        0 81 1 0000 100")
        };
        assert_eq!(port_of(&tcp("0A", "00000000:0000"), LISTENS), Some((81, Door::Port(8080))));
        assert_eq!(port_of(&tcp("01", "0100007F:1234"), LISTENS), None);
        assert_eq!(port_of(&tcp("07", "00000000:0000"), UNCONNECTED), Some((81, Door::Port(8080))));
        assert_eq!(port_of(&tcp("07", "0100007F:1234"), UNCONNECTED), None);
        assert_eq!(port_of("", LISTENS), None);
    }

    #[test]
    fn local_sockets_that_are_served() {
        let line =
            |flags: &str, kind: &str, path: &str| format!("0000000090ad639b: 00000002 00000000 {flags} {kind} 01  1613{path}");
        let door = |path: &str| Some((1613, Door::Socket(path.into())));
        assert_eq!(socket_of(&line("00010000", "0001", " /run/my socket")), door("/run/my socket"));
        assert_eq!(socket_of(&line("00010000", "0001", " @abstract")), door("@abstract"));
        assert_eq!(socket_of(&line("00000000", "0002", " /run/datagrams")), door("/run/datagrams"));
        assert_eq!(socket_of(&line("00000000", "0001", " /run/connection")), None);
        assert_eq!(socket_of(&line("00010000", "0001", "")), None);
    }

    #[test]
    fn sockets_are_told_by_their_descriptors() {
        let own = BTreeSet::from([std::process::id().cast_signed()]);
        let bound = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let door = |listener: &std::net::TcpListener| Door::Port(listener.local_addr().unwrap().port());
        let (made_first, made_second) = (bound(), bound());
        // The first gets the greater descriptor.
        let moved = made_first.try_clone().unwrap();
        drop(made_first);
        let doors = doors(&own);
        let at = |door: &Door| doors.iter().position(|other| other == door).unwrap();
        assert!(at(&door(&made_second)) < at(&door(&moved)), "{doors:?}");
    }

    #[test]
    fn names_that_end_inside_a_character() {
        // The kernel keeps fifteen bytes of a name: here the first of two that are one character.
        fs::write("/proc/self/comm", "fourteen_bytesé").unwrap();
        let name = fs::read("/proc/self/comm").unwrap();
        assert!(std::str::from_utf8(&name).is_err(), "the name is whole: {name:?}");
        assert!(Process::read(std::process::id().cast_signed()).is_some());
    }

    #[test]
    fn signals_reach_the_process_that_was_looked_at_and_no_later_one() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let seen = Process::read(child.id().cast_signed()).unwrap();
        // As if its number had been given to another process since.
        let earlier = Process { begin: seen.begin - 1, ..Process::read(seen.number).unwrap() };
        earlier.signal(Signal::KILL);
        assert!(!earlier.is_alive() && seen.is_alive());
        end(&[seen]);
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_socket_of_our_own_is_seen_while_it_is_open() {
        let own = BTreeSet::from([std::process::id().cast_signed()]);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let door = Door::Port(listener.local_addr().unwrap().port());
        assert!(doors(&own).contains(&door));
        drop(listener);
        assert!(!doors(&own).contains(&door));
    }
}
