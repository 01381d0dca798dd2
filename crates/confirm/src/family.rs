//! Which processes belong to an execution, and where they can be reached, by what the kernel tells in `/proc`.
//!
//! A process belongs to it if it descends from the one that we started, is in that one's group, or records into the session (a daemon has left both). A socket counts from
//! the moment at which the kernel takes connections or datagrams for it. Sockets are told in the order in which they were made. Limit: a datagram socket that a program
//! only sends from looks like one it serves with.

use crate::descendants;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Those that are alive now.
pub(crate) fn members(started: i32, own_group: bool, session: &Path) -> BTreeSet<i32> {
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
    let alive: BTreeSet<i32> = all.iter().filter(|process| !process.is_gone()).map(|process| process.number).collect();
    members.intersection(&alive).copied().collect()
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

struct Process {
    number: i32,
    state: char,
    parent: i32,
    group: i32,
}

impl Process {
    fn read(number: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        // The name, in parentheses, may hold anything.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?.chars().next()?;
        Some(Self { number, state, parent: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()? })
    }

    fn is_gone(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// Whether a process of that number is there and more than a remainder that its parent has not looked at.
pub(crate) fn is_alive(number: i32) -> bool {
    Process::read(number).is_some_and(|process| !process.is_gone())
}

/// Whether a thread of these processes runs, or waits for a disk.
pub(crate) fn is_busy(members: &BTreeSet<i32>) -> bool {
    members.iter().any(|number| {
        let threads = fs::read_dir(format!("/proc/{number}/task")).into_iter().flatten().flatten();
        let mut states = threads.filter_map(|thread| {
            let stat = fs::read_to_string(thread.path().join("stat")).ok()?;
            stat.rsplit_once(')')?.1.trim_start().chars().next()
        });
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
    for &number in members {
        let inodes = sockets_of(number);
        if !inodes.is_empty() {
            let world = fs::read_link(format!("/proc/{number}/ns/net")).unwrap_or_default();
            worlds.entry(world).or_insert_with(|| (number, BTreeSet::new())).1.extend(inodes);
        }
    }
    let mut doors = BTreeMap::new();
    for (number, inodes) in worlds.values() {
        let table = |name: &str| fs::read(format!("/proc/{number}/net/{name}")).unwrap_or_default();
        for (name, state) in [("tcp", LISTENS), ("tcp6", LISTENS), ("udp", UNCONNECTED), ("udp6", UNCONNECTED)] {
            let table = table(name);
            doors.extend(lines(&table).filter_map(|line| port_of(line, state)));
        }
        let table = table("unix");
        doors.extend(lines(&table).filter_map(socket_of));
        doors.retain(|inode, _| inodes.contains(inode));
    }
    doors.into_values().collect()
}

fn sockets_of(number: i32) -> BTreeSet<u64> {
    let entries = fs::read_dir(format!("/proc/{number}/fd")).into_iter().flatten().flatten();
    let inode = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
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
    fn a_socket_of_our_own_is_seen_while_it_is_open() {
        let own = BTreeSet::from([std::process::id().cast_signed()]);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let door = Door::Port(listener.local_addr().unwrap().port());
        assert!(doors(&own).contains(&door));
        drop(listener);
        assert!(!doors(&own).contains(&door));
    }
}
