//! Whether a finding of another build is the same bug: what a baseline compares beside the id.
//!
//! An id counts lines within functions, so it ends when somebody adds a line above a place, or when another compiler inlines
//! otherwise. A fingerprint holds what stays: the kind, for each side the function that its user knows best, and what they touch;
//! no lines, no files, no sizes, and of functions their names alone, as compilers write parameters differently. Findings of one
//! program that agree in all of that are mended together; of these each but the first has its number behind the fingerprint.

use rashomon_event::{Finding, FindingId, FindingKind, Frame};
use std::collections::BTreeMap;

/// Of one finding by itself: the same for those that are mended together.
pub fn fingerprint(finding: &Finding) -> String {
    // Of a failure the first side is where it happened; where other threads were then is chance.
    let sides = if finding.kind == FindingKind::Failure { 1 } else { finding.sides.len() };
    let function = |frame: &Frame| frame.function.as_deref().map(function_alone).unwrap_or_default();
    let known = finding.sides.iter().take(sides).map(|side| Frame::best_known(&side.stack).map(function).unwrap_or_default());
    let mut parts: Vec<String> = known.collect();
    parts.sort();
    if finding.kind != FindingKind::DataRace {
        // How many threads wait at one place is chance, too.
        parts.dedup();
    }
    parts.extend([crate::place::rule(finding.kind), thing(&finding.subject)]);
    format!("{:016x}", hash(&parts))
}

/// Of each of a report, none like another. What is claimed comes first, then what stands further up in its functions.
pub fn fingerprints(findings: &[Finding]) -> BTreeMap<&FindingId, String> {
    let lines = |finding: &Finding| {
        let mut lines: Vec<Option<u32>> = finding.sides.iter().map(|side| Frame::best_known(&side.stack)?.line).collect();
        lines.sort_unstable();
        lines
    };
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_cached_key(|finding| (finding.verdict.rank() > 1, lines(finding), finding.id.clone()));
    let mut met: BTreeMap<String, u32> = BTreeMap::new();
    let numbered = |finding: &Finding, met: &mut BTreeMap<String, u32>| {
        let own = fingerprint(finding);
        let times = met.entry(own.clone()).or_default();
        *times += 1;
        if *times > 1 { format!("{own}-{times}") } else { own }
    };
    sorted.into_iter().map(|finding| (&finding.id, numbered(finding, &mut met))).collect()
}

/// FNV-1a of texts, with a separator that none of them holds.
pub(crate) fn hash(parts: &[String]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The innermost name; gcc leaves out the namespace of some functions. Of a closure the function that it stands in.
pub(crate) fn function_alone(name: &str) -> String {
    let (scope, operator) = match name.rsplit_once("operator") {
        Some((scope, rest)) if scope.is_empty() || scope.ends_with([':', ' ']) => (scope, rest.split('(').next()),
        _ => (name, None),
    };
    if let Some(operator) = operator {
        return format!("operator{operator}");
    }
    let is_name = |part: &&str| !part.is_empty() && !part.starts_with(['$', '\'']);
    let is_word = |word: &&str| !["const", "volatile", "&", "&&"].contains(word);
    let outside = without_brackets(scope, &[('(', ')'), ('<', '>'), ('[', ']'), ('{', '}')]);
    let whole = outside.split_whitespace().rfind(is_word).unwrap_or_default();
    whole.rsplit("::").find(is_name).unwrap_or(name).to_owned()
}

/// What a finding is about, without sizes, addresses and lines of sources.
pub(crate) fn thing(subject: &str) -> String {
    // Of what was provoked only the recording knows the name.
    let named = subject.split_once("(in the recorded execution: ").and_then(|(_, named)| named.strip_suffix(')'));
    let outside = without_brackets(named.unwrap_or(subject), &[('(', ')'), ('<', '>')]);
    let words: Vec<&str> = outside.split_whitespace().collect();
    let mut kept = Vec::new();
    for (at, &word) in words.iter().enumerate() {
        let next = |further: usize| words.get(at + further).copied().unwrap_or_default();
        let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let is_size = |word: &str, next: &str, then: &str| {
            is_number(word) && (next.starts_with("thread") || next.starts_with("byte") && then != "into")
        };
        let before = |back: usize| at.checked_sub(back).and_then(|at| words.get(at)).copied().unwrap_or_default();
        if is_size(word, next(1), next(2)) || is_size(before(1), word, next(1)) || word.starts_with("0x") {
            continue;
        }
        kept.push(if ["at", "of"].contains(&before(1)) { function_alone(word) } else { word.trim_start_matches(':').to_owned() });
    }
    kept.join(" ")
}

pub(crate) fn without_brackets(text: &str, pairs: &[(char, char)]) -> String {
    let mut depth = 0_u32;
    let outside = |letter: &char| {
        if pairs.iter().any(|(open, _)| open == letter) {
            depth += 1;
            return false;
        }
        let ends = pairs.iter().any(|(_, close)| close == letter);
        let is_outside = depth == 0;
        depth = depth.saturating_sub(u32::from(ends));
        is_outside
    };
    text.chars().filter(outside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_event::{Evidence, Side};

    #[test]
    fn compilers_write_functions_differently() {
        for (name, alone) in [
            ("get", "get"),
            ("get()", "get"),
            ("(anonymous namespace)::get(int, char const*)", "get"),
            ("void ns::Pool<int>::run<char>(std::vector<int> const&) const", "run"),
            ("worker [clone .isra.0]", "worker"),
            ("Map::operator[](int) const", "operator[]"),
            ("operator new(unsigned long)", "operator new"),
            ("cooperator(int)", "cooperator"),
            ("program::main::{{closure}}", "main"),
            ("<program::Queue as program::Fill>::fill", "fill"),
            ("main::$_0", "main"),
        ] {
            assert_eq!(function_alone(name), alone, "{name}");
        }
    }

    #[test]
    fn sizes_and_lines_do_not_matter_but_offsets_and_names_do() {
        let block = |size: u32, line: u32, at: u32| {
            thing(&format!("{size} bytes in heap block of {size} bytes allocated at get() (a.cpp:{line}:3), {at} bytes into it"))
        };
        assert_eq!(block(8, 1, 4), block(4, 2, 4));
        assert_ne!(block(8, 1, 4), block(8, 1, 8));
        assert_eq!(thing("global x (4 bytes)"), "global x");
        assert_ne!(thing("mutex forks[0], mutex forks[1]"), thing("mutex forks[0], mutex forks[2]"));
        assert_eq!(thing("8 bytes (in the recorded execution: global x (8 bytes))"), "global x");
        assert_eq!(thing("2 threads wait"), thing("3 threads wait"));
    }

    fn race(id: &str, function: &str, line: u32) -> Finding {
        let frame = Frame { function: Some(function.into()), file: Some("/p/a.c".into()), line: Some(line), ..Frame::default() };
        let (thread, action) = (String::new(), String::new());
        let side = Side { thread, action, stack: vec![frame], held: Vec::new(), created_at: Vec::new() };
        let id = FindingId::new(id).unwrap();
        Finding { sides: vec![side.clone(), side], ..Finding::suspected(FindingKind::DataRace, Evidence::Hybrid, id) }
    }

    #[test]
    fn findings_that_are_mended_together_are_numbered_down_the_function() {
        let findings = [race("race-1", "f", 30), race("race-2", "f", 7), race("race-3", "g", 7)];
        let own = fingerprint(&findings[0]);
        let all = fingerprints(&findings);
        assert_eq!([&all[&findings[1].id], &all[&findings[0].id]], [&own, &format!("{own}-2")]);
        assert!(!all[&findings[2].id].starts_with(&own));
    }
}
