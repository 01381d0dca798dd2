//! The rooms of the runtime: each folder of `runtime/src` says in its `mod.rs` which others its code may call.

use crate::files;
use crate::structure::files_named_by_files;
use petgraph::algo::toposort;
use petgraph::graph::DiGraph;
use std::collections::{BTreeMap, BTreeSet};

const SOURCES: &str = "runtime/src/";
/// How a `mod.rs` begins the line that names the rooms it may call.
const CALLS: &str = "//! Calls: ";

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

/// A slot of a thread's record says nothing of what is in it: one function does, which everybody else asks.
#[test]
fn each_slot_of_a_record_is_asked_in_one_place() {
    const RECORD: &str = "runtime/src/system/thread.rs";
    let all = files::all();
    let inside: Vec<_> = all.iter().filter(|file| file.is_rust() && file.path.starts_with(SOURCES)).collect();
    let record = inside.iter().find(|file| file.path == RECORD).expect("the file of records");
    let slots = record.text.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(": Slot<"));
    let mut count = 0;
    for (slot, _) in slots {
        let asks = format!("self.{slot}.holds()");
        let places: usize = inside.iter().map(|file| file.text.matches(&asks).count()).sum();
        assert_eq!(places, 1, "{slot}: its type is given in so many places");
        count += 1;
    }
    let all_asks: usize = inside.iter().map(|file| file.text.matches(".holds()").count()).sum();
    assert_eq!(all_asks, count, "somebody asks a slot in another way");
}

#[test]
fn rooms_call_those_that_they_say() {
    let rooms = rooms();
    let mut against = Vec::new();
    for (file, named) in files_named_by_files(&format!("{SOURCES}lib.rs")) {
        if let (Some(from), Some(to)) = (room(&file), room(&named))
            && from != to
            && !rooms[from].contains(to)
        {
            against.push(format!("{file} names {named}"));
        }
    }
    assert!(against.is_empty(), "files that call a room which theirs does not say it calls:\n{}", against.join("\n"));
}
