//! What somebody would do who means harm.

use crate::damage::pipe;
use crate::ground::Ground;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

pub type Harm<'a> = (&'a str, Box<dyn Fn(&Path) + 'a>);

pub fn harms(ground: &Ground) -> Vec<Harm<'_>> {
    [ids_and_links, folders_elsewhere, what_is_executed, modules_and_depth].iter().flat_map(|group| group(ground)).collect()
}

pub fn change(store: &Path, file: &str, act: impl FnOnce(&mut serde_json::Value)) {
    let path = store.join(file);
    let mut value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    act(&mut value);
    fs::write(path, serde_json::to_vec(&value).unwrap()).unwrap();
}

fn ids_and_links(ground: &Ground) -> Vec<Harm<'_>> {
    vec![
        (
            "an absolute id",
            Box::new(move |store| {
                change(store, &ground.finding(), |file| file["finding"]["id"] = ground.precious.join("file").to_str().into())
            }),
        ),
        (
            "an id that leads up",
            Box::new(move |store| {
                change(store, &ground.finding(), |file| file["finding"]["id"] = "../../../precious/file".into())
            }),
        ),
        (
            "another finding's id",
            Box::new(move |store| change(store, &ground.finding(), |file| file["finding"]["id"] = "race-00000000".into())),
        ),
        (
            "a reproduce command",
            Box::new(move |store| {
                change(store, &ground.finding(), |file| file["finding"]["reproduce"] = "\x1b[2Jrm -rf /\u{202e}".into())
            }),
        ),
        (
            "proofs elsewhere",
            Box::new(move |store| {
                fs::remove_dir_all(store.join("proofs")).unwrap();
                symlink(&ground.precious, store.join("proofs")).unwrap();
            }),
        ),
        (
            "a proof elsewhere",
            Box::new(move |store| {
                let _ = fs::remove_dir_all(store.join("proofs").join(&ground.id));
                symlink(&ground.precious, store.join("proofs").join(&ground.id)).unwrap();
            }),
        ),
        ("scratch elsewhere", Box::new(move |store| symlink(&ground.precious, store.join("scratch")).unwrap())),
        (
            "something in scratch elsewhere",
            Box::new(move |store| {
                fs::create_dir(store.join("scratch")).unwrap();
                for name in ["order", "provoke-0", "none", "proof", "monitored"] {
                    symlink(&ground.precious, store.join("scratch").join(name)).unwrap();
                }
            }),
        ),
    ]
}

fn folders_elsewhere(ground: &Ground) -> Vec<Harm<'_>> {
    vec![
        (
            "left-over folders elsewhere",
            Box::new(move |store| {
                fs::create_dir(store.join("replay-1")).unwrap();
                symlink(&ground.precious, store.join("replay-1/session")).unwrap();
            }),
        ),
        (
            "findings elsewhere",
            Box::new(move |store| {
                fs::rename(store.join("findings"), store.join("true-findings")).unwrap();
                symlink(store.join("true-findings"), store.join("findings")).unwrap();
            }),
        ),
        (
            "a recording elsewhere",
            Box::new(move |store| {
                fs::rename(store.join("recording-0"), store.join("true-recording")).unwrap();
                symlink(store.join("true-recording"), store.join("recording-0")).unwrap();
            }),
        ),
        (
            "a recording in itself",
            Box::new(move |store| {
                for number in 0..3 {
                    symlink(".", store.join(format!("recording-0/process-{number:04}"))).unwrap();
                }
            }),
        ),
    ]
}

fn what_is_executed(ground: &Ground) -> Vec<Harm<'_>> {
    vec![
        (
            "a shell command before each execution",
            Box::new(move |store| change(store, "run.json", |run| run["before_each"] = ground.command().into())),
        ),
        (
            "another program",
            Box::new(move |store| {
                change(store, "run.json", |run| {
                    run["executable"] = "/bin/sh".into();
                    run["arguments"] = serde_json::json!(["-c", ground.command()]);
                });
            }),
        ),
        (
            "another environment",
            Box::new(move |store| {
                change(store, "run.json", |run| run["environment"] = serde_json::json!([["LD_PRELOAD", "/x\u{1b}[2J"]]))
            }),
        ),
        (
            "input from a pipe",
            Box::new(move |store| {
                pipe(&store.join("recording-0/pipe"));
                change(store, "run.json", |run| run["input"] = store.join("recording-0/pipe").to_str().into());
            }),
        ),
    ]
}

fn modules_and_depth(ground: &Ground) -> Vec<Harm<'_>> {
    vec![
        ("deep JSON", Box::new(move |store| fs::write(store.join("summary.json"), "[".repeat(1 << 20)).unwrap())),
        (
            "deep JSON in a finding",
            Box::new(move |store| fs::write(store.join(ground.finding()), "{\"finding\":".repeat(1 << 18)).unwrap()),
        ),
        (
            "a run without a seal",
            Box::new(move |store| change(store, "run.json", |run| drop(run.as_object_mut().unwrap().remove("seal")))),
        ),
        (
            "module paths that act",
            Box::new(move |store| {
                let path = store.join("recording-0/modules");
                let text = fs::read_to_string(&path).unwrap().replace("/race\n", "/\u{1b}[2J\u{202e}race\n");
                fs::write(path, text).unwrap();
            }),
        ),
        (
            "a module that is a device",
            Box::new(move |store| {
                let path = store.join("recording-0/modules");
                let text: String = fs::read_to_string(&path)
                    .unwrap()
                    .lines()
                    .map(|line| format!("{}\t/dev/zero\n", line.rsplit_once('\t').map_or(line, |(fields, _)| fields)))
                    .collect();
                fs::write(path, text).unwrap();
            }),
        ),
    ]
}
