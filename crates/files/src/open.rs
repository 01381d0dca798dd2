//! Opening and reading one file.

use rustix::fs::{FileType, OFlags, SeekFrom, fcntl_getfl, fcntl_setfl, fstat, seek};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{Error, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// What a link at the end of a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The file that it leads to.
    Followed,
    /// An error: where we write there are none.
    Refused,
}

/// Opens a regular file for reading. Anything else is an error at once.
pub fn open(path: &Path, links: Links) -> Result<File, Error> {
    let follow = if links == Links::Refused { OFlags::NOFOLLOW } else { OFlags::empty() };
    // Without waiting for the other end of a pipe, or for a device.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | follow).bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    regular(opened.map_err(|error| clear(error, links))?)
}

/// "Too many levels of symbolic links" says nothing to who has one link before him.
pub(crate) fn clear(error: Error, links: Links) -> Error {
    if links == Links::Refused && error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) {
        return Error::other("it is a symbolic link, and here are none: remove it");
    }
    error
}

/// The file, if it is a regular one.
pub(crate) fn regular(file: File) -> Result<File, Error> {
    let what = match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => {
            let flags = fcntl_getfl(&file)?;
            fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
            return Ok(file);
        }
        FileType::Directory => "a folder",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "something else",
    };
    Err(Error::other(format!("it is {what}, not a regular file")))
}

/// Opens what a program reads as its input: a file or a device. A pipe has one content for one execution, and waits for a writer.
pub fn open_input(path: &Path) -> Result<File, Error> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile | FileType::CharacterDevice => {
            let flags = fcntl_getfl(&file)?;
            fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
            Ok(file)
        }
        _ => Err(Error::other("it is no file that every execution could read")),
    }
}

/// The regular file that is this process's standard input, by a name under which whoever comes later finds it too. Of a file of
/// which something has been read already, whoever opens it would read something else: `None`.
pub fn own_input() -> Option<PathBuf> {
    let given = std::io::stdin();
    let status = fstat(&given).ok()?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile || seek(&given, SeekFrom::Current(0)) != Ok(0) {
        return None;
    }
    let path = std::fs::read_link("/proc/self/fd/0").ok()?;
    // Its name may be another file's by now, or nobody's.
    let found = fstat(open_input(&path).ok()?).ok()?;
    ((found.st_dev, found.st_ino) == (status.st_dev, status.st_ino)).then_some(path)
}

/// The bytes of a regular file, at most so many.
pub fn read(path: &Path, links: Links, most: u64) -> Result<Vec<u8>, Error> {
    read_from(open(path, links)?, most)
}

/// The bytes of an opened file. That it has more than `most` is an error before they are read.
pub fn read_from(file: File, most: u64) -> Result<Vec<u8>, Error> {
    let too_many = |bytes: u64| Error::other(format!("it has {bytes} bytes, more than {most}"));
    let expected = file.metadata()?.len();
    if expected > most {
        return Err(too_many(expected));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(expected).unwrap_or(usize::MAX)).map_err(Error::other)?;
    // It may grow while it is read, and files of the kernel's tell no size.
    (&file).take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_many(bytes.len() as u64)) } else { Ok(bytes) }
}

/// So much more of a file may be reserved than is there.
const RESERVED: u64 = 64 << 20;

/// The byte behind which a file holds nothing but a hole. A file can claim any size; what is not there is not worth looking at.
/// Files that claim little more than they occupy are taken at their word.
pub fn end_of_data(file: &File) -> Result<u64, Error> {
    let found = fstat(file)?;
    let size = u64::try_from(found.st_size).unwrap_or(0);
    let occupied = u64::try_from(found.st_blocks).unwrap_or(0).saturating_mul(512);
    if size <= occupied.saturating_add(RESERVED) {
        return Ok(size);
    }
    let mut end = 0;
    while end < size {
        match seek(file, SeekFrom::Data(end)) {
            Ok(data) => end = seek(file, SeekFrom::Hole(data))?,
            Err(Errno::NXIO) => break,
            // The file system knows no holes.
            Err(_) => return Ok(size),
        }
    }
    Ok(end)
}
