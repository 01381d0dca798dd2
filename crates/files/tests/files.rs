//! Files that are none, and folders that lead elsewhere.

use rashomon_files::{Folder, Kind, Links, open, read};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

#[test]
fn only_regular_files_are_opened() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::write(at("file"), "text").unwrap();
    symlink(at("file"), at("link")).unwrap();
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    assert_eq!(read(&at("file"), Links::Refused, 4).unwrap(), b"text");
    assert!(read(&at("file"), Links::Refused, 3).unwrap_err().to_string().contains("more than 3"));
    assert_eq!(read(&at("link"), Links::Followed, 4).unwrap(), b"text");
    for (path, links, said) in [
        (at("link"), Links::Refused, "a symbolic link"),
        (at("pipe"), Links::Refused, "a pipe"),
        (at("."), Links::Refused, "a folder"),
        ("/dev/zero".into(), Links::Followed, "a device"),
    ] {
        let error = open(&path, links).unwrap_err().to_string();
        assert!(error.contains(said), "{}: {error}", path.display());
    }
    // A file that tells no size is bounded as it is read.
    assert!(read(Path::new("/proc/self/maps"), Links::Refused, 16).is_err());
}

#[test]
fn nothing_outside_a_folder_is_reached() {
    let place = tempfile::tempdir().unwrap();
    let outside = place.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("precious"), "x").unwrap();
    let inside = place.path().join("inside");
    fs::create_dir(&inside).unwrap();
    symlink(&outside, inside.join("away")).unwrap();
    symlink(outside.join("precious"), inside.join("file")).unwrap();
    fs::create_dir_all(inside.join("deep/er")).unwrap();
    symlink(&outside, inside.join("deep/er/away")).unwrap();
    let folder = Folder::open(&inside).unwrap();
    assert!(folder.folder("away").is_err());
    assert!(folder.folder_made("away").is_err());
    assert!(folder.file("file").is_err());
    for name in ["", ".", "..", "../outside", "away/precious", "/etc/passwd"] {
        assert!(folder.file(name).is_err() && folder.write(name, b"").is_err() && folder.remove_all(name).is_err(), "{name:?}");
    }
    folder.write("file", b"ours").unwrap();
    assert_eq!(folder.kind("file").unwrap(), Some(Kind::File));
    for name in ["away", "deep", "absent"] {
        folder.remove_all(name).unwrap();
        assert_eq!(folder.kind(name).unwrap(), None);
    }
    assert_eq!(fs::read(outside.join("precious")).unwrap(), b"x");
    let names: Vec<String> = folder.entries().unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["file"], "what is written leaves nothing else behind");
}

#[test]
fn a_folder_is_locked_by_one_alone_or_by_several() {
    let place = tempfile::tempdir().unwrap();
    let [one, other, third] = [(); 3].map(|()| Folder::open(place.path()).unwrap());
    assert!(one.lock(false) && other.lock(false));
    assert!(!third.lock(true));
    drop((one, other));
    assert!(third.lock(true));
    assert!(!Folder::open(place.path()).unwrap().lock(false));
}
