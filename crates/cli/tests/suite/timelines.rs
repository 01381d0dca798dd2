//! The executions that an HTML report draws. `cargo xtask evaluate formats-out` looks at such reports in a browser.

use crate::support::place::Place;

/// A lock that orders the accesses of the recording, and no other execution's.
const HIDDEN: &str = include_str!("../../../../examples/listing1.c");

/// Texts of the rows of the first timeline under this heading, without tags.
fn rows(page: &str, heading: &str) -> Vec<String> {
    let (_, behind) = page.split_once(&format!("<h3>{heading}")).unwrap_or_else(|| panic!("no “{heading}”: {page}"));
    let (table, _) = behind.split_once("</table>").expect("a table");
    let (_, body) = table.split_once("<tbody>").expect("rows");
    let text = |row: &str| {
        let parts = row.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
        parts.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    body.split("</tr>").map(text).filter(|row| !row.is_empty()).collect()
}

#[test]
fn the_recorded_and_the_forced_execution_are_drawn() {
    let place = Place::new();
    place.compile("program", HIDDEN);
    let check = ["check", "--output", "store", "--report", "html=page.html", "--", "./program"];
    place.rashomon(&check).expect(66, &["PROVEN: 1 data race"]);
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    let recorded = rows(&page, "Recorded execution");
    let says = |rows: &[String], words: &[&str]| rows.iter().any(|row| words.iter().all(|word| row.contains(word)));
    assert!(says(&recorded, &["main thread", "creates thread 0"]), "{recorded:#?}");
    assert!(says(&recorded, &["thread 0", "starts", "after event", "of main thread"]), "{recorded:#?}");
    assert!(says(&recorded, &["acquires mutex", "holds mutex"]), "{recorded:#?}");
    let forced = rows(&page, "Forced execution");
    // Neither access happened: both threads stand before theirs.
    let stands = forced.iter().filter(|row| row.starts_with("–") && row.contains("stands before its")).count();
    assert_eq!(stands, 2, "{forced:#?}");
    // The store has what is drawn, for other reports of it.
    let again = place.rashomon(&["report", "--store", "store", "--format", "html"]).expect(0, &[]);
    assert_eq!(rows(&again.out, "Forced execution"), forced);
    assert!(page.contains(r#"<section id="whole">"#));
}
