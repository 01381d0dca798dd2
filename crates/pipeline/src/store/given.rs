//! Recordings of a store that a check begins with, in place of a first one of its own.
//!
//! They are copied: what becomes of the other store afterwards changes nothing here, and neither has links. How much is copied is
//! bounded. A recording names the program's file where it was recorded; the copy names it where it is now, so that places are
//! looked up there and schedules are for it.
//!
//! Guarantee: what was recorded is this program with these arguments, as far as build-ids tell. Limit: a program without one, or
//! a script, is known by the name of its file alone.

use super::Store;
use super::run::{RecordedRun, RunRecord, pasted};
use crate::error::PipelineError;
use crate::replay::check_binaries_at;
use rashomon_abi::{MODULES_FILE, PROCESS_FOLDER_PREFIX};
use rashomon_event::{path_of, path_text};
use rashomon_files::{Folder, Kind, end_of_data};
use rashomon_trace::modules::{self, ModuleLine, format_line};
use rashomon_trace::{Recording, processes};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Of a store.
const MOST_RECORDINGS: usize = 1000;
/// Of all recordings together.
const MOST_FILES: usize = 200_000;
const MOST_BYTES: u64 = 1 << 32;
/// Folders of processes within each other.
const DEEPEST: usize = 16;

/// Recordings that have been looked at, and what is known of them.
#[derive(Debug)]
pub struct Given<'a> {
    store: &'a Store,
    recordings: Vec<RecordedRun>,
    /// Where the program was, and where it is.
    moved: Option<(PathBuf, PathBuf)>,
}

impl<'a> Given<'a> {
    /// The recordings of a store, if they are of this program with these arguments. `run`: what the store says of them.
    pub fn of(store: &'a Store, run: &RunRecord, (program, arguments): (&Path, &[OsString])) -> Result<Self, PipelineError> {
        let path = store.path().to_path_buf();
        let recorded = run.executable.to_path();
        let theirs: Vec<OsString> = run.arguments.iter().map(OsString::from).collect();
        let other = || PipelineError::OtherProgram {
            path: path.clone(),
            recorded: line_of(&recorded, &theirs),
            given: line_of(program, arguments),
        };
        if theirs != arguments {
            return Err(other());
        }
        match run.recordings.len() {
            0 => return Err(PipelineError::NoRecordings { path }),
            number if number > MOST_RECORDINGS => {
                let reason = format!("{number} recordings are more than {MOST_RECORDINGS}");
                return Err(PipelineError::Malformed { path, reason });
            }
            _ => {}
        }
        let here = program.canonicalize().map_err(PipelineError::io("find", program))?;
        let own = rashomon_symbolize::build_id(&here).ok().flatten();
        let mut is_known = false;
        let mut moved = None;
        for number in 0..run.recordings.len() as u32 {
            let folder = store.recording(number);
            for process in processes(&folder)? {
                let opened = Recording::open(&process.folder)?;
                // The same content under whatever name; else what has the program's name, which is another one then.
                let file = loaded(&opened)
                    .find(|(_, id)| id.zip(own.as_deref()).is_some_and(|(id, own)| id.eq_ignore_ascii_case(own)))
                    .or_else(|| loaded(&opened).find(|(path, id)| id.is_some() && path_of(path) == recorded));
                if let Some((file, _)) = file {
                    is_known = true;
                    moved = moved.or_else(|| Some((path_of(file), here.clone())).filter(|(there, here)| there != here));
                }
                let what = format!("the recording {}", process.folder.display());
                check_binaries_at(&what, loaded(&opened), |path| match &moved {
                    Some((there, here)) if *there == path => here.clone(),
                    _ => path,
                })?;
            }
        }
        if !is_known && recorded.file_name() != program.file_name() {
            return Err(other());
        }
        let given = Self { store, recordings: run.recordings.clone(), moved };
        // Before there is a store that would hold a part of them.
        given.go_through(None)?;
        Ok(given)
    }

    pub fn number(&self) -> usize {
        self.recordings.len()
    }

    /// Copies the recordings into a new store, where they are the first ones.
    pub fn copy_into(&self, store: &Store) -> Result<Vec<RecordedRun>, PipelineError> {
        self.go_through(Some(store))
    }

    /// Copies, or only looks at what is to be copied.
    fn go_through(&self, store: Option<&Store>) -> Result<Vec<RecordedRun>, PipelineError> {
        let moved = self.moved.as_ref();
        let mut copying = Copying { moved, files: 0, bytes: 0, from: self.store.path() };
        let mut recordings = Vec::new();
        for (number, recording) in (0..).zip(&self.recordings) {
            let from = self.store.recording(number);
            let name = from.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let made =
                |store: &Store| store.folder.folder_made(&name).map_err(PipelineError::io("create", store.recording(number)));
            let to = store.map(made).transpose()?;
            let from = Folder::open(&from).map_err(PipelineError::io("open", &from))?;
            copying.folder(&from, to.as_ref(), 0)?;
            recordings.push(RecordedRun { folder: name, ..recording.clone() });
        }
        Ok(recordings)
    }
}

/// For people.
fn line_of(program: &Path, arguments: &[OsString]) -> String {
    let words = std::iter::once(program.as_os_str()).chain(arguments.iter().map(OsString::as_os_str));
    words.map(pasted).collect::<Vec<_>>().join(" ")
}

/// Paths and build-ids of the files that a process had loaded.
fn loaded(recording: &Recording) -> impl Iterator<Item = (&str, Option<&str>)> {
    recording.modules.lines.iter().filter_map(|line| match line {
        ModuleLine::Loaded { module, .. } => Some((module.path.as_str(), module.build_id.as_deref())),
        ModuleLine::Unloaded { .. } => None,
    })
}

struct Copying<'a> {
    from: &'a Path,
    moved: Option<&'a (PathBuf, PathBuf)>,
    files: usize,
    bytes: u64,
}

impl Copying<'_> {
    /// Files, and the folders of processes. A recording has nothing else.
    fn folder(&mut self, from: &Folder, to: Option<&Folder>, depth: usize) -> Result<(), PipelineError> {
        for entry in from.entries().map_err(PipelineError::io("list", from.path()))? {
            match entry.kind {
                Kind::File => self.file(from, to, &entry.name)?,
                Kind::Folder if entry.name.starts_with(PROCESS_FOLDER_PREFIX) && depth < DEEPEST => {
                    let inner = from.folder(&entry.name).map_err(PipelineError::io("open", from.path().join(&entry.name)))?;
                    let made = |to: &Folder| {
                        to.folder_made(&entry.name).map_err(PipelineError::io("create", to.path().join(&entry.name)))
                    };
                    self.folder(&inner, to.map(made).transpose()?.as_ref(), depth + 1)?;
                }
                Kind::Folder => {}
                Kind::Link | Kind::Special => return Err(PipelineError::Foreign { path: from.path().join(entry.name) }),
            }
        }
        Ok(())
    }

    fn file(&mut self, from: &Folder, to: Option<&Folder>, name: &str) -> Result<(), PipelineError> {
        let there = from.path().join(name);
        let file = from.file(name).map_err(PipelineError::io("read", &there))?;
        let size = file.metadata().map_err(PipelineError::io("read", &there))?.len();
        // What is behind the data takes no room, whatever is claimed.
        let data = end_of_data(&file).map_err(PipelineError::io("read", &there))?;
        self.files += 1;
        self.bytes = self.bytes.saturating_add(data);
        if self.files > MOST_FILES || self.bytes > MOST_BYTES {
            let reason = format!("its recordings have more than {MOST_FILES} files, or {MOST_BYTES} bytes");
            return Err(PipelineError::Malformed { path: self.from.to_path_buf(), reason });
        }
        let Some(to) = to else { return Ok(()) };
        let here = to.path().join(name);
        if name == MODULES_FILE
            && let Some((old, new)) = self.moved
        {
            let bytes = rashomon_files::read_from(file, modules::LARGEST).map_err(PipelineError::io("read", &there))?;
            let text = renamed(&there, &bytes, old, new)?;
            return to.write(name, text.as_bytes()).map_err(PipelineError::io("write", here));
        }
        let mut copy = OpenOptions::new().write(true).create_new(true).open(&here).map_err(PipelineError::io("create", &here))?;
        io::copy(&mut file.take(data), &mut copy).map_err(PipelineError::io("write", &here))?;
        copy.set_len(size).map_err(PipelineError::io("write", &here))
    }
}

/// The file of modules, with the program's file at its new place.
fn renamed(path: &Path, bytes: &[u8], old: &Path, new: &Path) -> Result<String, PipelineError> {
    let old = path_text(old.as_os_str().as_encoded_bytes());
    let new = path_text(new.as_os_str().as_encoded_bytes());
    let lines = modules::parse(path, bytes)?.lines.into_iter().map(|mut line| {
        if let ModuleLine::Loaded { module, .. } = &mut line
            && module.path == old
        {
            module.path.clone_from(&new);
        }
        format_line(&line)
    });
    Ok(lines.collect())
}
