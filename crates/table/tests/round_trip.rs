//! What is written is read back by the crate's own reader, cell by cell.

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use proptest::prelude::*;
use rashomon_table::{COLUMNS, Kind, Row, TableWriter, VERSION};
use std::fs::File;
use std::io::{self, Write};

/// A row as it is read.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Null,
    Number(u64),
    Text(String),
    Flag(bool),
    List(Vec<u64>),
}

/// One value for each column, of the column's kind.
fn row() -> impl Strategy<Value = Vec<Value>> {
    let columns: Vec<BoxedStrategy<Value>> = COLUMNS
        .iter()
        .map(|column| {
            let small = matches!(column.name, "thread" | "child" | "line" | "ordinal");
            let value = match column.kind {
                Kind::Number if small => any::<u32>().prop_map(|number| Value::Number(number.into())).boxed(),
                Kind::Number => (0..=i64::MAX as u64).prop_map(Value::Number).boxed(),
                Kind::Word => any::<u64>().prop_map(Value::Number).boxed(),
                Kind::Text => "[a-zé]{0,3}".prop_map(Value::Text).boxed(),
                Kind::Flag => any::<bool>().prop_map(Value::Flag).boxed(),
                Kind::List => proptest::collection::vec(0..9_u64, 0..4).prop_map(Value::List).boxed(),
            };
            if column.required { value } else { prop_oneof![Just(Value::Null), value].boxed() }
        })
        .collect();
    columns
}

fn write(rows: &[Vec<Value>], group: usize) -> Vec<u8> {
    let mut table = TableWriter::with_groups(Vec::new(), group).unwrap();
    for values in rows {
        let value = |name: &str| &values[COLUMNS.iter().position(|column| column.name == name).unwrap()];
        let number = |name: &str| match value(name) {
            Value::Number(number) => Some(*number),
            _ => None,
        };
        let small = |name: &str| number(name).map(|number| u32::try_from(number).unwrap());
        let flag = |name: &str| match value(name) {
            Value::Flag(flag) => Some(*flag),
            _ => None,
        };
        let mut texts = Vec::new();
        for (place, cell) in values.iter().enumerate() {
            if let Value::Text(text) = cell {
                // One text by its content, as the writer makes each once.
                let number = text.bytes().fold(1, |hash: u64, byte| hash.wrapping_mul(257) + u64::from(byte));
                texts.push((COLUMNS[place].name, table.text(0, number, || text.clone())));
            }
        }
        let text = |name: &str| texts.iter().find(|(named, _)| *named == name).map(|(_, text)| *text);
        let Value::List(held) = value("held") else { panic!("a list") };
        let thread = (small("thread").unwrap(), text("thread_name").unwrap());
        let row = Row {
            reads: flag("reads"),
            writes: flag("writes"),
            atomic: flag("atomic"),
            variable: number("variable"),
            variable_name: text("variable_name"),
            address: number("address"),
            size: number("size"),
            value_read: number("value_read"),
            value_written: number("value_written"),
            memory_order: text("memory_order"),
            lock: number("lock"),
            lock_name: text("lock_name"),
            takes: flag("takes"),
            held,
            object: number("object"),
            object_name: text("object_name"),
            region: text("region"),
            child: small("child"),
            child_name: text("child_name"),
            woken_by: number("woken_by"),
            location: text("location"),
            function: text("function"),
            file: text("file"),
            line: small("line"),
            ordinal: small("ordinal"),
            ..Row::new(number("event").unwrap(), thread, text("operation").unwrap())
        };
        table.write(&row).unwrap();
    }
    table.finish().unwrap()
}

fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Long(number) => Value::Number(*number as u64),
        Field::ULong(number) => Value::Number(*number),
        Field::Str(text) => Value::Text(text.clone()),
        Field::Bool(flag) => Value::Flag(*flag),
        Field::ListInternal(list) => {
            let number = |field: &Field| match value(field) {
                Value::Number(number) => number,
                other => panic!("{other:?} in a list"),
            };
            Value::List(list.elements().iter().map(number).collect())
        }
        other => panic!("{other:?}"),
    }
}

/// The rows, and how many groups they come in.
fn read(file: &[u8]) -> (Vec<Vec<Value>>, usize) {
    let reader = SerializedFileReader::new(opened(file)).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(|row| {
        let row = row.unwrap();
        let names: Vec<&str> = row.get_column_iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, COLUMNS.map(|column| column.name));
        row.get_column_iter().map(|(_, field)| value(field)).collect()
    });
    (rows.collect(), reader.num_row_groups())
}

fn opened(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_cell_comes_back(rows in proptest::collection::vec(row(), 0..40), group in 1..9_usize) {
        let (back, groups) = read(&write(&rows, group));
        prop_assert_eq!(groups, rows.len().div_ceil(group));
        prop_assert_eq!(back, rows);
    }
}

#[test]
fn a_table_without_rows_has_its_columns() {
    let file = write(&[], 5);
    let reader = SerializedFileReader::new(opened(&file)).unwrap();
    let metadata = reader.metadata().file_metadata();
    assert_eq!((metadata.num_rows(), reader.num_row_groups()), (0, 0));
    let names: Vec<&str> = metadata.schema().get_fields().iter().map(|field| field.name()).collect();
    assert_eq!(names, COLUMNS.map(|column| column.name));
    let versions: Vec<_> = metadata.key_value_metadata().unwrap().iter().map(|it| (it.key.as_str(), it.value.clone())).collect();
    assert_eq!(versions, [("rashomon.events", Some(VERSION.to_string()))]);
}

/// Takes so many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// However far the writer gets, it says what was wrong with the stream.
#[test]
fn a_full_disk_is_said() {
    for room in [0, 3, 4, 100, 3_000] {
        let write = || {
            let mut table = TableWriter::with_groups(Full(room), 4)?;
            for event in 0..400 {
                let texts = (table.text(0, event, || format!("thread {event}")), table.word("read"));
                table.write(&Row::new(event, (1, texts.0), texts.1))?;
            }
            table.finish().map(drop)
        };
        match write() {
            Err(rashomon_table::TableError::Io(error)) => assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{room}"),
            other => panic!("{room}: {other:?}"),
        }
    }
}

/// The book names every column, in the order of the file.
#[test]
fn the_chapter_has_every_column() {
    let chapter = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to/sql.md")).unwrap();
    let table = chapter.split("| column |").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let cells = table.lines().skip(2).filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let named: Vec<&str> = cells.flat_map(|cell| cell.split(", ").map(|name| name.trim_matches('`'))).collect();
    assert_eq!(named, COLUMNS.map(|column| column.name));
    assert!(chapter.contains(&format!("`rashomon.events` = {VERSION}")));
}
