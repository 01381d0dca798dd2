//! Words of commands that are printed to be pasted into a shell.

use crate::harmless::is_harmful;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// Quotes a word for a POSIX shell, where it needs it.
pub fn quoted(word: &OsStr) -> OsString {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+=:,@%".contains(byte);
    let bytes = word.as_bytes();
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return word.to_owned();
    }
    let mut out = vec![b'\''];
    for byte in bytes {
        if *byte == b'\'' {
            out.extend_from_slice(b"'\\''");
        } else {
            out.push(*byte);
        }
    }
    out.push(b'\'');
    OsString::from_vec(out)
}

/// Quotes a word so that it can be printed, copied and pasted: what is not plain text stands as `$'\\xff'`, which bash, zsh, ksh
/// and POSIX.1-2024's shell read.
pub fn pasted(word: &OsStr) -> String {
    match quoted(word).into_string() {
        Ok(text) if !text.contains(is_harmful) => text,
        _ => {
            let mut out = String::from("$'");
            for &byte in word.as_bytes() {
                match byte {
                    b'\'' | b'\\' => out.extend(['\\', char::from(byte)]),
                    b' '..=b'~' => out.push(char::from(byte)),
                    _ => out.push_str(&format!("\\x{byte:02x}")),
                }
            }
            out.push('\'');
            out
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        for word in ["plain", "two words", "it's", "$HOME", "", "-x", "a;b", "new\nline", "\\", "*"] {
            let script = format!("printf %s {}", quoted(OsStr::new(word)).to_str().unwrap());
            let output = std::process::Command::new("sh").arg("-c").arg(&script).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word, "{script}");
        }
    }

    #[test]
    fn words_survive_copying_and_pasting() {
        let words: [&[u8]; 7] = [
            b"plain",
            b"two words",
            b"it's",
            b"\xff\xfe/a b",
            b"new\nline\x1b[2J",
            "\u{202e}\\'".as_bytes(),
            "\u{e4}".as_bytes(),
        ];
        for word in words {
            let text = pasted(OsStr::from_bytes(word));
            assert!(!text.contains(is_harmful), "{text}");
            let output = std::process::Command::new("bash").arg("-c").arg(format!("printf %s {text}")).output().unwrap();
            assert_eq!(output.stdout, word, "{text}");
        }
    }
}
