//! The executions that an HTML report draws. `cargo xtask evaluate formats-out` looks at such reports in a browser.

use crate::support::place::Place;

/// A lock that orders the accesses of the recording, and no other execution's.
const HIDDEN: &str = include_str!("../../../../examples/listing1.c");
/// An access, and an end of its memory that nothing orders with it.
const UNORDERED: &str = include_str!("../../../../tests/programs/racy/unmap_unordered.c");
const FLAG: &str = include_str!("../../../../tests/provocation/flag.c");
const CRASHING: &str = include_str!("../../../../tests/loop/null_between.c");
const STUCK: &str = include_str!("../../../../tests/loop/woken_too_early.c");
const LOST_DEPOSIT: &str = include_str!("../../../../tests/loop/lost_deposit.c");
const DESTROYED: &str = "#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int main(void) {
    pthread_mutex_lock(&m);
    pthread_mutex_destroy(&m);
    return 0;
}
";

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

/// The page of a command over a program of this name that proves something.
#[track_caller]
fn page(place: &Place, command: &[&str], program: &[&str]) -> String {
    let arguments = [command, &["--output", "store", "--report", "html=page.html", "--"], program].concat();
    let ended = place.rashomon(&arguments).expect(66, &[]);
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert!(!page.contains("not drawn"), "{ended}");
    page
}

/// Fails the test unless for each of these one row has all its words.
#[track_caller]
fn say(rows: &[String], wanted: &[&[&str]]) {
    for words in wanted {
        assert!(rows.iter().any(|row| words.iter().all(|word| row.contains(word))), "nothing of {words:?}: {rows:#?}");
    }
}

/// Threads that stand before accesses.
fn standing(rows: &[String]) -> usize {
    rows.iter().filter(|row| row.starts_with("–") && row.contains("stands before its")).count()
}

#[test]
fn the_recorded_and_the_forced_execution_are_drawn() {
    let place = Place::new();
    place.compile("program", HIDDEN);
    let page = page(&place, &["check"], &["./program"]);
    let recorded = rows(&page, "Recorded execution");
    say(
        &recorded,
        &[
            &["main thread", "creates thread 0"],
            &["thread 0", "starts", "after event", "of main thread"],
            &["acquires mutex", "holds mutex"],
        ],
    );
    let forced = rows(&page, "Forced execution");
    // Neither access happened: both threads stand before theirs.
    assert_eq!(standing(&forced), 2, "{forced:#?}");
    // The store has what is drawn, for other reports of it.
    let again = place.rashomon(&["report", "--store", "store", "--format", "html"]).expect(0, &[]);
    assert_eq!(rows(&again.out, "Forced execution"), forced);
    assert!(page.contains(r#"<section id="whole">"#));
}

/// Nothing is forced: a replay of the recording shows both accesses, and no order of them.
#[test]
fn a_replay_that_shows_a_race_is_drawn() {
    let place = Place::new();
    place.compile("program", UNORDERED);
    let page = page(&place, &["check", "--engines", "force"], &["./program"]);
    let replayed = rows(&page, "Replayed execution, which shows it");
    say(&replayed, &[&["main thread", "creates thread 0"], &["thread 0", "write of 1 byte"], &["main thread", "freeing of"]]);
}

/// Threads that run in parallel are recorded while they are provoked once more.
#[test]
fn a_provoked_execution_is_drawn() {
    let place = Place::new();
    place.compile("program", FLAG);
    for command in [&["provoke", "--orders", "on"][..], &["provoke", "--orders", "off"]] {
        let page = page(&place, command, &["./program"]);
        let provoked = rows(&page, "Provoked execution, which shows it");
        say(&provoked, &[&["main thread", "creates thread 1"], &["thread 1", "starts", "after event", "of main thread"]]);
        say(&provoked, &[&["thread 0", "stands before its write"], &["thread 1", "stands before its write"]]);
        assert_eq!(standing(&provoked), 2, "{provoked:#?}");
        std::fs::remove_dir_all(place.path("store")).unwrap();
    }
}

#[test]
fn a_witness_is_drawn() {
    let place = Place::new();
    let mut command = place.tool(&["c++", "-g", "-O1", "-pthread", "-o", "program"]);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/shacham/figure7.cpp"));
    place.run(command).expect(0, &[]);
    let page = page(&place, &["witness", "--recordings", "5"], &["./program"]);
    let forced = rows(&page, "Forced execution, which shows it");
    assert_eq!(standing(&forced), 2, "{forced:#?}");
}

/// A failure is where its execution ends.
#[test]
fn replayed_failures_and_misuses_are_drawn() {
    let place = Place::new();
    place.compile("program", CRASHING);
    let crash = page(&place, &["check", "--recordings", "1"], &["./program"]);
    say(&rows(&crash, "Replayed execution, which shows it"), &[&["main thread", "creates thread 0"], &["thread 0", "starts"]]);
    std::fs::remove_dir_all(place.path("store")).unwrap();
    place.compile("program", DESTROYED);
    let misuse = page(&place, &["check"], &["./program"]);
    say(&rows(&misuse, "Replayed execution, which shows it"), &[&["acquires mutex m"], &["destroys mutex m"]]);
}

/// All threads wait at the end of what exploration found.
#[test]
fn what_exploration_finds_is_drawn() {
    let place = Place::new();
    place.compile("program", STUCK);
    let page = page(&place, &["explore"], &["./program"]);
    let replayed = rows(&page, "Replayed execution, which shows it");
    assert!(replayed.iter().any(|row| row.starts_with("–") && row.contains("waits for")), "{replayed:#?}");
}

#[test]
fn an_interleaving_of_critical_sections_is_drawn() {
    let place = Place::new();
    place.compile("program", LOST_DEPOSIT);
    let page = page(&place, &["check"], &["./program"]);
    let forced = rows(&page, "Forced execution, which shows it");
    for (thread, access) in [("thread 0", "read"), ("thread 0", "write"), ("thread 1", "read"), ("thread 1", "write")] {
        say(&forced, &[&[thread, access, "global balance"]]);
    }
}
