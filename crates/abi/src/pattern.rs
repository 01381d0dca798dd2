//! Patterns of suppressions, which both worlds match: the reporter names in a warning, the runtime paths of libraries.
//!
//! A pattern matches a part of a name; `*` stands for anything, `^` at the beginning and `$` at the end hold it to that end of
//! the name.

/// Whether a pattern matches a name. Nothing matches an empty name.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    if name.is_empty() {
        return false;
    }
    let (pattern, from_begin) = pattern.strip_prefix(b"^").map_or((pattern, false), |rest| (rest, true));
    let (pattern, to_end) = pattern.strip_suffix(b"$").map_or((pattern, false), |rest| (rest, true));
    if pattern.is_empty() {
        return !(from_begin && to_end);
    }
    let Some(star) = pattern.iter().position(|&byte| byte == b'*') else {
        return match (from_begin, to_end) {
            (true, true) => name == pattern,
            (true, false) => name.starts_with(pattern),
            (false, true) => name.ends_with(pattern),
            (false, false) => find(name, pattern).is_some(),
        };
    };
    let (first, behind) = (&pattern[..star], &pattern[star + 1..]);
    let mut rest = match find(name, first) {
        Some(at) if at == 0 || !from_begin => &name[at + first.len()..],
        _ => return false,
    };
    if from_begin && !name.starts_with(first) {
        return false;
    }
    let mut parts = behind.split(|&byte| byte == b'*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() && to_end {
            return rest.ends_with(part);
        }
        match find(rest, part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// Where a part begins for the first time.
fn find(name: &[u8], part: &[u8]) -> Option<usize> {
    (0..=name.len().checked_sub(part.len())?).find(|&at| name[at..].starts_with(part))
}

/// The type and the pattern of each line of a file of suppressions. Lines that begin with `#` and empty ones say nothing; blanks
/// at both ends do not count.
pub fn lines(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text.split(|&byte| byte == b'\n').filter_map(|line| {
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r');
        let begin = line.iter().take_while(blank).count();
        let line = &line[begin..];
        let line = &line[..line.len() - line.iter().rev().take_while(blank).count()];
        let colon = line.iter().position(|&byte| byte == b':')?;
        (line[0] != b'#').then(|| (&line[..colon], &line[colon + 1..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_say_something() {
        let mut found = lines(b"# a:b\n\n  race:a::b*c \r\nnothing\nthread:x");
        assert_eq!(found.next(), Some((&b"race"[..], &b"a::b*c"[..])));
        assert_eq!(found.next(), Some((&b"thread"[..], &b"x"[..])));
        assert_eq!(found.next(), None);
    }
}
