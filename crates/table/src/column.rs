//! Which columns there are, in the order of the file.

use Kind::{Flag, List, Number, Text, Word};

/// Of the table's columns. One that is added keeps it; one that changes its meaning or goes away raises it.
pub const VERSION: u32 = 1;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 64 bits, signed, so that differences are what they look like.
    Number,
    /// 64 bits, unsigned.
    Word,
    Text,
    Flag,
    /// A list of numbers; never NULL, but may be empty.
    List,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
    /// Whether every row has a value.
    pub required: bool,
    /// Whether values of neighbouring rows are close to each other, and repeated ones rare.
    pub(crate) ascends: bool,
}

impl Column {
    const fn always(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, required: true, ascends: false }
    }

    const fn maybe(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, required: false, ascends: false }
    }

    const fn ascending(self) -> Self {
        Self { ascends: true, ..self }
    }
}

/// [`crate::Row`] says what each of them means; its cells come in this order.
pub const COLUMNS: [Column; 29] = [
    Column::always("event", Number).ascending(),
    Column::always("thread", Number),
    Column::always("thread_name", Text),
    Column::always("operation", Text),
    Column::maybe("reads", Flag),
    Column::maybe("writes", Flag),
    Column::maybe("atomic", Flag),
    Column::maybe("variable", Number),
    Column::maybe("variable_name", Text),
    Column::maybe("address", Word),
    Column::maybe("size", Number),
    Column::maybe("value_read", Word),
    Column::maybe("value_written", Word),
    Column::maybe("memory_order", Text),
    Column::maybe("lock", Number),
    Column::maybe("lock_name", Text),
    Column::maybe("takes", Flag),
    Column::always("held", List),
    Column::maybe("object", Number),
    Column::maybe("object_name", Text),
    Column::maybe("region", Text),
    Column::maybe("child", Number),
    Column::maybe("child_name", Text),
    Column::maybe("woken_by", Number),
    Column::maybe("location", Text),
    Column::maybe("function", Text),
    Column::maybe("file", Text),
    Column::maybe("line", Number),
    Column::maybe("ordinal", Number).ascending(),
];

/// As a Parquet schema in text.
pub(crate) fn schema() -> String {
    let mut text = String::from("message events {\n");
    for column in &COLUMNS {
        let Column { name, kind, required, .. } = column;
        let repetition = if *required { "REQUIRED" } else { "OPTIONAL" };
        let line = match kind {
            Number => format!("{repetition} INT64 {name};"),
            Word => format!("{repetition} INT64 {name} (INTEGER(64,false));"),
            Text => format!("{repetition} BYTE_ARRAY {name} (STRING);"),
            Flag => format!("{repetition} BOOLEAN {name};"),
            List => format!("REQUIRED group {name} (LIST) {{ REPEATED group list {{ REQUIRED INT64 element; }} }}"),
        };
        text.push_str(&line);
        text.push('\n');
    }
    text.push('}');
    text
}
