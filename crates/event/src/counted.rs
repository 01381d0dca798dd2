//! Numbers of things, in words.

/// `1 schedule`, `3 schedules`, `2 processes`, `0 entries`.
pub fn counted(count: u64, noun: &str) -> String {
    if count == 1 {
        return format!("1 {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{count} {stem}ies"),
        _ if noun.ends_with(['s', 'x']) || noun.ends_with("ch") => format!("{count} {noun}es"),
        _ => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_not_many() {
        for (count, noun, words) in [
            (0, "schedule", "0 schedules"),
            (1, "preemption", "1 preemption"),
            (2, "process", "2 processes"),
            (1, "process", "1 process"),
            (3, "entry", "3 entries"),
            (2, "delay", "2 delays"),
            (2, "branch", "2 branches"),
        ] {
            assert_eq!(counted(count, noun), words);
        }
    }
}
