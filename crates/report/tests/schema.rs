//! The published schemas of the JSON format: what is written satisfies them, and they change only by additions, unless the
//! document gets a new version.

mod fixtures;

use rashomon_event::Finding;
use rashomon_report::analysis::{Analysed, Analysis, Found, Pair, TracedAccess};
use rashomon_report::json::schema::{DESCRIBED, Described};
use rashomon_report::warning::{Kind, Warning};
use rashomon_report::{Format, Options, Report, RunSummary, Shown, json::Json};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

fn reference() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference")
}

fn described(name: &str) -> Described {
    DESCRIBED.into_iter().find(|described| described.name == name).expect("a document")
}

/// The schema as it was published.
fn published(described: &Described) -> Value {
    let path = reference().join(described.file_name());
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!("{} is not published ({error}): rashomon schema {} > {}", described.format, described.name, path.display())
    });
    serde_json::from_str(&text).unwrap()
}

fn made(described: &Described) -> Value {
    serde_json::from_str(&described.text()).unwrap()
}

/// What `$ref` leads to.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(path) => root.pointer(path.trim_start_matches('#')).expect("a definition"),
        None => schema,
    }
}

fn list<'a>(schema: &'a Value, key: &str) -> Vec<&'a Value> {
    match schema.get(key) {
        Some(Value::Array(all)) => all.iter().collect(),
        Some(one) => vec![one],
        None => vec![],
    }
}

/// What a reader of the old schema relies on and the new one no longer says; each with its place in the document.
fn broken(old: (&Value, &Value), new: (&Value, &Value), place: &str) -> Vec<String> {
    let ((old_root, old), (new_root, new)) = ((old.0, resolved(old.1, old.0)), (new.0, resolved(new.1, new.0)));
    let mut faults = Vec::new();
    for (field, schema) in old.get("properties").and_then(Value::as_object).unwrap_or(&Map::new()) {
        match new.get("properties").and_then(|all| all.get(field)) {
            Some(now) => faults.extend(broken((old_root, schema), (new_root, now), &format!("{place}.{field}"))),
            None => faults.push(format!("{place}.{field} is gone")),
        }
    }
    let required = list(new, "required");
    let lost = list(old, "required").into_iter().filter(|field| !required.contains(field));
    faults.extend(lost.map(|field| format!("{place}.{field} may be missing now").replace('"', "")));
    // Readers know words and types of values; they are told that words may be added, so only types may not.
    let types = list(old, "type");
    let added = list(new, "type").into_iter().filter(|one| !types.is_empty() && !types.contains(one));
    faults.extend(added.map(|one| format!("{place} may be {one} now")));
    if !types.is_empty() && new.get("type").is_none() {
        faults.push(format!("{place} may be anything now"));
    }
    for word in list(old, "enum").into_iter().filter(|word| !list(new, "enum").contains(word)) {
        faults.push(format!("{place} is never {word} now"));
    }
    if old.get("const") != new.get("const") {
        faults.push(format!("{place} is another constant now"));
    }
    if let (Some(old), Some(new)) = (old.get("items"), new.get("items")) {
        faults.extend(broken((old_root, old), (new_root, new), &format!("{place}[]")));
    }
    for way in ["oneOf", "anyOf"] {
        for alternative in list(old, way) {
            let others = list(new, way);
            let fits = |new: &Value| broken((old_root, alternative), (new_root, new), place).is_empty();
            if !others.into_iter().any(fits) {
                faults.push(format!("{place}: none of {way} is {alternative} now"));
            }
        }
    }
    faults
}

fn changes(old: &Value, new: &Value) -> Vec<String> {
    broken((old, old), (new, new), "")
}

/// Fails when a field goes away, is renamed, may be missing, or gets another type, as long as the version is the same.
#[test]
fn what_was_published_stays() {
    for described in &DESCRIBED {
        let (old, new) = (published(described), made(described));
        let faults = changes(&old, &new);
        assert!(faults.is_empty(), "{} needs a new version: {faults:#?}", described.format);
        assert!(
            old == new,
            "{} has something new, which is allowed: rashomon schema {} > docs/reference/{}",
            described.format,
            described.name,
            described.file_name()
        );
    }
}

/// The comparison itself: each of these edits of the report's schema is a break.
#[test]
fn a_break_is_told() {
    let old = published(&described("report"));
    let edited = |pointer: &str, value: Value| {
        let mut new = old.clone();
        *new.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value;
        changes(&old, &new)
    };
    let without = |pointer: &str, field: &str| {
        let mut new = old.clone();
        new.pointer_mut(pointer).and_then(Value::as_object_mut).expect("an object").remove(field).expect("a field");
        changes(&old, &new)
    };
    assert_eq!(changes(&old, &old), [""; 0]);
    let finding = "/$defs/Finding/properties";
    assert_eq!(without(finding, "subject"), [".findings[].subject is gone"]);
    assert_eq!(
        edited(&format!("{finding}/occurrences/type"), json!("string")),
        [".findings[].occurrences may be \"string\" now"]
    );
    assert_eq!(
        edited("/$defs/Counts/required", json!(["proven", "predicted", "suspected", "diverged"])),
        [".counts.refuted may be missing now"]
    );
    assert_eq!(edited("/properties/version/const", json!(3)), [".version is another constant now"]);
    assert_eq!(edited("/$defs/VerdictName/enum/0", json!("shown")), [".findings[].verdict is never \"proven\" now"]);
    // Of the program, and of each of its test cases.
    assert_eq!(edited("/$defs/ProgramExit/oneOf/0/properties/kind/const", json!("number")).len(), 2);
    let frame = without("/$defs/Frame/properties", "line");
    assert!(frame.iter().any(|fault| fault == ".findings[].sides[].stack[].line is gone"), "{frame:?}");
}

/// Additions are none.
#[test]
fn an_addition_is_not_a_break() {
    let old = published(&described("report"));
    let mut new = old.clone();
    new["properties"]["tool"] = json!({ "type": "string" });
    new["$defs"]["KindName"]["enum"].as_array_mut().expect("words").push(json!("false-sharing"));
    assert_eq!(changes(&old, &new), [""; 0]);
}

/// With no field beside those it names.
fn closed(schema: &mut Value, alternative: bool) {
    if let Value::Object(map) = schema {
        if map.contains_key("properties") && !alternative {
            map.insert("unevaluatedProperties".into(), false.into());
        }
        for (key, inner) in map {
            match inner {
                Value::Array(all) => all.iter_mut().for_each(|one| closed(one, ["anyOf", "oneOf"].contains(&key.as_str()))),
                _ => closed(inner, false),
            }
        }
    }
}

/// The faults of a document by its published schema, in which every field has to be.
fn faults(name: &str, text: &str) -> Vec<String> {
    let mut schema = published(&described(name));
    closed(&mut schema, false);
    let validator = jsonschema::draft202012::new(&schema).expect("a schema");
    let document = serde_json::from_str(text).expect("JSON");
    validator.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[derive(serde::Deserialize)]
struct Fixture {
    findings: Vec<Finding>,
    run: RunSummary,
}

fn report(findings: &[Finding], run: &RunSummary) -> String {
    Json.report(Report { findings, run }, &Options { shown: Shown::Everything, ..Options::default() })
}

#[test]
fn golden_reports_satisfy_it() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut reports = vec![("fixtures".to_owned(), report(&fixtures::fixtures(), &fixtures::run()))];
    reports.push(("nothing".into(), report(&[], &RunSummary::without_run())));
    for entry in golden.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let fixture: Fixture = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            reports.push((path.display().to_string(), report(&fixture.findings, &fixture.run)));
        }
    }
    assert!(reports.len() > 12, "{}", reports.len());
    for (name, text) in reports {
        assert_eq!(faults("report", &text), [""; 0], "{name}");
    }
}

/// A validator that accepts everything would pass the tests above.
#[test]
fn it_refuses_what_is_no_report() {
    let good: Value = serde_json::from_str(&report(&fixtures::fixtures(), &fixtures::run())).unwrap();
    let refuses = |pointer: &str, value: Value| {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value;
        !faults("report", &bad.to_string()).is_empty()
    };
    assert!(refuses("/version", json!(3)));
    assert!(refuses("/findings/0/verdict", json!("certain")));
    assert!(refuses("/findings/0/sides/0/stack/0/line", json!("17")));
    assert!(refuses("/run/exit", json!({ "kind": "code" })));
    assert!(refuses("/counts", json!({})));
    let mut unknown = good.clone();
    unknown["findings"][0]["colour"] = json!("red");
    assert_eq!(faults("report", &unknown.to_string()).len(), 1);
}

#[test]
fn warnings_satisfy_theirs() {
    let empty = Warning {
        kind: Kind::DataRace,
        count: 1,
        signal: 0,
        tag: 0,
        accesses: vec![],
        stacks: vec![],
        mutexes: vec![],
        threads: vec![],
        locations: vec![],
        unique_threads: vec![],
        sleep: None,
        tags: vec![],
    };
    let text = Json.warning(&empty, 7, &Options::default()).text;
    assert_eq!(faults("warning", &text), [""; 0]);
    let snapshot = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/warnings__as_json.snap"));
    let snapshot = snapshot.unwrap();
    let lines: Vec<&str> = snapshot.lines().filter(|line| line.starts_with("{\"format\"")).collect();
    assert!(!lines.is_empty());
    for line in lines {
        assert_eq!(faults("warning", line), [""; 0], "{line}");
    }
    assert_eq!(faults("warning", &text.replace("\"count\":1", "\"count\":-1")).len(), 1);
}

#[test]
fn analyses_satisfy_theirs() {
    let access = TracedAccess { event: 4, thread: "1".into(), location: None };
    let pair = Pair { variable: "x".into(), earlier: None, later: access, count: 2 };
    let analysis = Analysis {
        trace: "a.std".into(),
        events: 9,
        passes: 1,
        bytes_on_disk: 0,
        notices: vec![],
        analyses: vec![
            Analysed {
                analysis: "happens-before",
                claim: "unordered",
                until: None,
                found: Found::Races { racing_events: 1, complete: true, pairs: vec![pair] },
            },
            Analysed {
                analysis: "serialisability",
                claim: "not serialisable",
                until: Some(3),
                found: Found::Violations {
                    regions: 0,
                    violating_regions: 0,
                    forgotten_regions: 0,
                    complete: false,
                    places: vec![],
                    violations: vec![],
                },
            },
        ],
    };
    let text = Json.analysis(&analysis, &Options::default());
    assert_eq!(faults("analysis", &text), [""; 0]);
    assert!(!faults("analysis", &text.replace("\"passes\"", "\"turns\"")).is_empty());
}
