//! A folder as one sequence of bytes, compressed: files alone, each with its path and its length.
//!
//! An archive may come from anybody. What it unpacks to is bounded, stays below the folder, and holds no links; what is there
//! already is never replaced.

use crate::error::QueueError;
use crate::message::{LONGEST_PATH, path_parts};
use rashomon_files::{Folder, Kind, Links};
use std::io::{Read, Write as _};
use std::path::Path;

const HEAD: &[u8] = b"rashomon archive 1\n";
const MOST_FILES: usize = 200_000;
const LARGEST_FILE: u64 = 1 << 30;
/// Bytes of all files together.
const LARGEST: u64 = 1 << 32;
/// Bytes of an archive itself.
pub const LARGEST_ARCHIVE: u64 = 1 << 30;
/// Folders within each other.
const DEEPEST: usize = 16;
const LEVEL: i32 = 3;

/// Packs what is below the folder. `change`: what of a file goes into the archive in place of its content.
pub fn pack(folder: &Path, change: &dyn Fn(&str, Vec<u8>) -> Vec<u8>) -> Result<Vec<u8>, QueueError> {
    let failed = || QueueError::io("pack", folder);
    let mut out = zstd::Encoder::new(Vec::new(), LEVEL).map_err(failed())?;
    out.write_all(HEAD).map_err(failed())?;
    let mut total = 0;
    pack_below(folder, "", change, &mut out, &mut total)?;
    out.write_all(&0_u32.to_le_bytes()).map_err(failed())?;
    let bytes = out.finish().map_err(failed())?;
    if bytes.len() as u64 > LARGEST_ARCHIVE {
        return Err(QueueError::TooLarge(format!("{}: packed it has more than {LARGEST_ARCHIVE} bytes", folder.display())));
    }
    Ok(bytes)
}

fn pack_below(
    folder: &Path,
    prefix: &str,
    change: &dyn Fn(&str, Vec<u8>) -> Vec<u8>,
    out: &mut zstd::Encoder<'_, Vec<u8>>,
    total: &mut u64,
) -> Result<(), QueueError> {
    let entries = Folder::open(folder).and_then(|opened| opened.entries()).map_err(QueueError::io("list", folder))?;
    for entry in entries {
        let path = folder.join(&entry.name);
        let name = format!("{prefix}{}", entry.name);
        match entry.kind {
            Kind::Folder if prefix.matches('/').count() < DEEPEST => {
                pack_below(&path, &format!("{name}/"), change, out, total)?;
            }
            Kind::File => {
                let bytes = rashomon_files::read(&path, Links::Refused, LARGEST_FILE).map_err(QueueError::io("read", &path))?;
                let bytes = change(&name, bytes);
                *total += bytes.len() as u64;
                if *total > LARGEST {
                    return Err(QueueError::TooLarge(format!("{}: it has more than {LARGEST} bytes", folder.display())));
                }
                let mut write = |bytes: &[u8]| out.write_all(bytes).map_err(QueueError::io("pack", &path));
                write(&u32::try_from(name.len()).unwrap_or(u32::MAX).to_le_bytes())?;
                write(name.as_bytes())?;
                write(&(bytes.len() as u64).to_le_bytes())?;
                write(&bytes)?;
            }
            // A store has neither, and what is nested deeper is none of its folders.
            Kind::Folder | Kind::Link | Kind::Special => {}
        }
    }
    Ok(())
}

/// Unpacks into a folder that is there.
pub fn unpack(archive: &[u8], folder: &Path) -> Result<(), QueueError> {
    let mut reader = Reader { input: zstd::Decoder::new(archive).map_err(|error| damaged(error.to_string()))? };
    if reader.bytes(HEAD.len())? != HEAD {
        return Err(damaged("it does not begin as one"));
    }
    let opened = Folder::open(folder).map_err(QueueError::io("open", folder))?;
    let mut total = 0_u64;
    for _ in 0..MOST_FILES {
        let length = u32::from_le_bytes(reader.array()?) as usize;
        if length == 0 {
            return reader.end();
        }
        if length > LONGEST_PATH {
            return Err(damaged("the path of a file is too long"));
        }
        let path = String::from_utf8(reader.bytes(length)?).map_err(|_| damaged("the path of a file is no text"))?;
        let size = u64::from_le_bytes(reader.array()?);
        total = total.saturating_add(size);
        if size > LARGEST_FILE || total > LARGEST {
            return Err(damaged(format!("it unpacks to more than {LARGEST_FILE} bytes a file, or {LARGEST} bytes")));
        }
        let content = reader.bytes(usize::try_from(size).unwrap_or(usize::MAX))?;
        place(&opened, &path, &content)?;
    }
    Err(damaged(format!("it has more than {MOST_FILES} files")))
}

/// Writes a file below the folder; what is there already is an error.
pub(crate) fn place(folder: &Folder, path: &str, content: &[u8]) -> Result<(), QueueError> {
    let parts = path_parts(path).map_err(damaged)?;
    let Some((name, above)) = parts.split_last() else { return Err(damaged("a file has no name")) };
    if above.len() > DEEPEST {
        return Err(damaged(format!("{path:?} is nested too deep")));
    }
    let failed = || QueueError::io("write", folder.path().join(path));
    let mut inner: Option<Folder> = None;
    for part in above {
        inner = Some(inner.as_ref().unwrap_or(folder).folder_made(part).map_err(failed())?);
    }
    let last = inner.as_ref().unwrap_or(folder);
    if last.kind(name).map_err(failed())?.is_some() {
        return Err(damaged(format!("it has {path:?} twice")));
    }
    last.write(name, content).map_err(failed())
}

fn damaged(reason: impl Into<String>) -> QueueError {
    QueueError::damaged("an archive", reason)
}

struct Reader<'a> {
    input: zstd::Decoder<'a, std::io::BufReader<&'a [u8]>>,
}

impl Reader<'_> {
    /// Memory is taken as bytes come, whatever length is claimed.
    fn bytes(&mut self, length: usize) -> Result<Vec<u8>, QueueError> {
        let mut bytes = Vec::new();
        let read = (&mut self.input).take(length as u64).read_to_end(&mut bytes);
        read.map_err(|error| damaged(error.to_string()))?;
        if bytes.len() == length { Ok(bytes) } else { Err(damaged("it ends too early")) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], QueueError> {
        let mut array = [0; N];
        array.copy_from_slice(&self.bytes(N)?);
        Ok(array)
    }

    fn end(mut self) -> Result<(), QueueError> {
        let mut more = [0];
        match self.input.read(&mut more) {
            Ok(0) => Ok(()),
            Ok(_) => Err(damaged("it goes on behind its end")),
            Err(error) => Err(damaged(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn as_is(_: &str, bytes: Vec<u8>) -> Vec<u8> {
        bytes
    }

    fn made(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = HEAD.to_vec();
        for (path, content) in entries {
            bytes.extend((path.len() as u32).to_le_bytes());
            bytes.extend(path.as_bytes());
            bytes.extend((content.len() as u64).to_le_bytes());
            bytes.extend(*content);
        }
        bytes.extend(0_u32.to_le_bytes());
        bytes
    }

    fn unpacked(plain: &[u8]) -> Result<tempfile::TempDir, QueueError> {
        let folder = tempfile::tempdir().unwrap();
        unpack(&zstd::encode_all(plain, 1).unwrap(), folder.path())?;
        Ok(folder)
    }

    #[test]
    fn what_is_packed_comes_out_and_links_do_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/c"), b"deep").unwrap();
        fs::write(folder.path().join("d"), b"").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
        let archive = pack(folder.path(), &as_is).unwrap();
        let other = tempfile::tempdir().unwrap();
        unpack(&archive, other.path()).unwrap();
        assert_eq!(fs::read(other.path().join("a/b/c")).unwrap(), b"deep");
        assert_eq!(fs::read(other.path().join("d")).unwrap(), b"");
        assert!(fs::symlink_metadata(other.path().join("link")).is_err());
        // Into the same folder again: nothing is replaced.
        assert!(unpack(&archive, other.path()).unwrap_err().to_string().contains("twice"));
    }

    #[test]
    fn nothing_leaves_the_folder() {
        for path in ["../x", "/x", "a/../../x", "a//b", "./x", "a/", "a\0b", &"a/".repeat(40), &"x".repeat(300)] {
            assert!(unpacked(&made(&[(path, b"x")])).is_err(), "{path:?}");
        }
        assert!(unpacked(&made(&[("x", b"1"), ("x", b"2")])).is_err());
        assert!(unpacked(&made(&[("x", b"1"), ("x/y", b"2")])).is_err());
        assert!(unpacked(&made(&[("x", b"1"), ("y", b"2")])).is_ok());
    }

    #[test]
    fn damage_is_an_error() {
        let good = made(&[("x", b"content")]);
        for length in 0..good.len() {
            assert!(unpacked(&good[..length]).is_err(), "{length}");
        }
        assert!(unpacked(&[&good[..], b"more"].concat()).is_err());
        let mut long = HEAD.to_vec();
        long.extend(1_u32.to_le_bytes());
        long.push(b'x');
        long.extend((LARGEST_FILE + 1).to_le_bytes());
        assert!(unpacked(&long).is_err());
        let packed = zstd::encode_all(&good[..], 1).unwrap();
        for place in 0..packed.len() {
            let mut bad = packed.clone();
            bad[place] ^= 0x55;
            // Whatever comes of it, it ends.
            let folder = tempfile::tempdir().unwrap();
            let _ = unpack(&bad, folder.path());
        }
    }
}
