//! Why a recording could not be written any further: what the kernel's error numbers mean for it, and what can be done.

/// What one error of the kernel means for a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// As in `errno.h`.
    pub name: &'static str,
    /// A clause.
    pub words: &'static str,
    /// What to do; empty if nothing helps.
    pub advice: &'static str,
}

/// `None`: none of the errors that have a meaning of their own here.
pub const fn cause(error: u64) -> Option<Cause> {
    const FORBIDDEN: &str = "the program may no longer write there (it changed its user, or a seccomp filter forbids the call)";
    const OTHER_FOLDER: &str = "--output names a folder that it may write to; a filter has to allow openat, lseek, write, \
        fallocate, ftruncate, prlimit64, mmap and close";
    let (name, words, advice) = match error {
        1 => ("EPERM", FORBIDDEN, OTHER_FOLDER),
        2 => (
            "ENOENT",
            "the recording's folder was no longer where it had been (the program changed its root directory, or the folder was \
             moved or deleted)",
            "--output names a folder that the program leaves alone",
        ),
        5 => ("EIO", "the disk reports an error", "--output names a folder on another disk"),
        12 => (
            "ENOMEM",
            "the process may have no more memory, or no more mappings",
            "`ulimit -v` and the system's vm.max_map_count bound them",
        ),
        13 => ("EACCES", FORBIDDEN, OTHER_FOLDER),
        20 => {
            ("ENOTDIR", "the recording's folder was replaced by a file", "--output names a folder that the program leaves alone")
        }
        23 => ("ENFILE", "the whole system has as many files open as it may", "the system's fs.file-max bounds them"),
        24 => ("EMFILE", "the program had as many files open as it may", "`ulimit -n` allows more"),
        27 => ("EFBIG", "a file of the recording would be longer than the program may write", "`ulimit -f` allows more"),
        28 => ("ENOSPC", "the disk is full", "--output names a folder on another disk, --trace-limit bounds what is written"),
        30 => ("EROFS", "the file system became read-only", "--output names a folder elsewhere"),
        38 => ("ENOSYS", FORBIDDEN, OTHER_FOLDER),
        122 => (
            "EDQUOT",
            "the user's disk quota is used up",
            "--output names a folder elsewhere, --trace-limit bounds what is written",
        ),
        _ => return None,
    };
    Some(Cause { name, words, advice })
}
