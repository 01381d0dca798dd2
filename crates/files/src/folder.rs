//! A folder held by a handle: whatever becomes of its path, names are looked up in the very folder that was opened, and links in
//! it are not followed.

use crate::open::{Links, clear, regular};
use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Error, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Levels of folders that are removed at most, each of which holds a descriptor.
const DEEPEST: usize = 200;

#[derive(Debug)]
pub struct Folder {
    handle: OwnedFd,
    path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Folder,
    Link,
    /// A pipe, a device, a socket.
    Special,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub kind: Kind,
}

impl Kind {
    fn of(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Special,
        }
    }
}

fn only_a_name(name: &str) -> Result<(), Error> {
    let is_name = !name.is_empty() && name != "." && name != ".." && !name.contains('/');
    if is_name { Ok(()) } else { Err(Error::other(format!("{name:?} is no name of a file"))) }
}

impl Folder {
    /// The folder at the path, which may lead there through links.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { handle: openat(rustix::fs::CWD, path, flags, Mode::empty())?, path: path.to_path_buf() })
    }

    /// For messages, and for programs that have to be told of it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the user whose it is.
    pub fn owner(&self) -> Result<u32, Error> {
        Ok(fstat(&self.handle)?.st_uid)
    }

    /// Device and number of the folder.
    pub fn identity(&self) -> Result<(u64, u64), Error> {
        let found = fstat(&self.handle)?;
        Ok((found.st_dev, found.st_ino))
    }

    /// What the name stands for; `None`: nothing.
    pub fn kind(&self, name: &str) -> Result<Option<Kind>, Error> {
        only_a_name(name)?;
        match statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(Kind::of(FileType::from_raw_mode(found.st_mode)))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A folder in this one.
    pub fn folder(&self, name: &str) -> Result<Self, Error> {
        only_a_name(name)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(&self.handle, name, flags, Mode::empty()).map_err(|error| match error {
            // So says the kernel of a link.
            Errno::NOTDIR | Errno::LOOP => Error::other("it is a link or a file where a folder belongs: remove it"),
            error => error.into(),
        })?;
        Ok(Self { handle: opened, path: self.path.join(name) })
    }

    /// The same, made if it is not there.
    pub fn folder_made(&self, name: &str) -> Result<Self, Error> {
        only_a_name(name)?;
        match mkdirat(&self.handle, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => self.folder(name),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a regular file for reading.
    pub fn file(&self, name: &str) -> Result<File, Error> {
        only_a_name(name)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(&self.handle, name, flags, Mode::empty()).map_err(|error| clear(error.into(), Links::Refused))?;
        regular(opened.into())
    }

    /// Writes a file that appears under its name when it is whole, in place of what stood there.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        only_a_name(name)?;
        let fresh = format!(".{name}.{}", crate::unforeseeable()?);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file: File = openat(&self.handle, &fresh, flags, Mode::from_raw_mode(0o666))?.into();
        let written = file.write_all(bytes).and_then(|()| Ok(renameat(&self.handle, &fresh, &self.handle, name)?));
        if written.is_err() {
            // The first error is the one to tell.
            let _ = unlinkat(&self.handle, &fresh, AtFlags::empty());
        }
        written
    }

    /// Removes a file, or a link and not what it leads to.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        only_a_name(name)?;
        Ok(unlinkat(&self.handle, name, AtFlags::empty())?)
    }

    /// Removes whatever has this name with everything in it; that there is nothing is no error.
    pub fn remove_all(&self, name: &str) -> Result<(), Error> {
        self.remove_below(name, 0)
    }

    fn remove_below(&self, name: &str, depth: usize) -> Result<(), Error> {
        match self.kind(name)? {
            None => Ok(()),
            Some(Kind::Folder) if depth < DEEPEST => {
                let folder = self.folder(name)?;
                for entry in folder.entries()? {
                    folder.remove_below(&entry.name, depth + 1)?;
                }
                Ok(unlinkat(&self.handle, name, AtFlags::REMOVEDIR)?)
            }
            Some(Kind::Folder) => Err(Error::other("folders are nested too deep")),
            Some(_) => self.remove(name),
        }
    }

    /// What is in it, sorted by name. Names that are not Unicode are none of ours and are left out.
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => self.kind(name)?,
                known => Some(Kind::of(known)),
            };
            entries.extend(kind.map(|kind| Entry { name: name.to_owned(), kind }));
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    /// Locks the folder until this value is gone: alone, or beside others that do not want to be alone. `false`: somebody else
    /// has it. File systems that know no locks let everybody pass.
    pub fn lock(&self, alone: bool) -> bool {
        let operation = if alone { FlockOperation::NonBlockingLockExclusive } else { FlockOperation::NonBlockingLockShared };
        flock(&self.handle, operation) != Err(Errno::WOULDBLOCK)
    }
}
