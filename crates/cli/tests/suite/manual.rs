//! What is made from the definition of the command line: the book's reference, manual pages, completions.

use crate::support::place::Place;
use std::path::Path;

#[test]
fn the_reference_of_the_book_is_that_of_the_command_line() {
    let made = Place::new().rashomon(&["reference"]).expect(0, &[]).out;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(made == stored, "{} is stale: cargo xtask book", path.display());
}

#[test]
fn every_command_has_a_page() {
    let place = Place::new();
    place.rashomon(&["man", "--output", "pages"]).expect(0, &[]);
    for (page, title) in
        [("rashomon", "RASHOMON"), ("rashomon-check", "RASHOMON-CHECK"), ("rashomon-trace-gen", "RASHOMON-TRACE-GEN")]
    {
        let text = std::fs::read_to_string(place.path(&format!("pages/{page}.1"))).unwrap();
        assert!(text.contains(&format!(".TH {title} 1")), "{text}");
    }
    let one = place.rashomon(&["man", "trace", "gen"]).expect(0, &[]);
    assert_eq!(one.out, std::fs::read_to_string(place.path("pages/rashomon-trace-gen.1")).unwrap());
    place.rashomon(&["man", "nothing"]).expect(125, &["no command nothing"]);
}

#[test]
fn shells_complete_our_options() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.rashomon(&["completions", shell]).expect(0, &[]);
        assert!(script.out.contains("trust-library"), "{shell}: {script}");
    }
}

/// What is printed is what is published; `crates/report/tests/schema.rs` compares it with the types.
#[test]
fn schemas_are_printed() {
    let place = Place::new();
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    for (arguments, file) in [
        (&["schema"][..], "rashomon-report-2.schema.json"),
        (&["schema", "warning"], "rashomon-warning-1.schema.json"),
        (&["schema", "analysis"], "rashomon-analysis-2.schema.json"),
    ] {
        assert_eq!(place.rashomon(arguments).expect(0, &[]).out, std::fs::read_to_string(reference.join(file)).unwrap());
    }
    place.rashomon(&["schema", "nothing"]).expect(2, &["invalid value 'nothing'"]);
}
