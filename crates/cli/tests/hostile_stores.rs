//! Stores from somebody else: damaged in a thousand ways, and every command on them. None may crash, wait for ever, take much memory, write, remove or execute anything outside the store,
//! or let a character through that acts on a terminal.
//!
//! Each damage is met by some of the commands in turn, those that are made by hand by all. `RASHOMON_DAMAGES=N` makes another number of damages, `RASHOMON_DAMAGES_ALL=1` runs every
//! command on each, `RASHOMON_DAMAGES_SEED=N` draws others, `RASHOMON_DAMAGES_SUMMARY=FILE` is where a summary is written (`cargo xtask evaluate stores`).

mod support;

use rashomon_event::harmless::is_harmful;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use support::place::{Place, RACE};

const DAMAGES: u64 = 1_000;
/// Commands on one drawn damage.
const COMMANDS_EACH: u64 = 2;
const MOST_KILOBYTES: u64 = 1 << 20;

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

/// Numbers that look drawn (S. Vigna's splitmix64).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn one<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// What all damages share.
struct Ground {
    place: Place,
    /// A store that nobody damages.
    sound: PathBuf,
    id: String,
    /// A folder that nobody may touch, and a file that nobody may make.
    precious: PathBuf,
    canary: PathBuf,
    /// The most memory that a command took.
    peak_kilobytes: AtomicU64,
}

impl Ground {
    fn new() -> Self {
        let place = Place::new();
        place.compile("race", RACE);
        place.rashomon(&["check", "--keep", "-o", "sound", "--", "./race"]).expect(66, &["proven"]);
        let sound = place.path("sound");
        let names = fs::read_dir(sound.join("findings")).expect("there are findings");
        let name = names.flatten().next().expect("there is a finding").file_name().into_string().expect("ids are text");
        let id = name.trim_end_matches(".json").to_owned();
        let precious = place.path("precious");
        fs::create_dir_all(precious.join(&id)).expect("the folder is writable");
        fs::write(precious.join("file"), "precious").expect("the folder is writable");
        fs::write(precious.join(&id).join("file"), "precious").expect("the folder is writable");
        let canary = place.path("canary");
        Self { place, sound, id, precious, canary, peak_kilobytes: AtomicU64::new(0) }
    }

    fn copy(&self, number: &str) -> PathBuf {
        let folder = self.place.path(&format!("damaged-{number}"));
        copy_all(&self.sound, &folder);
        folder
    }

    fn precious_is_whole(&self) -> bool {
        let listed = |folder: &Path| {
            let mut names: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
            names.sort();
            names
        };
        let mut expected: Vec<std::ffi::OsString> = vec!["file".into(), self.id.clone().into()];
        expected.sort();
        listed(&self.precious) == expected
            && listed(&self.precious.join(&self.id)) == ["file"]
            && [self.precious.join("file"), self.precious.join(&self.id).join("file")]
                .iter()
                .all(|path| fs::read(path).is_ok_and(|bytes| bytes == b"precious"))
    }

    #[track_caller]
    fn meet(&self, store: &Path, command: &[&str], damage: &str) {
        let path = store.to_str().expect("scratch folders have plain names");
        let line: Vec<&str> = command
            .iter()
            .map(|word| match *word {
                "STORE" => path,
                "ID" => self.id.as_str(),
                word => word,
            })
            .collect();
        let ended = self.place.rashomon(&line);
        self.peak_kilobytes.fetch_max(ended.peak_kilobytes, Ordering::Relaxed);
        let said = format!("{}{}", ended.out, ended.err);
        assert!(![101, 124].contains(&ended.code) && ended.code < 128, "{damage}: {line:?}: {ended}");
        assert!(!said.contains("panicked"), "{damage}: {line:?}: {ended}");
        assert!(ended.peak_kilobytes < MOST_KILOBYTES, "{damage}: {line:?}: {} kB; {ended}", ended.peak_kilobytes);
        let acting = said.chars().find(|&c| is_harmful(c) && c != '\n' && c != '\t');
        assert_eq!(acting, None, "{damage}: {line:?}: {ended}");
        assert!(self.precious_is_whole(), "{damage}: {line:?} reached out of the store: {ended}");
        assert!(!self.canary.exists(), "{damage}: {line:?} executed what nobody trusts: {ended}");
    }
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir(to).expect("the folder is new");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a kind").is_dir() {
            true => copy_all(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).expect("a file that can be copied")),
        }
    }
}

fn all_of(folder: &Path, files: &mut Vec<PathBuf>, folders: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            folders.push(path.clone());
            all_of(&path, files, folders);
        } else {
            files.push(path);
        }
    }
}

fn pipe(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).expect("pipes can be made");
}

const HOSTILE: [&str; 10] = [
    "\x1b[2J\x1b]0;t\x07",
    "\u{202e}txet",
    "a\nrashomon: proven",
    "../../precious/file",
    "/nonexistent/\u{200b}",
    "",
    "..",
    "\u{9b}31m",
    "\0",
    "'; touch canary; '",
];
const NUMBERS: [&str; 8] =
    ["-1", "1e400", "18446744073709551615", "99999999999999999999999", "4294967296", "0", "null", "2147483648"];

/// Replaces one number or one text in the JSON of a file.
fn change_json(text: &str, draw: &mut Draw) -> String {
    let bytes = text.as_bytes();
    let numbers = draw.below(2) == 0;
    let starts: Vec<usize> = (1..bytes.len())
        .filter(|&at| match numbers {
            true => bytes[at].is_ascii_digit() && matches!(bytes[at - 1], b' ' | b'[' | b','),
            false => bytes[at] == b'"' && matches!(bytes[at - 1], b' ' | b'[') && bytes[at + 1..].contains(&b'"'),
        })
        .collect();
    if starts.is_empty() {
        return String::new();
    }
    let start = *draw.one(&starts);
    let (end, new) = match numbers {
        true => {
            let end = start + bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            (end, (*draw.one(&NUMBERS)).to_owned())
        }
        false => {
            let end = start + 2 + bytes[start + 1..].iter().position(|&byte| byte == b'"').expect("it was looked for");
            (end, serde_json::to_string(*draw.one(&HOSTILE)).expect("text"))
        }
    };
    format!("{}{new}{}", &text[..start], &text[end..])
}

/// Damages the store, and says how.
fn damage(ground: &Ground, store: &Path, draw: &mut Draw) -> String {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    all_of(store, &mut files, &mut folders);
    let file = draw.one(&files).clone();
    let folder = draw.one(&folders).clone();
    let mut bytes = fs::read(&file).unwrap_or_default();
    let shown = file.display().to_string();
    match draw.below(14) {
        0 | 1 => {
            for _ in 0..=draw.below(4) {
                let at = draw.below(bytes.len());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = draw.next() as u8;
                }
            }
            fs::write(&file, bytes).unwrap();
            format!("bytes of {shown}")
        }
        2 => {
            let word = *draw.one(&[0, 1, u64::MAX, u64::MAX / 2, 1 << 32, 1 << 40, 1 << 48]);
            let at = draw.below(bytes.len() / 8) * 8;
            if let Some(place) = bytes.get_mut(at..at + 8) {
                place.copy_from_slice(&word.to_le_bytes());
            }
            fs::write(&file, bytes).unwrap();
            format!("word {at} of {shown}")
        }
        3 => {
            bytes.truncate(draw.below(bytes.len()));
            fs::write(&file, bytes).unwrap();
            format!("{shown} cut short")
        }
        4 => {
            bytes.extend((0..draw.below(5000)).map(|_| draw.next() as u8));
            fs::write(&file, bytes).unwrap();
            format!("{shown} made longer")
        }
        5 => {
            let targets =
                [ground.precious.join("file"), "/dev/zero".into(), file.clone(), "/nonexistent".into(), "/etc/passwd".into()];
            let target = draw.one(&targets).clone();
            fs::remove_file(&file).unwrap();
            symlink(&target, &file).unwrap();
            format!("{shown} links to {}", target.display())
        }
        6 => {
            fs::remove_file(&file).unwrap();
            pipe(&file);
            format!("{shown} is a pipe")
        }
        7 => {
            fs::remove_file(&file).unwrap();
            fs::create_dir(&file).unwrap();
            format!("{shown} is a folder")
        }
        8 => {
            fs::remove_dir_all(&folder).unwrap();
            symlink(&ground.precious, &folder).unwrap();
            format!("{} links out", folder.display())
        }
        9 => {
            let length = *draw.one(&[1_u64 << 40, 1 << 33, 1 << 29, 1 << 24]);
            fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(length).unwrap();
            format!("{shown} claims {length} bytes")
        }
        10 => {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
            format!("{shown} cannot be read")
        }
        11 => {
            let other = draw.one(&files).clone();
            fs::write(&file, fs::read(&other).unwrap_or_default()).unwrap();
            format!("{shown} is {}", other.display())
        }
        _ => {
            let json: Vec<&PathBuf> = files.iter().filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
            let file = *draw.one(&json);
            let text = fs::read_to_string(file).unwrap_or_default();
            let mut text = text;
            for _ in 0..=draw.below(3) {
                text = change_json(&text, draw);
            }
            fs::write(file, text).unwrap();
            format!("JSON of {}", file.display())
        }
    }
}

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
                    let mut draw = Draw(seed.wrapping_mul(1 << 32).wrapping_add(number));
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

fn change(store: &Path, file: &str, act: impl FnOnce(&mut serde_json::Value)) {
    let path = store.join(file);
    let mut value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    act(&mut value);
    fs::write(path, serde_json::to_vec(&value).unwrap()).unwrap();
}

/// What somebody would do who means harm: every command on each.
#[test]
fn harm_that_is_meant() {
    let ground = Ground::new();
    let canary = format!("touch {}", ground.canary.display());
    let finding = format!("findings/{}.json", ground.id);
    let away = ground.precious.clone();
    type Harm<'a> = (&'a str, Box<dyn Fn(&Path) + 'a>);
    let harms: Vec<Harm<'_>> = vec![
        (
            "an absolute id",
            Box::new(|store| change(store, &finding, |file| file["finding"]["id"] = away.join("file").to_str().into())),
        ),
        (
            "an id that leads up",
            Box::new(|store| change(store, &finding, |file| file["finding"]["id"] = "../../../precious/file".into())),
        ),
        (
            "another finding's id",
            Box::new(|store| change(store, &finding, |file| file["finding"]["id"] = "race-00000000".into())),
        ),
        (
            "a reproduce command",
            Box::new(|store| change(store, &finding, |file| file["finding"]["reproduce"] = "\x1b[2Jrm -rf /\u{202e}".into())),
        ),
        (
            "proofs elsewhere",
            Box::new(|store| {
                fs::remove_dir_all(store.join("proofs")).unwrap();
                symlink(&away, store.join("proofs")).unwrap();
            }),
        ),
        (
            "a proof elsewhere",
            Box::new(|store| {
                let _ = fs::remove_dir_all(store.join("proofs").join(&ground.id));
                symlink(&away, store.join("proofs").join(&ground.id)).unwrap();
            }),
        ),
        ("scratch elsewhere", Box::new(|store| symlink(&away, store.join("scratch")).unwrap())),
        (
            "something in scratch elsewhere",
            Box::new(|store| {
                fs::create_dir(store.join("scratch")).unwrap();
                for name in ["order", "provoke-0", "none", "proof", "monitored"] {
                    symlink(&away, store.join("scratch").join(name)).unwrap();
                }
            }),
        ),
        (
            "left-over folders elsewhere",
            Box::new(|store| {
                fs::create_dir(store.join("replay-1")).unwrap();
                symlink(&away, store.join("replay-1/session")).unwrap();
            }),
        ),
        (
            "findings elsewhere",
            Box::new(|store| {
                fs::rename(store.join("findings"), store.join("true-findings")).unwrap();
                symlink(store.join("true-findings"), store.join("findings")).unwrap();
            }),
        ),
        (
            "a recording elsewhere",
            Box::new(|store| {
                fs::rename(store.join("recording-0"), store.join("true-recording")).unwrap();
                symlink(store.join("true-recording"), store.join("recording-0")).unwrap();
            }),
        ),
        (
            "a recording in itself",
            Box::new(|store| {
                for number in 0..3 {
                    symlink(".", store.join(format!("recording-0/process-{number:04}"))).unwrap();
                }
            }),
        ),
        (
            "a shell command before each execution",
            Box::new(|store| change(store, "run.json", |run| run["before_each"] = canary.as_str().into())),
        ),
        (
            "another program",
            Box::new(|store| {
                change(store, "run.json", |run| {
                    run["executable"] = "/bin/sh".into();
                    run["arguments"] = serde_json::json!(["-c", canary]);
                });
            }),
        ),
        (
            "another environment",
            Box::new(|store| {
                change(store, "run.json", |run| run["environment"] = serde_json::json!([["LD_PRELOAD", "/x\u{1b}[2J"]]))
            }),
        ),
        (
            "input from a pipe",
            Box::new(|store| {
                pipe(&store.join("recording-0/pipe"));
                change(store, "run.json", |run| run["input"] = store.join("recording-0/pipe").to_str().into());
            }),
        ),
        ("deep JSON", Box::new(|store| fs::write(store.join("summary.json"), "[".repeat(1 << 20)).unwrap())),
        ("deep JSON in a finding", Box::new(|store| fs::write(store.join(&finding), "{\"finding\":".repeat(1 << 18)).unwrap())),
        (
            "a run without a seal",
            Box::new(|store| change(store, "run.json", |run| drop(run.as_object_mut().unwrap().remove("seal")))),
        ),
        (
            "module paths that act",
            Box::new(|store| {
                let path = store.join("recording-0/modules");
                let text = fs::read_to_string(&path).unwrap().replace("/race\n", "/\u{1b}[2J\u{202e}race\n");
                fs::write(path, text).unwrap();
            }),
        ),
        (
            "a module that is a device",
            Box::new(|store| {
                let path = store.join("recording-0/modules");
                let text: String = fs::read_to_string(&path)
                    .unwrap()
                    .lines()
                    .map(|line| format!("{}\t/dev/zero\n", line.rsplit_once('\t').map_or(line, |(fields, _)| fields)))
                    .collect();
                fs::write(path, text).unwrap();
            }),
        ),
    ];
    for (number, (what, harm)) in harms.iter().enumerate() {
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
