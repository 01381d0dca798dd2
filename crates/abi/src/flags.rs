//! The syntax of `TSAN_OPTIONS` and its like: `name=value`, separated by colons, commas or white space; a value that holds one of
//! these stands in quotes of either kind.

/// The flags of a text, in order.
#[derive(Clone, Copy, Debug)]
pub struct Flags<'a>(&'a [u8]);

/// A text that breaks the syntax: what is wrong, and the place from which on it was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault<'a> {
    /// A name without `=`.
    NoValue(&'a [u8]),
    /// A quote that is not closed.
    Unclosed(&'a [u8]),
}

impl<'a> Flags<'a> {
    pub const fn new(text: &'a [u8]) -> Self {
        Self(text)
    }
}

const fn separates(byte: u8) -> bool {
    matches!(byte, b' ' | b',' | b':' | b'\n' | b'\t' | b'\r')
}

impl<'a> Iterator for Flags<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), Fault<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.0.iter().position(|&byte| !separates(byte))?;
        let text = &self.0[start..];
        let Some(equals) = text.iter().position(|&byte| byte == b'=' || separates(byte)).filter(|&at| text[at] == b'=') else {
            self.0 = &[];
            return Some(Err(Fault::NoValue(text)));
        };
        let (name, value) = (&text[..equals], &text[equals + 1..]);
        let (value, rest) = match value.first() {
            Some(&quote @ (b'"' | b'\'')) => {
                let Some(length) = value[1..].iter().position(|&byte| byte == quote) else {
                    self.0 = &[];
                    return Some(Err(Fault::Unclosed(text)));
                };
                (&value[1..=length], &value[length + 2..])
            }
            _ => value.split_at(value.iter().position(|&byte| separates(byte)).unwrap_or(value.len())),
        };
        self.0 = rest;
        Some(Ok((name, value)))
    }
}

/// The words for yes and no.
pub const fn boolean(value: &[u8]) -> Option<bool> {
    match value {
        b"1" | b"yes" | b"true" => Some(true),
        b"0" | b"no" | b"false" => Some(false),
        _ => None,
    }
}

/// A number as C writes it, decimal or hexadecimal, with an optional sign.
pub fn number(value: &[u8]) -> Option<i64> {
    let (negative, digits) = match value {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (base, digits) = match digits {
        [b'0', b'x' | b'X', rest @ ..] => (16, rest),
        rest => (10, rest),
    };
    if digits.is_empty() {
        return None;
    }
    let mut sum = 0_i64;
    for &digit in digits {
        let digit = (digit as char).to_digit(base)?;
        sum = sum.checked_mul(i64::from(base))?.checked_add(i64::from(digit))?;
    }
    Some(if negative { -sum } else { sum })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> impl Iterator<Item = Result<(&str, &str), Fault<'_>>> {
        let text_of = |bytes| core::str::from_utf8(bytes).unwrap_or("?");
        Flags::new(text.as_bytes()).map(move |flag| flag.map(|(name, value)| (text_of(name), text_of(value))))
    }

    #[test]
    fn separators_and_quotes() {
        let text = "a=1:b=,  c='x:y z' d=\"'\":e=/p=q\n";
        assert!(all(text).eq([("a", "1"), ("b", ""), ("c", "x:y z"), ("d", "'"), ("e", "/p=q")].map(Ok)));
        assert_eq!(all(" :, ").count(), 0);
    }

    #[test]
    fn faults_end_the_text() {
        assert!(all("a=1 b c=2").eq([Ok(("a", "1")), Err(Fault::NoValue(b"b c=2"))]));
        assert!(all("a='x").eq([Err(Fault::Unclosed(b"a='x"))]));
        assert!(all("x='").eq([Err(Fault::Unclosed(b"x='"))]));
    }

    #[test]
    fn values() {
        assert_eq!([b"yes".as_slice(), b"0", b"2"].map(boolean), [Some(true), Some(false), None]);
        assert_eq!(
            [b"-5".as_slice(), b"0x1F", b"", b"1a", b"99999999999999999999"].map(number),
            [Some(-5), Some(31), None, None, None]
        );
    }
}
