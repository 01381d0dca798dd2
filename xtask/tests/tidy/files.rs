//! The project's own text files.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders whose names begin with a dot and that are part of the project.
const DOTTED: [&str; 3] = [".cargo", ".ci", ".github"];

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

pub struct TextFile {
    /// Relative to the root, with `/`.
    pub path: String,
    pub text: String,
}

impl TextFile {
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub fn is_source(&self) -> bool {
        [".rs", ".c", ".cpp", ".h", ".hpp"].iter().any(|suffix| self.path.ends_with(suffix))
    }

    /// Part of a library: neither a test, nor a build script, nor a program of ours.
    pub fn is_library(&self) -> bool {
        let inside = |folder: &str| self.path.starts_with(folder);
        let own_program = inside("crates/cli/") || inside("evaluation/src/") || inside("xtask/");
        ["crates/", "evaluation/", "runtime/"].into_iter().any(inside)
            && !own_program
            && self.path.contains("/src/")
            && self.is_rust()
    }
}

/// Every file that is text, sorted by path. What builds leave behind is not looked at.
pub fn all() -> Vec<TextFile> {
    let mut files = Vec::new();
    collect(root(), &mut files);
    files.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(files.len() > 100, "only {} files found below {}", files.len(), root().display());
    files
}

fn collect(folder: &Path, files: &mut Vec<TextFile>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // In a work tree of git's it is a file, and names a path of the machine.
        if path.is_symlink() || name == ".git" {
            continue;
        }
        if path.is_dir() {
            let built = name == "target" || path.join("CACHEDIR.TAG").exists();
            if !built && (!name.starts_with('.') || DOTTED.contains(&name.as_str())) {
                collect(&path, files);
            }
        } else if let Ok(text) = fs::read_to_string(&path) {
            let path = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
            files.push(TextFile { path, text });
        }
    }
}
