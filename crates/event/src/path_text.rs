//! Paths as text.
//!
//! A path is any bytes, while recordings, schedules and reports keep text. What is not UTF-8 stands as `\xff`, byte by byte, and
//! so does the backslash of a path that has such letters itself: text and path say the same, and every other path is its own
//! text.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// Bytes of one escape.
const LENGTH: usize = 4;

/// The text of a path.
pub fn path_text(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        let valid = chunk.valid();
        for (at, c) in valid.char_indices() {
            match escape_at(&valid.as_bytes()[at..]) {
                Some(_) => push_escape(&mut text, b'\\'),
                None => text.push(c),
            }
        }
        chunk.invalid().iter().for_each(|&byte| push_escape(&mut text, byte));
    }
    text
}

/// The bytes of the path that a text names.
pub fn path_bytes(text: &[u8]) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((&first, behind)) = rest.split_first() {
        let (byte, left) = match escape_at(rest) {
            Some(byte) => (byte, &rest[LENGTH..]),
            None => (first, behind),
        };
        bytes.push(byte);
        rest = left;
    }
    bytes
}

/// The path that a text names.
pub fn path_of(text: &str) -> PathBuf {
    OsString::from_vec(path_bytes(text.as_bytes())).into()
}

/// The byte that the escape at the beginning stands for.
fn escape_at(text: &[u8]) -> Option<u8> {
    let &[b'\\', b'x', high, low, ..] = text else { return None };
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    Some(digit(high)? << 4 | digit(low)?)
}

fn push_escape(text: &mut String, byte: u8) {
    text.push_str(&format!("\\x{byte:02x}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both_ways(path: &[u8], text: &str) {
        assert_eq!(path_text(path), text);
        assert_eq!(path_bytes(text.as_bytes()), path, "{text}");
    }

    #[test]
    fn every_path_has_a_text_of_its_own() {
        both_ways(b"/bin/true", "/bin/true");
        both_ways("/bin/wahr – ja".as_bytes(), "/bin/wahr – ja");
        both_ways(b"/odd\xff\x80/\xe2\x82", r"/odd\xff\x80/\xe2\x82");
        both_ways(b"/two\nlines", "/two\nlines");
        both_ways(br"/win\dows\x", r"/win\dows\x");
        both_ways(br"/looks\xffescaped", r"/looks\x5cxffescaped");
        both_ways(br"\\xff", r"\\x5cxff");
        both_ways(br"/upper\xFF", r"/upper\xFF");
    }

    #[test]
    fn all_short_paths_of_letters_that_matter_survive() {
        let letters = [b'\\', b'x', b'5', b'c', b'/', 0xff, 0xc3, 0xa4];
        let mut paths = vec![Vec::new()];
        for _ in 0..5 {
            paths = paths.iter().flat_map(|path| letters.map(|letter| [path.as_slice(), &[letter]].concat())).collect();
            for path in &paths {
                assert_eq!(path_bytes(path_text(path).as_bytes()), *path);
            }
        }
    }
}
