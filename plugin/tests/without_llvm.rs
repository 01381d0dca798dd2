//! The modules that do not need LLVM, with their tests.

#[path = "../src/graph.rs"]
mod graph;
#[path = "../src/table.rs"]
mod table;

use rashomon_abi::deep;
use table::Table;

#[test]
fn a_table_begins_with_its_version_and_is_read_as_it_is_written() {
    let mut table = Table::new().number(300);
    table.push_bytes(b"name");
    table.push_all(&[1, 200]);
    let mut rest = Table::new();
    rest.push(7);
    table.append(&rest);
    let mut bytes = table.bytes();
    let mut next = || {
        let (number, count) = deep::number(bytes).expect("a number");
        bytes = &bytes[count..];
        number
    };
    assert_eq!([next(), next(), next()], [deep::VERSION, 300, 4]);
    for byte in b"name" {
        assert_eq!(next(), u64::from(*byte));
    }
    assert_eq!([next(), next(), next()], [2, 1, 200]);
    assert_eq!([next(), next()], [deep::VERSION, 7]);
}

#[test]
fn graphs_are_those_that_the_plugin_uses() {
    let edges = vec![vec![1], vec![1, 2], vec![]];
    assert_eq!(graph::loops(&edges, 0).len(), 1);
    assert_eq!(graph::post_dominators(&edges)[0], Some(1));
}
