//! The conditions behind `REQUIRES:`, `UNSUPPORTED:` and `XFAIL:`, in the syntax of LLVM's test driver: names of features,
//! `!`, `&&`, `||`, parentheses; a name may hold regular expressions in double braces, and `*` stands for everything.

use anyhow::{Result, bail};
use regex_lite::Regex;
use std::collections::BTreeSet;

pub type Features = BTreeSet<String>;

/// Whether `text`, one condition, holds.
pub fn holds(text: &str, features: &Features) -> Result<bool> {
    if text.trim() == "*" {
        return Ok(true);
    }
    let mut parser = Parser { rest: text.trim(), features };
    let value = parser.any()?;
    if !parser.rest.is_empty() {
        bail!("condition {text:?}: {:?} is left over", parser.rest);
    }
    Ok(value)
}

struct Parser<'a> {
    rest: &'a str,
    features: &'a Features,
}

impl Parser<'_> {
    fn accept(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn any(&mut self) -> Result<bool> {
        let mut value = self.all()?;
        while self.accept("||") {
            value |= self.all()?;
        }
        Ok(value)
    }

    fn all(&mut self) -> Result<bool> {
        let mut value = self.one()?;
        while self.accept("&&") {
            value &= self.one()?;
        }
        Ok(value)
    }

    fn one(&mut self) -> Result<bool> {
        if self.accept("!") {
            return Ok(!self.one()?);
        }
        if self.accept("(") {
            let value = self.any()?;
            if !self.accept(")") {
                bail!("a parenthesis is open before {:?}", self.rest);
            }
            return Ok(value);
        }
        self.feature()
    }

    fn feature(&mut self) -> Result<bool> {
        let mut pattern = String::from("^(?:");
        let begin = self.rest;
        loop {
            if let Some(behind) = self.rest.strip_prefix("{{") {
                let Some((expression, behind)) = behind.split_once("}}") else { bail!("double braces are open in {begin:?}") };
                pattern.push_str(expression);
                self.rest = behind;
                continue;
            }
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-+=._".contains(letter);
            match self.rest.chars().next().filter(|&letter| is_part(letter)) {
                Some(letter) => {
                    pattern.push_str(&regex_lite::escape(letter.encode_utf8(&mut [0; 4])));
                    self.rest = &self.rest[1..];
                }
                None => break,
            }
        }
        if self.rest.len() == begin.len() {
            bail!("no name of a feature at {begin:?}");
        }
        self.rest = self.rest.trim_start();
        pattern.push_str(")$");
        let pattern = Regex::new(&pattern)?;
        Ok(self.features.iter().any(|feature| pattern.is_match(feature)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> bool {
        let features = ["linux", "glibc-2.30", "target=x86_64-unknown-linux-gnu"].map(str::to_owned).into_iter().collect();
        holds(text, &features).unwrap()
    }

    #[test]
    fn conditions_are_read_as_the_test_driver_reads_them() {
        assert!(value("linux"));
        assert!(value("*"));
        assert!(!value("lin"), "whole names only");
        assert!(value("glibc-2.30 || android-30"));
        assert!(!value("!linux && ppc || darwin"));
        assert!(value("!(darwin || ios) && linux"));
        assert!(value("target=x86_64{{.*}}"));
        assert!(!value("target={{.*(netbsd|freebsd).*}}"));
        assert!(value("target={{(aarch64|x86_64).*}}"));
    }

    #[test]
    fn nonsense_is_an_error() {
        for text in ["", "linux linux", "(linux", "a{{b", "&& linux"] {
            assert!(holds(text, &Features::new()).is_err(), "{text:?}");
        }
    }
}
