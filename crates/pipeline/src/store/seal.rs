//! Who recorded a store: this user, or somebody else.
//!
//! A store says what its commands execute: a program with arguments and environment, a shell command before each execution. Where
//! this user recorded it that is what he ran; from anywhere else it is a program from a stranger. That a file belongs to the user
//! tells nothing: so does everything that he unpacks. So `run.json` carries a message authentication code (HMAC-SHA-256, RFC
//! 2104) over all of it that says what runs, with a key that never leaves the user's state folder. A program that was compiled
//! into the store is covered by its hash.
//!
//! Guarantee: what passes for the user's own was written by a command of his that recorded, and was not changed since. Limits:
//! the code does not name the store, so that it can be moved and copied; findings and traces are not covered, as they only steer
//! the program; a program outside the store may be another by now (the build-id tells).

use hmac::{Hmac, Mac as _};
use rashomon_files::Links;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io::{Error, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Fields of `run.json` that say nothing of what is executed.
const UNSEALED: [&str; 3] = ["recordings", "notes", SEAL];
const SEAL: &str = "seal";
const KEY_FILE: &str = "key";
/// No program that was compiled into a store is larger.
const LARGEST_PROGRAM: u64 = 1 << 32;

/// Whose store it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Recorded by this user, with the key that he has now.
    Own,
    /// Or changed since. In words.
    Unknown(&'static str),
}

pub struct Key([u8; 32]);

#[derive(Serialize, Deserialize)]
struct Seal {
    /// In hexadecimal digits, as the next.
    code: String,
    /// Hash of the program, where it was compiled into the store.
    program: Option<String>,
}

/// The user's key, made now if there is none.
pub fn key() -> Result<Key, Error> {
    let folder = state_folder()?;
    let path = folder.join(KEY_FILE);
    if let Some(key) = known_key(&path)? {
        return Ok(key);
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let key = rashomon_files::secret::<32>()?;
    let fresh = folder.join(format!("{KEY_FILE}.{}", rashomon_files::unforeseeable()?));
    let written = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh);
    let written = written.and_then(|mut file| file.write_all(&key)).and_then(|()| match fs::hard_link(&fresh, &path) {
        // Another command was faster; its key is the user's.
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    });
    // Under its other name it is there, or was not to be.
    let _ = fs::remove_file(&fresh);
    written?;
    known_key(&path)?.ok_or_else(|| Error::other("the key is gone again"))
}

/// `None`: there is none yet.
fn known_key(path: &Path) -> Result<Option<Key>, Error> {
    let file = match rashomon_files::open(path, Links::Refused) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let found = file.metadata()?;
    if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o077 != 0 {
        return Err(Error::other(format!("{} can be read by others; remove it", path.display())));
    }
    let bytes = rashomon_files::read_from(file, 32)?;
    let bytes = bytes.try_into().map_err(|_| Error::other(format!("{} is no key of ours; remove it", path.display())))?;
    Ok(Some(Key(bytes)))
}

/// Where the key is (XDG Base Directory Specification).
pub fn state_folder() -> Result<PathBuf, Error> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")));
    let base = base.ok_or_else(|| Error::other("neither HOME nor XDG_STATE_HOME names a folder"))?;
    Ok(base.join("rashomon"))
}

/// Seals what is about to be written. `store`: its folder.
pub(crate) fn seal(run: &mut Value, key: &Key, store: &Path) {
    let program = executable(run, store).filter(|path| path.starts_with(store)).map(|path| hash_of(&path).unwrap_or_default());
    let code = hex(&code_of(run, program.as_deref(), key).finalize().into_bytes());
    if let (Value::Object(fields), Ok(seal)) = (run, serde_json::to_value(Seal { code, program })) {
        fields.insert(SEAL.into(), seal);
    }
}

/// Whose run this is. `store`: the folder that it was read in.
pub(crate) fn origin(run: &Value, store: &Path) -> Origin {
    let Some(seal) = run.get(SEAL).and_then(|seal| Seal::deserialize(seal).ok()) else {
        return Origin::Unknown("it carries no seal");
    };
    let Ok(key) = key() else { return Origin::Unknown("there is no key to check its seal with") };
    let Some(code) = unhex(&seal.code) else { return Origin::Unknown("its seal is damaged") };
    if code_of(run, seal.program.as_deref(), &key).verify_slice(&code).is_err() {
        return Origin::Unknown("its seal is not yours, or what it runs was changed since");
    }
    let Some(sealed) = seal.program else { return Origin::Own };
    let Some(program) = executable(run, store) else { return Origin::Unknown("it names no program") };
    if fs::symlink_metadata(&program).is_err() {
        return Origin::Unknown("the program that was compiled into it is gone");
    }
    if hash_of(&program) != Some(sealed) {
        return Origin::Unknown("the program that was compiled into it is another one now");
    }
    Origin::Own
}

fn executable(run: &Value, store: &Path) -> Option<PathBuf> {
    let text = crate::store::run::ShellText::deserialize(run.get("executable")?).ok()?;
    Some(store.join(text.to_path()))
}

fn hash_of(path: &Path) -> Option<String> {
    let bytes = rashomon_files::read(path, Links::Refused, LARGEST_PROGRAM).ok()?;
    Some(hex(&Sha256::digest(&bytes)))
}

/// Over the fields in alphabetical order, whatever version of ours wrote them.
fn code_of(run: &Value, program: Option<&str>, key: &Key) -> Hmac<Sha256> {
    let mut code = Hmac::<Sha256>::new_from_slice(&key.0).expect("keys of any length are keys");
    let fields = run.as_object().into_iter().flatten();
    let mut sealed: Vec<_> = fields.filter(|(name, _)| !UNSEALED.contains(&name.as_str())).collect();
    sealed.sort_by_key(|(name, _)| name.as_str());
    // As an array of pairs: where one ends and the next begins is not open to reading.
    let text = serde_json::to_vec(&(sealed, program)).expect("values can be written");
    code.update(&text);
    code
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    digits.len().is_multiple_of(2).then(|| digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_seal_holds_until_something_that_runs_is_changed() {
        let key = Key([7; 32]);
        let mut run = json!({"executable": "/bin/true", "before_each": null, "arguments": ["a"], "notes": []});
        seal(&mut run, &key, Path::new("/nowhere"));
        let verify = |run: &Value, key: &Key| {
            let seal = Seal::deserialize(&run["seal"]).unwrap();
            code_of(run, seal.program.as_deref(), key).verify_slice(&unhex(&seal.code).unwrap()).is_ok()
        };
        assert!(verify(&run, &key));
        assert!(!verify(&run, &Key([8; 32])));
        let mut noted = run.clone();
        noted["notes"] = json!(["new"]);
        assert!(verify(&noted, &key));
        for (field, value) in [("before_each", json!("rm -rf /")), ("arguments", json!(["a", "b"])), ("new", json!(1))] {
            let mut changed = run.clone();
            changed[field] = value;
            assert!(!verify(&changed, &key), "{field}");
        }
    }
}
