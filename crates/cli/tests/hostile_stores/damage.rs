//! Damages that are drawn.

use crate::ground::Ground;
use rashomon_abi::numbers::SplitMix;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// What a seed draws.
pub struct Draw(pub SplitMix);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0.draw()
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn one<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
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

pub fn pipe(path: &Path) {
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
pub fn damage(ground: &Ground, store: &Path, draw: &mut Draw) -> String {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    all_of(store, &mut files, &mut folders);
    let file = draw.one(&files).clone();
    let folder = draw.one(&folders).clone();
    let shown = file.display().to_string();
    match draw.below(14) {
        kind @ 0..=4 => damage_bytes(&file, kind, draw),
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

/// The file's bytes are others.
fn damage_bytes(file: &Path, kind: usize, draw: &mut Draw) -> String {
    let mut bytes = fs::read(file).unwrap_or_default();
    let shown = file.display().to_string();
    match kind {
        0 | 1 => {
            for _ in 0..=draw.below(4) {
                let at = draw.below(bytes.len());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = draw.next() as u8;
                }
            }
            fs::write(file, bytes).unwrap();
            format!("bytes of {shown}")
        }
        2 => {
            let word = *draw.one(&[0, 1, u64::MAX, u64::MAX / 2, 1 << 32, 1 << 40, 1 << 48]);
            let at = draw.below(bytes.len() / 8) * 8;
            if let Some(place) = bytes.get_mut(at..at + 8) {
                place.copy_from_slice(&word.to_le_bytes());
            }
            fs::write(file, bytes).unwrap();
            format!("word {at} of {shown}")
        }
        3 => {
            bytes.truncate(draw.below(bytes.len()));
            fs::write(file, bytes).unwrap();
            format!("{shown} cut short")
        }
        _ => {
            bytes.extend((0..draw.below(5000)).map(|_| draw.next() as u8));
            fs::write(file, bytes).unwrap();
            format!("{shown} made longer")
        }
    }
}
