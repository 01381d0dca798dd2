//! The rooms of the runtime: each folder of `runtime/src` says in its `mod.rs` which others its code may call.

use crate::files;
use crate::structure::files_named_by_files;
use petgraph::algo::toposort;
use petgraph::graph::DiGraph;
use std::collections::{BTreeMap, BTreeSet};

const SOURCES: &str = "runtime/src/";
/// How a `mod.rs` begins the line that names the rooms it may call.
const CALLS: &str = "//! Calls: ";

/// Calls against the directions, from a file to a room. An entry that is not needed any more fails, so the list can only shrink.
const EXCEPTIONS: [(&str, &str); 4] = [
    ("system/thread.rs", "detect"),
    ("system/thread.rs", "provoke"),
    ("system/thread.rs", "record"),
    ("system/thread.rs", "serial"),
];

fn room(path: &str) -> Option<&str> {
    path.strip_prefix(SOURCES)?.split_once('/').map(|(room, _)| room)
}

/// Each room, with those that it says it calls.
fn rooms() -> BTreeMap<String, BTreeSet<String>> {
    let mut rooms = BTreeMap::new();
    for file in files::all().iter().filter(|file| file.path.starts_with(SOURCES) && file.path.ends_with("/mod.rs")) {
        let Some(name) = room(&file.path).filter(|name| file.path == format!("{SOURCES}{name}/mod.rs")) else { continue };
        let line = file.text.lines().find_map(|line| line.strip_prefix(CALLS));
        let line = line.unwrap_or_else(|| panic!("{} does not say which rooms it calls: `{CALLS}…`", file.path));
        let calls = line.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        rooms.insert(name.to_owned(), calls);
    }
    rooms
}

#[test]
fn every_file_of_the_runtime_is_in_a_room() {
    let rooms = rooms();
    for file in files::all().iter().filter(|file| file.is_rust() && file.path.starts_with(SOURCES)) {
        let known = room(&file.path).is_some_and(|room| rooms.contains_key(room));
        assert!(known || file.path == format!("{SOURCES}lib.rs"), "{}: put it into the room that it belongs to", file.path);
    }
}

#[test]
fn what_rooms_say_they_call_has_no_cycle() {
    let rooms = rooms();
    let mut graph = DiGraph::<&str, ()>::new();
    let nodes: BTreeMap<&str, _> = rooms.keys().map(|name| (name.as_str(), graph.add_node(name))).collect();
    for (name, calls) in &rooms {
        for called in calls {
            let target =
                nodes.get(called.as_str()).unwrap_or_else(|| panic!("{name} says it calls {called}: there is no such room"));
            graph.add_edge(nodes[name.as_str()], *target, ());
        }
    }
    if let Err(cycle) = toposort(&graph, None) {
        panic!("{} reaches itself by what the rooms say they call", graph[cycle.node_id()]);
    }
}

#[test]
fn rooms_call_those_that_they_say() {
    let rooms = rooms();
    let mut against = BTreeMap::new();
    for (file, named) in files_named_by_files(&format!("{SOURCES}lib.rs")) {
        if let (Some(from), Some(to)) = (room(&file), room(&named))
            && from != to
            && !rooms[from].contains(to)
        {
            against.entry((file[SOURCES.len()..].to_owned(), to.to_owned())).or_insert_with(BTreeSet::new).insert(named);
        }
    }
    let listed = |file: &str, room: &str| EXCEPTIONS.contains(&(file, room));
    let new: Vec<String> = against
        .iter()
        .filter(|((file, room), _)| !listed(file, room))
        .map(|((file, room), named)| format!("(\"{file}\", \"{room}\"): it names {}", Vec::from_iter(named.clone()).join(", ")))
        .collect();
    assert!(new.is_empty(), "files that call a room which theirs does not say it calls:\n{}", new.join("\n"));
    for (file, room) in &EXCEPTIONS {
        let needed = against.contains_key(&((*file).to_owned(), (*room).to_owned()));
        assert!(needed, "{file} does not call {room} any more: take it off the list");
    }
}
