//! Functions of libc by which the kernel, or threads of libc's own, hand something from thread to thread, and that the runtime
//! does not serve: it notes in the [header](crate::header::field::UNSERVED) which of them were called.

/// By the bits of the header's word. New ones come last.
pub const NAMES: [&str; 23] = [
    "aio_error",
    "aio_error64",
    "aio_fsync",
    "aio_fsync64",
    "aio_read",
    "aio_read64",
    "aio_return",
    "aio_return64",
    "aio_suspend",
    "aio_suspend64",
    "aio_write",
    "aio_write64",
    "fanotify_init",
    "getaddrinfo_a",
    "inotify_init",
    "inotify_init1",
    "lio_listio",
    "lio_listio64",
    "mq_notify",
    "preadv2",
    "preadv64v2",
    "pwritev2",
    "pwritev64v2",
];

const _: () = assert!(NAMES.len() <= 64);

/// Those of a set of bits.
pub fn names_of(bits: u64) -> impl Iterator<Item = &'static str> {
    (0..).zip(NAMES).filter(move |(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| name)
}
