//! From rows to a file: values wait in columns until a group of rows is whole.

use crate::column::{COLUMNS, Column, Kind, VERSION, schema};
use crate::error::TableError;
use crate::row::{Cell, Row, Text};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use rustc_hash::FxHashMap;
use std::io::Write;
use std::sync::Arc;

/// Rows of a group: what is in memory at a time. DuckDB reads groups in parallel.
pub const GROUP: usize = 1 << 18;
/// Texts that are handed to the encoder at a time.
const TEXTS: usize = 1 << 12;

/// Values of one column, those that are not NULL.
#[derive(Debug)]
enum Values {
    Numbers(Vec<i64>),
    /// Numbers of texts of the group.
    Texts(Vec<u32>),
    Flags(Vec<bool>),
}

/// A column of the group that is being filled.
#[derive(Debug)]
struct Filling {
    values: Values,
    /// A row without a value has 0, in lists a row without elements. Not kept where every row has a value.
    levels: Vec<i16>,
    /// Of lists: 0 begins a row.
    repetitions: Vec<i16>,
}

impl Filling {
    fn of(column: &Column) -> Self {
        let values = match column.kind {
            Kind::Number | Kind::Word | Kind::List => Values::Numbers(Vec::new()),
            Kind::Text => Values::Texts(Vec::new()),
            Kind::Flag => Values::Flags(Vec::new()),
        };
        Self { values, levels: Vec::new(), repetitions: Vec::new() }
    }

    fn push(&mut self, cell: Cell<'_>) {
        match (cell, &mut self.values) {
            (Cell::Number(number), Values::Numbers(values)) => {
                // The same bits: unsigned columns say so in the schema.
                values.extend(number.map(|number| number as i64));
                self.levels.push(number.is_some().into());
            }
            (Cell::Text(text), Values::Texts(values)) => {
                values.extend(text);
                self.levels.push(text.is_some().into());
            }
            (Cell::Flag(flag), Values::Flags(values)) => {
                values.extend(flag);
                self.levels.push(flag.is_some().into());
            }
            (Cell::List([]), Values::Numbers(_)) => {
                self.levels.push(0);
                self.repetitions.push(0);
            }
            (Cell::List(list), Values::Numbers(values)) => {
                values.extend(list.iter().map(|number| *number as i64));
                self.levels.resize(self.levels.len() + list.len(), 1);
                self.repetitions.push(0);
                self.repetitions.resize(self.repetitions.len() + list.len() - 1, 1);
            }
            (cell, values) => unreachable!("cells come in the order of the columns: {cell:?} for {values:?}"),
        }
    }

    fn clear(&mut self) {
        match &mut self.values {
            Values::Numbers(values) => values.clear(),
            Values::Texts(values) => values.clear(),
            Values::Flags(values) => values.clear(),
        }
        self.levels.clear();
        self.repetitions.clear();
    }
}

/// Writes rows into a stream, front to back. What is not finished is no Parquet file, as its directory stands at the end.
pub struct TableWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    filling: Vec<Filling>,
    /// Of the group that is being filled.
    rows: usize,
    group: usize,
    texts: Vec<ByteArray>,
    /// By what they name.
    known: FxHashMap<(u8, u64), Text>,
    words: FxHashMap<&'static str, Text>,
}

impl<W: Write + Send> TableWriter<W> {
    pub fn new(out: W) -> Result<Self, TableError> {
        Self::with_groups(out, GROUP)
    }

    /// With so many rows in a group, at least one.
    pub fn with_groups(out: W, group: usize) -> Result<Self, TableError> {
        let schema = Arc::new(parse_message_type(&schema())?);
        let file = SerializedFileWriter::new(out, schema, Arc::new(properties()))?;
        let filling = COLUMNS.iter().map(Filling::of).collect();
        let (texts, known, words) = Default::default();
        Ok(Self { file, filling, rows: 0, group: group.max(1), texts, known, words })
    }

    /// A text for the next row. Within a group it is made once for each `kind` and `number`.
    pub fn text<T: Into<Vec<u8>>>(&mut self, kind: u8, number: u64, make: impl FnOnce() -> T) -> Text {
        *self.known.entry((kind, number)).or_insert_with(|| {
            self.texts.push(ByteArray::from(make().into()));
            Text(self.texts.len() as u32 - 1)
        })
    }

    /// One of the tool's own words, for the next row.
    pub fn word(&mut self, word: &'static str) -> Text {
        *self.words.entry(word).or_insert_with(|| {
            self.texts.push(ByteArray::from(word));
            Text(self.texts.len() as u32 - 1)
        })
    }

    pub fn write(&mut self, row: &Row<'_>) -> Result<(), TableError> {
        for (column, cell) in self.filling.iter_mut().zip(row.cells()) {
            column.push(cell);
        }
        self.rows += 1;
        if self.rows == self.group { self.flush() } else { Ok(()) }
    }

    /// Behind the last row. Returns the stream, flushed.
    pub fn finish(mut self) -> Result<W, TableError> {
        if self.rows > 0 {
            self.flush()?;
        }
        Ok(self.file.into_inner()?)
    }

    fn flush(&mut self) -> Result<(), TableError> {
        let mut group = self.file.next_row_group()?;
        for (column, filling) in COLUMNS.iter().zip(&mut self.filling) {
            write_column(&mut group, column, filling, &self.texts)?;
            filling.clear();
        }
        group.close()?;
        self.rows = 0;
        self.texts.clear();
        self.known.clear();
        self.words.clear();
        Ok(())
    }
}

fn properties() -> WriterProperties {
    let version = KeyValue::new("rashomon.events".to_owned(), VERSION.to_string());
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("rashomon ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![version]))
        // Of groups; readers skip those that a filter leaves nothing of. Pages are small enough.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    for column in &COLUMNS {
        let path = match column.kind {
            Kind::List => ColumnPath::new(vec![column.name.to_owned(), "list".to_owned(), "element".to_owned()]),
            _ => ColumnPath::from(column.name),
        };
        if matches!(column.kind, Kind::Number | Kind::Word | Kind::List) {
            // Where there are too many values for a dictionary.
            properties = properties.set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED);
        }
        properties = properties.set_column_dictionary_enabled(path, !column.ascends && column.kind != Kind::Flag);
    }
    properties.build()
}

fn write_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column,
    filling: &Filling,
    texts: &[ByteArray],
) -> Result<(), TableError> {
    let Some(mut out) = group.next_column()? else { unreachable!("the schema has every column") };
    let levels = (!column.required || column.kind == Kind::List).then_some(&filling.levels[..]);
    let repetitions = (column.kind == Kind::List).then_some(&filling.repetitions[..]);
    match &filling.values {
        Values::Numbers(values) => write_all::<Int64Type>(out.typed(), values, levels, repetitions)?,
        Values::Flags(values) => write_all::<BoolType>(out.typed(), values, levels, None)?,
        Values::Texts(values) => write_texts(out.typed(), values, levels, texts)?,
    }
    Ok(out.close()?)
}

fn write_all<T: DataType>(
    out: &mut ColumnWriterImpl<'_, T>,
    values: &[T::T],
    levels: Option<&[i16]>,
    repetitions: Option<&[i16]>,
) -> Result<(), TableError> {
    out.write_batch(values, levels, repetitions)?;
    Ok(())
}

/// A part at a time, as texts take more room than their numbers.
fn write_texts(
    out: &mut ColumnWriterImpl<'_, ByteArrayType>,
    mut values: &[u32],
    levels: Option<&[i16]>,
    texts: &[ByteArray],
) -> Result<(), TableError> {
    let mut part = Vec::with_capacity(TEXTS);
    let look_up = |part: &mut Vec<ByteArray>, values: &[u32]| {
        part.clear();
        part.extend(values.iter().map(|value| texts[*value as usize].clone()));
    };
    let Some(levels) = levels else {
        for values in values.chunks(TEXTS) {
            look_up(&mut part, values);
            out.write_batch(&part, None, None)?;
        }
        return Ok(());
    };
    for levels in levels.chunks(TEXTS) {
        let (there, rest) = values.split_at(levels.iter().filter(|level| **level != 0).count());
        values = rest;
        look_up(&mut part, there);
        out.write_batch(&part, Some(levels), None)?;
    }
    Ok(())
}
