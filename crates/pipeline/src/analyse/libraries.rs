//! Libraries without instrumentation whose calls may be taken to order nothing.
//!
//! A call into code that nobody sees may lock, signal or spin, and so order what threads do before and after it. Nothing is
//! *predicted* and nothing proven *unordered* where such code is loaded, unless its calls are known not to order threads. That
//! holds for a library if
//! 1. what its functions read and write is theirs only through the caller: the arguments, and a handle that the caller passes and
//!    has to guard itself;
//! 2. locks and atomics that its callers could meet at are absent, or go through libc and libpthread, where the runtime sees them
//!    also when a library calls them, or guard
//!    nothing but a private initialisation that has the same result whoever does it;
//! 3. tables that all calls share are constant, or written once with the same values.
//!
//! The table is matched by SONAME (the file's name where it has none). What the user adds by `--trust-library` is matched by the
//! same rule.

use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};
use object::{Endianness, elf};
use rashomon_event::path_of;
use std::path::Path;

/// A library of the table: its SONAME up to the version, and why it orders nothing.
#[derive(Debug)]
pub struct Known {
    pub soname: &'static str,
    pub reason: &'static str,
}

const STREAM: &str = "all state is in the stream or context that the caller passes; tables are constant";

/// See the module's documentation for what each entry has to fulfil.
pub const KNOWN: &[Known] = &[
    Known {
        soname: "libz.so",
        reason: "all state is in the z_stream; the table of CRCs is constant, or made once with atomics \
            and the same values whoever makes it",
    },
    Known { soname: "libz-ng.so", reason: "as libz; functions for the processor are chosen once, the same whoever chooses" },
    Known { soname: "libbz2.so", reason: STREAM },
    Known {
        soname: "liblzma.so",
        reason: "all state is in the lzma_stream; its own threads synchronise by pthread calls, which are seen",
    },
    Known {
        soname: "libzstd.so",
        reason: "all state is in the context; its own threads synchronise by pthread calls, which are seen",
    },
    Known { soname: "liblz4.so", reason: STREAM },
    Known { soname: "liblzo2.so", reason: "the caller passes the working memory; tables are constant" },
    Known { soname: "libsnappy.so", reason: "pure functions of buffers" },
    Known {
        soname: "libdeflate.so",
        reason: "all state is in the compressor; functions for the processor are chosen once, the same whoever chooses",
    },
    Known { soname: "libbrotlicommon.so", reason: "constant tables" },
    Known { soname: "libbrotlienc.so", reason: STREAM },
    Known { soname: "libbrotlidec.so", reason: STREAM },
    Known { soname: "libxxhash.so", reason: "all state is in the hash's state object" },
    Known { soname: "libcrc32c.so", reason: "pure functions of buffers" },
    Known { soname: "libm.so", reason: "pure functions; the rounding mode and errno belong to the thread" },
    Known { soname: "libmvec.so", reason: "pure functions" },
    Known {
        soname: "libgmp.so",
        reason: "all state is in the numbers passed; the allocation functions are set by the program, before threads",
    },
    Known { soname: "libmpfr.so", reason: "all state is in the numbers passed; caches belong to the thread" },
    Known { soname: "libmpc.so", reason: "all state is in the numbers passed" },
    Known { soname: "libpcre.so", reason: "compiled patterns are constant; matching works on the caller's memory and the stack" },
    Known {
        soname: "libpcre2-8.so",
        reason: "compiled patterns are constant; matching works on match data that the caller passes",
    },
    Known { soname: "libpcre2-16.so", reason: "as libpcre2-8" },
    Known { soname: "libpcre2-32.so", reason: "as libpcre2-8" },
    Known { soname: "libexpat.so", reason: "all state is in the parser that the caller passes" },
    Known {
        soname: "libcrypt.so",
        reason: "crypt_r works on the caller's data; crypt has one buffer for all, which orders nobody",
    },
    Known {
        soname: "libfmt.so",
        reason: "writes to the buffer or stream that the caller passes; tables are constant, and counts of locales order nobody",
    },
    Known { soname: "libpng16.so", reason: "all state is in the png_struct that the caller passes" },
    Known { soname: "libjpeg.so", reason: "all state is in the object that the caller passes" },
    Known { soname: "libyaml-0.so", reason: "all state is in the parser or emitter that the caller passes" },
    Known {
        soname: "libgcc_s.so",
        reason: "unwinding: its table of frames is guarded by pthread mutexes, which are seen, \
            and shows only what was registered",
    },
    Known { soname: "libresolv.so", reason: "a part of libc, called through it: the resolver's state belongs to the thread" },
    Known { soname: "libnss_files.so", reason: "a part of libc, called through it" },
    Known { soname: "libnss_dns.so", reason: "a part of libc, called through it" },
    Known { soname: "libnss_compat.so", reason: "a part of libc, called through it" },
    Known { soname: "libnss_systemd.so", reason: NAMES },
    Known { soname: "libnss_myhostname.so", reason: NAMES },
    Known { soname: "libnss_mymachines.so", reason: NAMES },
    Known { soname: "libnss_resolve.so", reason: NAMES },
    Known {
        soname: "libcap.so",
        reason: "all state is in the object that the caller passes; its lock guards nothing but that, and hands nothing over",
    },
];

const NAMES: &str = "libc alone calls it, for names of users, groups and hosts; it knows no memory of the program";

/// Whether a library with this SONAME is meant by `name`: the same, or the same up to the version (`libz`, `libz.so`,
/// `libz.so.1`).
pub fn is_named(soname: &str, name: &str) -> bool {
    let behind = |rest: &str| rest.is_empty() || rest.starts_with('.');
    !name.is_empty()
        && soname
            .strip_prefix(name)
            .is_some_and(|rest| behind(rest) && (name.contains(".so") || rest.is_empty() || rest.starts_with(".so")))
}

/// Whether the library's calls are known, or said by the user, to order nothing.
pub fn is_trusted(path: &str, trusted: &[String]) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    let soname = soname(&path_of(path)).unwrap_or_else(|| file.to_owned());
    let known = KNOWN.iter().any(|known| is_named(&soname, known.soname));
    known || trusted.iter().any(|name| is_named(&soname, name) || is_named(file, name) || name == path)
}

/// No shared library is larger; a recording can name any file.
const LARGEST_LIBRARY: u64 = 1 << 29;

/// The name that a shared library says it has.
fn soname(path: &Path) -> Option<String> {
    names(path, elf::DT_SONAME)?.pop()
}

/// What the dynamic section of a file names under a tag: itself (`DT_SONAME`), what it needs (`DT_NEEDED`). `None`: the file
/// cannot be read, or is no such file.
pub(crate) fn names(path: &Path, tag: u32) -> Option<Vec<String>> {
    let bytes = rashomon_files::read(path, rashomon_files::Links::Followed, LARGEST_LIBRARY).ok()?;
    let header = elf::FileHeader64::<Endianness>::parse(bytes.as_slice()).ok()?;
    let endian = header.endian().ok()?;
    for segment in header.program_headers(endian, bytes.as_slice()).ok()? {
        let Ok(Some(entries)) = segment.dynamic(endian, bytes.as_slice()) else { continue };
        let values = |tag: u32| entries.iter().filter(move |it| it.tag32(endian) == Some(tag)).map(|it| it.d_val(endian));
        let strings = values(elf::DT_STRTAB).next()?;
        return values(tag).map(|name| string_at(&bytes, header, endian, strings.checked_add(name)?)).collect();
    }
    None
}

/// The terminated text that is loaded at an address.
fn string_at(bytes: &[u8], header: &elf::FileHeader64<Endianness>, endian: Endianness, address: u64) -> Option<String> {
    let segments = header.program_headers(endian, bytes).ok()?;
    let holds = |segment: &&elf::ProgramHeader64<Endianness>| {
        let start = segment.p_vaddr(endian);
        segment.p_type(endian) == elf::PT_LOAD && start <= address && address - start < segment.p_filesz(endian)
    };
    let segment = segments.iter().find(holds)?;
    let offset = segment.p_offset(endian).checked_add(address - segment.p_vaddr(endian))?;
    let text = bytes.get(usize::try_from(offset).ok()?..)?;
    let length = text.iter().position(|byte| *byte == 0)?;
    String::from_utf8(text[..length].to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_up_to_the_version() {
        for (soname, name) in [
            ("libz.so.1", "libz.so"),
            ("libz.so.1", "libz"),
            ("libz.so.1", "libz.so.1"),
            ("libz.so", "libz.so"),
            ("libfoo-2.0.so.0", "libfoo-2.0"),
        ] {
            assert!(is_named(soname, name), "{soname} {name}");
        }
        for (soname, name) in [
            ("libzstd.so.1", "libz"),
            ("libz.so.10", "libz.so.1"),
            ("libz.so.1", ""),
            ("libz.so.1", "lib"),
            ("libfoo-2.0.so.0", "libfoo-2"),
            ("libz.evil.so", "libz"),
        ] {
            assert!(!is_named(soname, name), "{soname} {name}");
        }
    }

    #[test]
    fn calls_of_the_same_libraries_are_left_out_of_recordings() {
        let known: Vec<&str> = KNOWN.iter().map(|known| known.soname).collect();
        assert_eq!(known, rashomon_abi::known::LIBRARIES);
    }

    #[test]
    fn every_entry_says_why() {
        for known in KNOWN {
            assert!(known.soname.ends_with(".so") && known.reason.len() > 10, "{known:?}");
        }
    }
}
