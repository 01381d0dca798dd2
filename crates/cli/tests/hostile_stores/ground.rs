//! What is damaged, and what nobody may reach from it.

use crate::support::place::{Place, RACE};
use rashomon_event::harmless::is_harmful;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const MOST_KILOBYTES: u64 = 1 << 20;

/// What all damages share.
pub struct Ground {
    pub place: Place,
    /// A store that nobody damages.
    pub sound: PathBuf,
    pub id: String,
    /// A folder that nobody may touch, and a file that nobody may make.
    pub precious: PathBuf,
    pub canary: PathBuf,
    /// The most memory that a command took.
    pub peak_kilobytes: AtomicU64,
}

impl Ground {
    pub fn new() -> Self {
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

    /// The file of the finding, in a store.
    pub fn finding(&self) -> String {
        format!("findings/{}.json", self.id)
    }

    /// What would make the file that nobody may make.
    pub fn command(&self) -> String {
        format!("touch {}", self.canary.display())
    }

    pub fn copy(&self, number: &str) -> PathBuf {
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
    pub fn meet(&self, store: &Path, command: &[&str], damage: &str) {
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
