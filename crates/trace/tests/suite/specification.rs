//! The specification in prose says what the code says.

use rashomon_abi::record::{CHUNK_BYTES, CHUNK_HEADER_WORDS, CHUNK_MAGIC, COMPRESSED_MAGIC, MAX_ARGUMENTS, Op, SITE_BIAS};
use rashomon_abi::{PROTOCOL_VERSION, SESSION_VARIABLE, control, header};

fn specification() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/trace-format.md");
    std::fs::read_to_string(path).expect("the specification is there")
}

/// Cells of the table rows that begin with this number, anywhere in the text.
fn rows<'a>(text: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let section = text.split("\n## ").flat_map(|part| part.split("\n### ")).find(|part| part.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("no section {heading}"));
    section.lines().filter(|line| line.starts_with("| ")).map(|line| line.split('|').map(str::trim).skip(1).collect()).collect()
}

#[test]
fn every_operation_is_specified() {
    let text = specification();
    let rows = rows(&text, "Operations");
    for op in Op::ALL {
        let name = format!("`{}`", op.name());
        let row = rows.iter().find(|row| row[1] == name).unwrap_or_else(|| panic!("{name} has no row"));
        assert_eq!(row[0], (*op as u64).to_string(), "{name}");
        assert_eq!(row[2], if op.has_ordinal() { "yes" } else { "no" }, "{name}");
    }
    // Headings and the line below them apart, nothing else is specified.
    assert_eq!(rows.iter().filter(|row| row[0].parse::<u64>().is_ok()).count(), Op::ALL.len());
}

#[test]
fn words_are_where_the_tables_say() {
    let text = specification();
    let places = |heading: &str| -> Vec<(String, usize)> {
        let rows = rows(&text, heading);
        let numbered = rows.iter().filter_map(|row| Some((row.get(2)?.to_string(), row[0].parse().ok()?)));
        numbered.collect()
    };
    let header_words = places("`header`");
    for (name, word) in [
        ("magic", header::field::MAGIC),
        ("version", header::field::VERSION),
        ("state", header::field::STATE),
        ("mode", header::field::MODE),
        ("sequence", header::field::SEQUENCE),
        ("notes", header::field::NOTES),
        ("not re-executable from", header::field::NOT_REEXECUTABLE_FROM),
        ("outcome", header::field::OUTCOME),
        ("divergence", header::field::DIVERGENCE),
        ("actual object", header::field::ACTUAL_OBJECT),
        ("turns done", header::field::TURNS_DONE),
        ("virtual time", header::field::VIRTUAL_TIME),
        ("accesses executed", header::field::ACCESSES_EXECUTED),
        ("accesses redundant", header::field::ACCESSES_REDUNDANT),
    ] {
        assert!(header_words.contains(&(name.to_owned(), word)), "header: {name}");
    }
    let control_words = places("`control`");
    for (name, word) in [
        ("mode", control::field::MODE),
        ("policy", control::field::POLICY),
        ("seed", control::field::SEED),
        ("quantum", control::field::QUANTUM),
        ("switch period", control::field::SWITCH_PERIOD),
        ("options", control::field::OPTIONS),
        ("call timeout", control::field::CALL_TIMEOUT_MS),
        ("trace limit", control::field::TRACE_LIMIT),
        ("after", control::field::AFTER),
        ("goal", control::field::GOAL),
        ("base time", control::field::BASE_TIME),
        ("filter locations", control::field::FILTER_LOCATIONS),
        ("kept places", control::field::KEPT),
        ("modules", control::field::MODULES),
        ("goals", control::field::GOALS),
        ("string bytes", control::field::STRING_BYTES),
    ] {
        assert!(control_words.contains(&(name.to_owned(), word)), "control: {name}");
    }
    for (heading, table) in [("`header`", &header_words), ("`control`", &control_words)] {
        for row in rows(&text, heading).iter().filter(|row| row.len() > 3) {
            if let (Ok(word), Ok(byte)) = (row[0].parse::<usize>(), row[1].parse::<usize>()) {
                assert_eq!(byte, word * 8, "{heading}: {row:?}");
            }
        }
        assert!(!table.is_empty());
    }
}

#[test]
fn constants_are_quoted_right() {
    let text = specification();
    for quoted in [
        format!("`{SESSION_VARIABLE}`"),
        format!("`{:#018x}`", header::MAGIC),
        format!("`{:#018x}`", control::MAGIC),
        format!("`{CHUNK_MAGIC:#018x}`"),
        format!("`{COMPRESSED_MAGIC:#018x}`"),
        format!("chunks of {CHUNK_BYTES} bytes"),
        format!("at most {}; 0 while", CHUNK_BYTES - CHUNK_HEADER_WORDS * 8),
        format!("previous site + {SITE_BIAS} "),
        format!("≤ {MAX_ARGUMENTS} argument words"),
        format!("# The session format, version {PROTOCOL_VERSION}"),
        format!("A head of {} words", control::HEAD_WORDS),
    ] {
        assert!(text.contains(&quoted), "the specification does not say {quoted}");
    }
    assert_eq!(header::HEADER_BYTES, 4096);
    assert_eq!(control::MAX_ENTRIES, 1 << 24);
}
