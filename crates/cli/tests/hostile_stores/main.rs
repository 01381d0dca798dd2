//! Stores from somebody else: damaged in a thousand ways, and every command on them. None may crash, wait for ever, take much
//! memory, write, remove or execute anything outside the store, or let a character through that acts on a terminal.
//!
//! Each damage is met by some of the commands in turn, those that are made by hand by all. `RASHOMON_DAMAGES=N` makes another
//! number of damages, `RASHOMON_DAMAGES_ALL=1` runs every command on each, `RASHOMON_DAMAGES_SEED=N` draws others,
//! `RASHOMON_DAMAGES_SUMMARY=FILE` is where a summary is written (`cargo xtask evaluate stores`).

mod damage;
mod ground;
mod harms;
#[path = "../support/mod.rs"]
mod support;

use damage::{Draw, damage};
use ground::Ground;
use harms::change;
use rashomon_abi::numbers::SplitMix;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use support::place::{Place, RACE};

const DAMAGES: u64 = 1_000;
/// Commands on one drawn damage.
const COMMANDS_EACH: u64 = 1;

/// `STORE`: the damaged one; `ID`: a finding that was in it.
const COMMANDS: [&[&str]; 15] = [
    &["report", "--store", "STORE", "--show", "everything"],
    &["report", "--store", "STORE", "--format", "json"],
    &["trace", "stat", "STORE"],
    &["trace", "dump", "STORE"],
    &["trace", "verify", "STORE"],
    &["trace", "diff", "STORE", "sound"],
    &["trace", "export", "STORE", "--to", "std", "--lossy", "-o", "-"],
    &["analyse", "STORE"],
    &["predict", "STORE", "--predict-within", "1"],
    &["replay", "ID", "--store", "STORE", "--timeout", "2"],
    &["replay", "race", "--store", "STORE", "--timeout", "2"],
    &["replay", "--recording", "STORE", "--timeout", "2"],
    &["minimise", "ID", "--store", "STORE", "--executions", "2", "--timeout", "2"],
    &["confirm", "STORE", "--budget", "1", "--forced-timeout", "1", "--predict-within", "1"],
    &["provoke", "STORE", "--budget", "1", "--runs", "1", "--orders", "off"],
];

fn number_of(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn a_thousand_damages() {
    let ground = Ground::new();
    let seed = number_of("RASHOMON_DAMAGES_SEED", 1);
    let damages = number_of("RASHOMON_DAMAGES", DAMAGES);
    let each = if number_of("RASHOMON_DAMAGES_ALL", 0) == 1 { COMMANDS.len() as u64 } else { COMMANDS_EACH };
    let next = AtomicU64::new(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= damages {
                        break;
                    }
                    let mut draw = Draw(SplitMix(seed.wrapping_mul(1 << 32).wrapping_add(number)));
                    let store = ground.copy(&number.to_string());
                    let what = format!("damage {number} of seed {seed}: {}", damage(&ground, &store, &mut draw));
                    for command in 0..each {
                        // Another seed begins with another command: in time every kind of damage meets all.
                        let command = COMMANDS[((seed + number * each + command) % COMMANDS.len() as u64) as usize];
                        ground.meet(&store, command, &what);
                    }
                    fs::remove_dir_all(&store).expect("nothing holds it");
                }
            });
        }
    });
    if let Some(file) = std::env::var_os("RASHOMON_DAMAGES_SUMMARY") {
        let summary = serde_json::json!({
            "damages": damages,
            "commands": damages * each,
            "peak_kilobytes": ground.peak_kilobytes.load(Ordering::Relaxed),
            "seconds": start.elapsed().as_secs_f64(),
        });
        fs::write(file, summary.to_string()).expect("the summary can be written");
    }
}

/// Every command on each.
#[test]
fn harm_that_is_meant() {
    let ground = Ground::new();
    for (number, (what, harm)) in harms::harms(&ground).iter().enumerate() {
        let store = ground.copy(&format!("meant-{number}"));
        harm(&store);
        for command in COMMANDS {
            ground.meet(&store, command, what);
        }
    }
}

#[test]
fn a_store_of_somebody_else_s_runs_when_it_is_trusted() {
    let ground = Ground::new();
    let store = ground.copy("trusted");
    let path = store.to_str().unwrap();
    ground.place.rashomon(&["replay", &ground.id, "--store", path]).expect(0, &[]);
    let canary = format!("touch {}", ground.canary.display());
    change(&store, "run.json", |run| run["before_each"] = canary.as_str().into());
    ground
        .place
        .rashomon(&["replay", &ground.id, "--store", path])
        .expect(125, &["runs before each execution: sh -c 'touch ", "not recorded by you", "--trust"]);
    assert!(!ground.canary.exists());
    ground.place.rashomon(&["replay", &ground.id, "--store", path, "--trust"]).expect(0, &[]);
    assert!(ground.canary.exists());
}

#[test]
fn no_command_makes_a_store_of_somebody_else_s_one_s_own() {
    let ground = Ground::new();
    let store = ground.copy("adopted");
    let path = store.to_str().unwrap();
    let canary = format!("touch {}", ground.canary.display());
    change(&store, "run.json", |run| run["before_each"] = canary.as_str().into());
    // It writes what libraries are trusted; it runs nothing.
    ground.place.rashomon(&["predict", "--trust-library", "libnothing", path]);
    ground.place.rashomon(&["replay", &ground.id, "--store", path]).expect(125, &["not recorded by you"]);
    assert!(!ground.canary.exists());
    // What is made of it with trust has to be trusted again.
    ground.place.rashomon(&["replay", "--recording", path, "--trust", "-o", "again"]).expect(0, &[]);
    fs::remove_file(&ground.canary).unwrap();
    ground.place.rashomon(&["replay", "--recording", "again"]).expect(125, &["not recorded by you"]);
    assert!(!ground.canary.exists());
}

#[test]
fn a_store_with_its_program_can_be_moved() {
    let place = Place::new();
    place.write("race.c", RACE);
    place.rashomon(&["check", "-o", "here", "race.c"]).expect(66, &["proven"]);
    fs::rename(place.path("here"), place.path("there")).unwrap();
    place.rashomon(&["replay", "race", "--store", "there"]).expect(0, &[]);
    // What is compiled into it is still covered by the seal, and what is gone is not taken for changed.
    let program = place.path("there/build/race");
    let sound = fs::read(&program).unwrap();
    fs::write(&program, [&sound[..], b"x"].concat()).unwrap();
    place.rashomon(&["replay", "race", "--store", "there"]).expect(125, &["is another one now"]);
    fs::remove_file(&program).unwrap();
    place.rashomon(&["replay", "race", "--store", "there"]).expect(125, &["is gone"]);
}

/// Offsets behind which there is no other one.
#[test]
fn a_finding_at_the_end_of_all_addresses_is_none_that_happens() {
    let place = Place::new();
    let program = "#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *unlocks(void *unused) { pthread_mutex_unlock(&m); return 0; }
int main(void) {
    pthread_t thread;
    pthread_mutex_lock(&m);
    pthread_create(&thread, 0, unlocks, 0);
    pthread_join(thread, 0);
    pthread_mutex_lock(&m);
    pthread_mutex_lock(&m);
}
";
    place.write("wrong.c", program);
    place.rashomon(&["check", "--fail-on", "never", "-o", "store", "wrong.c"]);
    let mut kinds = 0;
    for entry in fs::read_dir(place.path("store/findings")).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap();
        let mut finding: serde_json::Value = serde_json::from_str(&text).unwrap();
        push_to_the_end(&mut finding);
        fs::write(entry.path(), finding.to_string()).unwrap();
        let id = entry.file_name().into_string().unwrap();
        place.rashomon(&["replay", id.trim_end_matches(".json"), "--store", "store"]).expect(1, &[]);
        kinds += 1;
    }
    assert!(kinds >= 2, "one that was observed and one that blocked were expected: {kinds}");
}

/// Of every frame of its sides.
fn push_to_the_end(finding: &mut serde_json::Value) {
    for part in ["finding", "sides"].iter().filter(|part| finding.get(part).is_some()).copied().collect::<Vec<_>>() {
        if part == "finding" {
            push_to_the_end(&mut finding[part]);
            continue;
        }
        for frame in finding[part].as_array_mut().into_iter().flatten().flat_map(|side| side["stack"].as_array_mut()).flatten() {
            frame["offset"] = u64::MAX.into();
        }
    }
}

#[test]
fn who_uses_a_store_is_told_to_the_next() {
    let ground = Ground::new();
    let held = fs::File::open(&ground.sound).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let path = ground.sound.to_str().unwrap();
    let own = format!("process {}", std::process::id());
    for line in
        [&["confirm", path] as &[&str], &["minimise", &ground.id, "--store", path], &["replay", &ground.id, "--store", path]]
    {
        ground.place.rashomon(line).expect(125, &["in use by", &own]);
    }
    ground.place.rashomon(&["report", "--store", path]).expect(0, &[]);
    rustix::fs::flock(&held, rustix::fs::FlockOperation::Unlock).unwrap();
    ground.place.rashomon(&["replay", &ground.id, "--store", path]).expect(0, &[]);
}
